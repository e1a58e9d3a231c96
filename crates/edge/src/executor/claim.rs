//! Who does a job: an operating-system lock on a file beside the job's folder, where no sweep that clears its folder
//! removes it. Whoever starts a job takes the lock and hands it to the job's process, which has it from its first moment to
//! its last: there is no time at which it lives unseen.

use super::outcome::is_plain;
use super::system;
use crate::store::record_file::{self, RecordKind};
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The file whose lock is held while the job in this folder is done: `s1.lock` beside `s1`.
fn lock(folder: &Path) -> PathBuf {
    folder.with_extension("lock")
}

/// How a job's lock stands.
#[derive(Debug)]
pub(super) enum Claim {
    /// It is ours now.
    Ours(File),
    /// A process has it that lives.
    Anothers,
}

/// Takes the lock of the job in this folder, if nobody has it.
pub(super) fn take(folder: &Path) -> io::Result<Claim> {
    let file = record_file::open_lock(&lock(folder))?;
    match file.try_lock() {
        Ok(()) => Ok(Claim::Ours(file)),
        Err(TryLockError::WouldBlock) => Ok(Claim::Anothers),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Whether a process has the lock. Those who only look do not keep each other from it.
pub(super) fn is_held(folder: &Path) -> io::Result<bool> {
    let path = lock(folder);
    if !is_plain(&path, u64::MAX) {
        return Ok(false);
    }
    match record_file::open(&path, RecordKind::Lock)?.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The lock of the job in this folder, as its own process has it: handed down on standard input, or free.
pub(super) fn inherit(folder: &Path) -> io::Result<Claim> {
    if system::is_standard_input(&lock(folder)) {
        Ok(Claim::Ours(record_file::open(&lock(folder), RecordKind::Lock)?))
    } else {
        take(folder)
    }
}
