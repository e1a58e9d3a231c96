//! A `git gc --prune=now` of the user's. It deletes what nothing pointed at when it looked, even if something does by the
//! time it deletes: a commit is safe only once no such gc that may have looked before it is under way. It is never run
//! here, and never kept from running.

use super::GitRepo;
use super::place;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use treebeam_core::id::{Commit, Place};
use treebeam_run::port::PortError;

/// Nobody waits longer for a gc.
const PATIENCE: Duration = Duration::from_mins(5);
/// Git itself takes the note of an older gc for one that died.
const STALE: Duration = Duration::from_hours(12);
/// How often it is looked whether it has ended.
const GLANCE: Duration = Duration::from_millis(20);

impl GitRepo {
    /// Waits for the end of a gc; whether there was one.
    pub(super) fn outlast_gc(&self) -> bool {
        let begun = Instant::now();
        let common_dir = &self.user.common_dir;
        let met = is_under_way(common_dir);
        while is_under_way(common_dir) && begun.elapsed() < PATIENCE {
            thread::sleep(GLANCE);
        }
        met
    }

    /// Whether all is there that a commit adds to another.
    pub(super) fn is_whole(
        &self,
        place: Place,
        base: &Commit,
        commit: &Commit,
    ) -> Result<bool, PortError> {
        let not = format!("^{base}");
        let arguments = ["rev-list", "--objects", "--quiet", commit.as_str(), &not];
        let answer = self.user.git.sealed(&self.seat(), &arguments).about(place).answer()?;
        Ok(answer.code == Some(0))
    }
}

/// Git notes `<pid> <host>` for as long as a gc lasts.
fn is_under_way(common_dir: &Path) -> bool {
    let note = common_dir.join("gc.pid");
    let Ok(text) = fs::read_to_string(&note) else { return false };
    let age = fs::metadata(&note).and_then(|file| file.modified()).ok();
    let age = age.and_then(|modified| modified.elapsed().ok()).unwrap_or_default();
    let pid = text.split_whitespace().next().and_then(|pid| pid.parse().ok());
    age < STALE && pid.is_none_or(place::is_alive)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_gc_is_under_way_while_its_process_lives() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let note = folder.path().join("gc.pid");
        assert!(!is_under_way(folder.path()));
        fs::write(&note, format!("{} host", std::process::id()))?;
        assert!(is_under_way(folder.path()));
        fs::write(&note, "999999999 host")?;
        assert!(!is_under_way(folder.path()), "it was killed");
        fs::write(&note, "")?;
        assert!(is_under_way(folder.path()), "it has just begun");
        let old = std::time::SystemTime::now() - 2 * STALE;
        fs::File::options().write(true).open(&note)?.set_modified(old)?;
        assert!(!is_under_way(folder.path()));
        Ok(())
    }
}
