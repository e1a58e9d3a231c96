//! Deleting refs while git's `packed-refs.lock` is there: every deletion needs that lock, and git waits for it each time. Here
//! one lock is waited for once; while it stays, further deletions fail at once. An old one is removed.

use super::call::GitCall;
use super::killed::lock_stamp;
use super::paths::FileStamp;
use super::stale_locks;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use treebeam_run::port::PortError;

/// How long a lock of the packed refs is waited for.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked at meanwhile.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The lock of the packed refs that was waited for in vain, as far as this process knows.
#[derive(Debug, Default)]
pub(crate) struct PackedRefs {
    stuck: Mutex<Option<FileStamp>>,
}

/// The lock file of the packed refs.
pub(super) fn packed_refs_lock_path(common_dir: &Path) -> PathBuf {
    common_dir.join("packed-refs.lock")
}

impl PackedRefs {
    /// Runs a call that takes the lock.
    pub(super) fn run_with_lock(&self, common_dir: &Path, call: GitCall) -> Result<(), PortError> {
        let lock = packed_refs_lock_path(common_dir);
        self.await_free(&lock)?;
        let answer = call.with_locks([lock.clone()]).run()?;
        if answer.code == Some(0) {
            return Ok(());
        }
        // One that came after the look has been waited for by git.
        if answer.stderr.contains("packed-refs.lock") {
            *self.stuck.lock().unwrap_or_else(PoisonError::into_inner) = lock_stamp(&lock);
        }
        Err(answer.to_error())
    }

    /// Waits for the end of a lock, unless that was in vain before. Other threads wait with the first one.
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

/// The same words for every ref: they are shown once.
fn lock_held_error(lock: &Path) -> PortError {
    let what = format!("`{}` keeps git from deleting branches", lock.display());
    PortError::new(format!("{what}: if no git is at work in this repository, remove that file"))
}
