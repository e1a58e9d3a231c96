//! Deletes refs while git's `packed-refs.lock` exists, with one wait for the whole process. Every
//! deletion needs that lock, and git waits for it each time. Here the lock is awaited once; while
//! it stays, further deletions fail at once. An old lock is removed.

use super::call::GitCall;
use super::killed::lock_stamp;
use super::paths::FileStamp;
use super::stale_locks;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use treebeam_run::port::PortError;

/// Maximum wait for the lock of the packed refs.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
/// Interval at which the lock is polled.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// State of the wait for the lock: the stamp of a lock that was awaited in vain.
#[derive(Debug, Default)]
pub(crate) struct PackedRefs {
    stuck: Mutex<Option<FileStamp>>,
}

impl PackedRefs {
    /// Runs a call that takes the lock of the packed refs.
    pub(super) fn run_with_lock(&self, common_dir: &Path, call: GitCall) -> Result<(), PortError> {
        let lock = stale_locks::packed_refs_lock_path(common_dir);
        self.await_free(&lock)?;
        let answer = call.with_locks([lock.clone()]).run()?;
        if answer.code == Some(0) {
            return Ok(());
        }
        // A lock that was taken after the check has been awaited by git.
        if answer.stderr.contains("packed-refs.lock") {
            *self.stuck.lock().unwrap_or_else(PoisonError::into_inner) = lock_stamp(&lock);
        }
        Err(answer.to_error())
    }

    /// Waits for the release of the lock, unless the same lock was awaited in vain before. Other
    /// threads block until the first one has waited.
    fn await_free(&self, lock: &Path) -> Result<(), PortError> {
        let mut stuck = self.stuck.lock().unwrap_or_else(PoisonError::into_inner);
        stale_locks::remove_packed_lock(lock)?;
        let begun = Instant::now();
        while let Some(stamp) = lock_stamp(lock) {
            if stuck.as_ref() == Some(&stamp) || begun.elapsed() >= LOCK_PATIENCE {
                *stuck = Some(stamp);
                return Err(lock_held_error(lock));
            }
            thread::sleep(LOCK_POLL_INTERVAL);
        }
        Ok(())
    }
}

/// Builds the error; its text is the same for every ref, so that it is shown once.
fn lock_held_error(lock: &Path) -> PortError {
    let what = format!("`{}` keeps git from deleting branches", lock.display());
    PortError::new(format!("{what}: if no git is at work in this repository, remove that file"))
}
