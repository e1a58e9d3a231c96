//! Claims jobs by a lock of the operating system on a file beside the job's folder. The file is
//! outside of the folder because a sweep may clear that. The process that starts a job takes the
//! lock and hands it to the job's process, so the lock is held from the job's first moment to its
//! last.

use super::job_result::is_file_within;
use super::system;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use treebeam_store::record_file::{self, RecordKind};

/// Returns the path of a job's lock file: `s1.lock` beside the folder `s1`.
fn lock_path(folder: &Path) -> PathBuf {
    folder.with_extension("lock")
}

/// Result of an attempt to take a job's lock.
#[derive(Debug)]
pub(super) enum JobClaim {
    /// The lock was free and belongs to this process now.
    Acquired(File),
    /// Another live process has the lock.
    HeldElsewhere,
}

/// Takes the lock of the job in this folder if it is free.
pub(super) fn take_claim(folder: &Path) -> io::Result<JobClaim> {
    let file = record_file::open_lock(&lock_path(folder))?;
    match file.try_lock() {
        Ok(()) => Ok(JobClaim::Acquired(file)),
        Err(TryLockError::WouldBlock) => Ok(JobClaim::HeldElsewhere),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Returns true if a process has the lock of this job. Only a shared lock is tried, so that two
/// such checks do not block each other.
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

/// Takes over the job's lock in its own process: inherited by standard input, or free.
pub(super) fn inherit_claim(folder: &Path) -> io::Result<JobClaim> {
    if system::is_standard_input(&lock_path(folder)) {
        Ok(JobClaim::Acquired(record_file::open_record(&lock_path(folder), RecordKind::Lock)?))
    } else {
        take_claim(folder)
    }
}
