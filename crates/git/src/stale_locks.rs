//! Removes lock files of refs that a killed git or a power cut left: git refuses while they exist.
//! Only the owner of a run removes them, only when no live git can still need them, and never those
//! of the user's own refs.

use super::refs::journal_ref;
use super::{GitRepo, paths};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use treebeam_run::port::PortError;

/// Age at which a lock of one of this run's refs is stale: git only writes one line under it.
const REF_LOCK_MAX_AGE: Duration = Duration::from_secs(10);
/// Interval at which a lock is polled.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Age at which the lock of the packed refs is stale: no git, the user's included, writes so long.
const PACKED_LOCK_MAX_AGE: Duration = Duration::from_mins(10);
/// Maximum time between the two locks that one deletion of a ref takes.
const SAME_DELETION_WINDOW: Duration = Duration::from_secs(2);

impl GitRepo {
    /// Removes stale locks of this run's refs and of the packed refs, from which the run's refs are
    /// deleted. A lock of a run's ref that is too young to be stale is awaited first: a run that is
    /// resumed at once must not fail on the lock of a git that was killed with it.
    ///
    /// # Errors
    /// When a lock cannot be removed.
    pub fn unlock_refs(&self) -> Result<(), PortError> {
        let common_dir = &self.user.common_dir;
        let own = common_dir.join(format!("refs/heads/tree/{}", self.run));
        let fail =
            |error| PortError::new("a lock that git left cannot be removed").with_cause(error);
        let of_journal = common_dir.join(format!("{}.lock", journal_ref(&self.run)));
        let of_journal = await_stale_lock(&of_journal).map_err(fail)?;
        let packed = packed_refs_lock_path(common_dir);
        remove_if_old(&packed, PACKED_LOCK_MAX_AGE).map_err(fail)?;
        let mut left = remove_locks(&own).map_err(fail)?;
        left.extend(of_journal);
        if is_left_with(&packed, &left) {
            paths::remove_path(&packed).map_err(fail)
        } else {
            Ok(())
        }
    }
}

/// Returns the path of the lock file of the packed refs.
pub(super) fn packed_refs_lock_path(common_dir: &Path) -> PathBuf {
    common_dir.join("packed-refs.lock")
}

/// Removes the lock of one ref if it is stale.
pub(super) fn remove_ref_lock(lock: &Path) -> Result<(), PortError> {
    remove_if_old(lock, REF_LOCK_MAX_AGE).map_err(|error| {
        PortError::new(format!("`{}` cannot be removed", lock.display())).with_cause(error)
    })
}

/// Removes the lock of the packed refs if it is stale.
pub(super) fn remove_packed_lock(lock: &Path) -> Result<(), PortError> {
    remove_if_old(lock, PACKED_LOCK_MAX_AGE).map_err(|error| {
        PortError::new(format!("`{}` cannot be removed", lock.display())).with_cause(error)
    })
}

/// Returns true if the lock of the packed refs was left by the git that also left a lock of a ref
/// at one of these times: a deletion first locks the ref, then the packed refs.
fn is_left_with(packed: &Path, left: &[SystemTime]) -> bool {
    let taken = fs::symlink_metadata(packed).and_then(|found| found.modified());
    let since = |reference: &SystemTime| taken.as_ref().ok()?.duration_since(*reference).ok();
    left.iter().filter_map(since).any(|since| since <= SAME_DELETION_WINDOW)
}

/// Removes stale locks of the run's refs, which are in one folder without subfolders; returns when
/// they were taken.
fn remove_locks(folder: &Path) -> io::Result<Vec<SystemTime>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut left = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "lock") {
            left.extend(await_stale_lock(&path)?);
        }
    }
    Ok(left)
}

/// Waits until the lock of a ref is gone or stale, and removes it if stale. Never waits longer than
/// the stale age, even if the clock changes. Returns when a removed lock was taken.
fn await_stale_lock(lock: &Path) -> io::Result<Option<SystemTime>> {
    let begun = Instant::now();
    while lock.symlink_metadata().is_ok()
        && !is_old(lock, REF_LOCK_MAX_AGE)
        && begun.elapsed() <= REF_LOCK_MAX_AGE
    {
        thread::sleep(LOCK_POLL_INTERVAL);
    }
    let taken = lock.symlink_metadata().and_then(|found| found.modified()).ok();
    let taken =
        taken.filter(|_| is_old(lock, REF_LOCK_MAX_AGE) || begun.elapsed() > REF_LOCK_MAX_AGE);
    if taken.is_some() {
        paths::remove_path(lock)?;
    }
    Ok(taken)
}

fn remove_if_old(path: &Path, age: Duration) -> io::Result<()> {
    if is_old(path, age) { paths::remove_path(path) } else { Ok(()) }
}

fn is_old(path: &Path, age: Duration) -> bool {
    let modified = fs::symlink_metadata(path).and_then(|found| found.modified());
    modified.ok().and_then(|time| time.elapsed().ok()).is_some_and(|past| past > age)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_young_lock_is_waited_for_and_one_that_stays_is_removed() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let made = |name: &str, before: Duration| {
            let path = folder.path().join(name);
            File::create(&path)?.set_modified(SystemTime::now() - before)?;
            io::Result::Ok(path)
        };
        let begun = Instant::now();
        let nearly = REF_LOCK_MAX_AGE.saturating_sub(Duration::from_millis(300));
        let (left, held) = (made("left.lock", nearly)?, made("held.lock", Duration::ZERO)?);
        let kept = made("n0000", REF_LOCK_MAX_AGE * 2)?;
        let holder = thread::spawn(move || {
            thread::sleep(Duration::from_millis(200));
            fs::remove_file(held)
        });
        remove_locks(folder.path())?;
        assert!(holder.join().is_ok_and(|gone| gone.is_ok()), "whoever holds it removes it itself");
        assert!(!left.exists() && kept.exists());
        assert!(begun.elapsed() < REF_LOCK_MAX_AGE, "nobody waits for longer than is needed");
        Ok(())
    }
}
