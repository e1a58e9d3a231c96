//! Lock files of refs that a git which was killed, or a power cut, left behind: git refuses for as long as they are there.
//! Only a run's owner removes them, only where no git that is alive can still need them, and never the user's own.

use super::{GitRepo, journal_ref, packed_refs, place};
use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use treebeam_run::port::PortError;

/// No git has one of this run's refs locked for so long: it writes one line.
const REF: Duration = Duration::from_secs(10);
/// How often it is looked whether a lock is still there.
const GLANCE: Duration = Duration::from_millis(50);
/// No git, the user's included, takes so long to write all packed refs.
const PACKED: Duration = Duration::from_mins(10);
/// A deletion of a ref takes both of its locks within this time.
const SAME_DELETION: Duration = Duration::from_secs(2);

impl GitRepo {
    /// Removes locks that nobody holds any more: of this run's refs, and of the packed ones, which ours are deleted from. Where
    /// one of a ref of this run is so young that somebody may hold it, that is waited for: whoever resumes a run at once
    /// shall not find it locked by what was killed with it.
    ///
    /// # Errors
    /// When one cannot be removed.
    pub fn unlock_refs(&self) -> Result<(), PortError> {
        let common_dir = &self.user.common_dir;
        let own = common_dir.join(format!("refs/heads/tree/{}", self.run));
        let fail =
            |error| PortError::new("a lock that git left cannot be removed").caused_by(error);
        let of_journal = common_dir.join(format!("{}.lock", journal_ref(&self.run)));
        let of_journal = outlast(&of_journal).map_err(fail)?;
        let packed = packed_refs::lock_file(common_dir);
        remove_old(&packed, PACKED).map_err(fail)?;
        let mut left = remove_locks(&own).map_err(fail)?;
        left.extend(of_journal);
        if is_left_with(&packed, &left) { place::remove(&packed).map_err(fail) } else { Ok(()) }
    }
}

/// Removes the lock of one ref, if it is older than any git needs it.
pub(super) fn remove_ref_lock(lock: &Path) -> Result<(), PortError> {
    remove_old(lock, REF).map_err(|error| {
        PortError::new(format!("`{}` cannot be removed", lock.display())).caused_by(error)
    })
}

/// Removes the lock of the packed refs, if it is older than any git needs it.
pub(super) fn remove_packed_lock(lock: &Path) -> Result<(), PortError> {
    remove_old(lock, PACKED).map_err(|error| {
        PortError::new(format!("`{}` cannot be removed", lock.display())).caused_by(error)
    })
}

/// Whether the lock of the packed refs was left by a git that also left one of these locks of refs, given by the times when
/// they were taken: a deletion takes the lock of the ref, then that of the packed refs.
fn is_left_with(packed: &Path, left: &[SystemTime]) -> bool {
    let taken = fs::symlink_metadata(packed).and_then(|found| found.modified());
    let since = |reference: &SystemTime| taken.as_ref().ok()?.duration_since(*reference).ok();
    left.iter().filter_map(since).any(|since| since <= SAME_DELETION)
}

/// Removes the locks of the run's refs, which lie in one folder, without folders of their own; when those were taken that a
/// git has left.
fn remove_locks(folder: &Path) -> io::Result<Vec<SystemTime>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut left = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "lock") {
            left.extend(outlast(&path)?);
        }
    }
    Ok(left)
}

/// Waits until the lock of a ref is gone, or is older than any git needs it, and removes it then. However clocks go, it does
/// not wait for longer than that. When it was taken, if it is removed here.
fn outlast(lock: &Path) -> io::Result<Option<SystemTime>> {
    let begun = Instant::now();
    while lock.symlink_metadata().is_ok() && !is_old(lock, REF) && begun.elapsed() <= REF {
        thread::sleep(GLANCE);
    }
    let taken = lock.symlink_metadata().and_then(|found| found.modified()).ok();
    let taken = taken.filter(|_| is_old(lock, REF) || begun.elapsed() > REF);
    if taken.is_some() {
        place::remove(lock)?;
    }
    Ok(taken)
}

fn remove_old(path: &Path, age: Duration) -> io::Result<()> {
    if is_old(path, age) { place::remove(path) } else { Ok(()) }
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
        let nearly = REF.saturating_sub(Duration::from_millis(300));
        let (left, held) = (made("left.lock", nearly)?, made("held.lock", Duration::ZERO)?);
        let kept = made("n0000", REF * 2)?;
        let holder = thread::spawn(move || {
            thread::sleep(Duration::from_millis(200));
            fs::remove_file(held)
        });
        remove_locks(folder.path())?;
        assert!(holder.join().is_ok_and(|gone| gone.is_ok()), "whoever holds it removes it itself");
        assert!(!left.exists() && kept.exists());
        assert!(begun.elapsed() < REF, "nobody waits for longer than is needed");
        Ok(())
    }
}
