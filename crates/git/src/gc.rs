//! A `git gc --prune=now` of the user's. It deletes what nothing pointed at when it looked, even if something does by the
//! time it deletes, and what another git is about to write. So a commit is only safe if it is whole once no gc is under
//! way that may have looked before it was made. None is ever run here, or kept from running.

use super::call::{GitCall, GitTarget};
use super::{GitRepo, UserRepo, paths};
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use treebeam_core::id::{CodePlace, Commit};
use treebeam_run::port::PortError;

/// Nobody waits longer for a gc.
const MAX_GC_WAIT: Duration = Duration::from_mins(5);
/// Git itself takes the note of an older gc for one that died.
const STALE_GC_AGE: Duration = Duration::from_hours(12);
/// How often it is looked whether it has ended.
const GC_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How often what was lost to a gc is done again.
pub(super) const MAX_GC_REPEATS: usize = 20;

/// Whether git says that a gc took away what it was about to write, or had written.
pub(super) fn is_gc_loss(said: &str) -> bool {
    const LOST_OBJECT_ERRORS: [&str; 6] = [
        "error: invalid object ",
        "nonexistent object",
        "is not a valid object",
        "not a valid object name",
        "unable to read tree",
        "bad object",
    ];
    const UNWRITTEN_FILE_ERRORS: [&str; 2] =
        ["error: unable to write file ", "error: unable to create temporary file"];
    let unwritten = |line: &str| {
        UNWRITTEN_FILE_ERRORS.iter().any(|words| line.contains(words))
            && line.ends_with("No such file or directory")
    };
    LOST_OBJECT_ERRORS.iter().any(|words| said.contains(words)) || said.lines().any(unwritten)
}

/// A time without a gc, known by when packs last changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PackState(Option<SystemTime>);

fn packs_modified_at(common_dir: &Path) -> Option<SystemTime> {
    fs::metadata(common_dir.join("objects/pack")).and_then(|folder| folder.modified()).ok()
}

impl UserRepo {
    /// Waits for the end of a gc, if one is under way.
    pub(super) fn await_gc(&self) {
        let begun = Instant::now();
        while is_gc_running(&self.common_dir) && begun.elapsed() < MAX_GC_WAIT {
            thread::sleep(GC_POLL_INTERVAL);
        }
    }

    /// Where the repository stands while no gc is under way.
    pub(super) fn pack_state(&self) -> PackState {
        PackState(packs_modified_at(&self.common_dir))
    }

    /// Whether no gc has begun since then: each begins by writing packs, before it deletes anything.
    pub(super) fn is_gc_free_since(&self, lull: PackState) -> bool {
        lull.0.is_some() && self.pack_state() == lull && !is_gc_running(&self.common_dir)
    }
}

impl GitRepo {
    /// Whether all is there that a commit adds to another.
    pub(super) fn is_commit_whole(
        &self,
        place: CodePlace,
        base: &Commit,
        commit: &Commit,
    ) -> Result<bool, PortError> {
        let is_whole = rev_list_call(&self.user, &self.shared_target(), base, commit)
            .with_subject(place)
            .run()?;
        Ok(is_whole.code == Some(0))
    }
}

/// A call that fails where something is missing of what a commit adds to another.
pub(super) fn rev_list_call(
    user: &UserRepo,
    seat: &GitTarget,
    base: &Commit,
    commit: &Commit,
) -> GitCall {
    let not = format!("^{base}");
    // A graph of commits may still list one that is gone.
    let arguments = ["-c", "core.commitGraph=false", "rev-list", "--objects", "--quiet"];
    user.git.sealed_call(seat, &[arguments.as_slice(), &[commit.as_str(), &not]].concat())
}

/// Git notes `<pid> <host>` for as long as a gc lasts.
fn is_gc_running(common_dir: &Path) -> bool {
    let note = common_dir.join("gc.pid");
    let Ok(text) = fs::read_to_string(&note) else { return false };
    let age = fs::metadata(&note).and_then(|file| file.modified()).ok();
    let age = age.and_then(|modified| modified.elapsed().ok()).unwrap_or_default();
    let pid = text.split_whitespace().next().and_then(|pid| pid.parse().ok());
    age < STALE_GC_AGE && pid.is_none_or(paths::is_process_alive)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_gc_is_under_way_while_its_process_lives() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let note = folder.path().join("gc.pid");
        assert!(!is_gc_running(folder.path()));
        fs::write(&note, format!("{} host", std::process::id()))?;
        assert!(is_gc_running(folder.path()));
        fs::write(&note, "999999999 host")?;
        assert!(!is_gc_running(folder.path()), "it was killed");
        fs::write(&note, "")?;
        assert!(is_gc_running(folder.path()), "it has just begun");
        let old = std::time::SystemTime::now() - 2 * STALE_GC_AGE;
        fs::File::options().write(true).open(&note)?.set_modified(old)?;
        assert!(!is_gc_running(folder.path()));
        Ok(())
    }
}
