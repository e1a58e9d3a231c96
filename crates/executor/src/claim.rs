//! Who does a job: an operating-system lock on a file beside the job's folder, where no sweep that clears its folder
//! removes it. Whoever starts a job takes the lock and hands it to the job's process, which has it from its first moment to
//! its last: there is no time at which it lives unseen.

use super::job_result::is_file_within;
use super::system;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use treebeam_store::record_file::{self, RecordKind};

/// The file whose lock is held while the job in this folder is done: `s1.lock` beside `s1`.
fn lock_path(folder: &Path) -> PathBuf {
    folder.with_extension("lock")
}

/// How a job's lock stands.
#[derive(Debug)]
pub(super) enum JobClaim {
    /// It is ours now.
    Acquired(File),
    /// A process has it that lives.
    HeldElsewhere,
}

/// Takes the lock of the job in this folder, if nobody has it.
pub(super) fn take_claim(folder: &Path) -> io::Result<JobClaim> {
    let file = record_file::open_lock(&lock_path(folder))?;
    match file.try_lock() {
        Ok(()) => Ok(JobClaim::Acquired(file)),
        Err(TryLockError::WouldBlock) => Ok(JobClaim::HeldElsewhere),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Whether a process has the lock. Those who only look do not keep each other from it.
pub(super) fn is_held(folder: &Path) -> io::Result<bool> {
    let path = lock_path(folder);
    if !is_file_within(&path, u64::MAX) {
        return Ok(false);
    }
    match record_file::open_record(&path, RecordKind::Lock)?.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The lock of the job in this folder, as its own process has it: handed down on standard input, or free.
pub(super) fn inherit_claim(folder: &Path) -> io::Result<JobClaim> {
    if system::is_standard_input(&lock_path(folder)) {
        Ok(JobClaim::Acquired(record_file::open_record(&lock_path(folder), RecordKind::Lock)?))
    } else {
        take_claim(folder)
    }
}
