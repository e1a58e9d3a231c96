//! Detects a `git gc --prune=now` of the user's, and the losses that it causes. Such a gc deletes
//! what nothing pointed at when it looked, even if something does by the time it deletes, and files
//! that another git is about to write. So a commit is only safe if it is complete once no gc runs
//! that may have looked before it was made. No gc is ever started or prevented here.

use super::call::{GitCall, GitTarget};
use super::{GitRepo, UserRepo, paths};
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use treebeam_core::id::{CodePlace, Commit};
use treebeam_run::port::PortError;

/// Maximum wait for the end of a gc.
const MAX_GC_WAIT: Duration = Duration::from_mins(5);
/// Age at which git itself takes the pid file of a gc for abandoned.
const STALE_GC_AGE: Duration = Duration::from_hours(12);
/// Interval at which the end of a gc is polled.
const GC_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How often an operation is repeated that lost objects to a gc.
pub(super) const MAX_GC_REPEATS: usize = 20;

/// Returns true if git reports that a gc deleted what it had written or was about to write.
pub(super) fn is_gc_loss(error_text: &str) -> bool {
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
    LOST_OBJECT_ERRORS.iter().any(|words| error_text.contains(words))
        || error_text.lines().any(unwritten)
}

/// Time of the last change of the packs, as a mark of a moment without a gc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PackState(Option<SystemTime>);

fn packs_modified_at(common_dir: &Path) -> Option<SystemTime> {
    fs::metadata(common_dir.join("objects/pack")).and_then(|folder| folder.modified()).ok()
}

impl UserRepo {
    /// Waits for the end of a running gc.
    pub(super) fn await_gc(&self) {
        let begun = Instant::now();
        while is_gc_running(&self.common_dir) && begun.elapsed() < MAX_GC_WAIT {
            thread::sleep(GC_POLL_INTERVAL);
        }
    }

    /// Returns the current state of the packs, to be called while no gc runs.
    pub(super) fn pack_state(&self) -> PackState {
        PackState(packs_modified_at(&self.common_dir))
    }

    /// Returns true if no gc has begun since `lull`: each begins by writing packs, before it
    /// deletes.
    pub(super) fn is_gc_free_since(&self, lull: PackState) -> bool {
        lull.0.is_some() && self.pack_state() == lull && !is_gc_running(&self.common_dir)
    }
}

impl GitRepo {
    /// Returns true if the repository has every object that `commit` adds to `base`.
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

/// Builds a call that fails if an object is missing that `commit` adds to `base`.
pub(super) fn rev_list_call(
    user: &UserRepo,
    target: &GitTarget,
    base: &Commit,
    commit: &Commit,
) -> GitCall {
    let not = format!("^{base}");
    // A commit graph may still list a commit that is gone.
    let arguments = ["-c", "core.commitGraph=false", "rev-list", "--objects", "--quiet"];
    user.git.sealed_call(target, &[arguments.as_slice(), &[commit.as_str(), &not]].concat())
}

/// Returns true if a gc runs: git keeps `<pid> <host>` in a file for as long as one lasts.
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
