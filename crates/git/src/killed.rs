//! Tells which signals count as a kill of git, and removes the lock files of a killed git. It does
//! not know what a call does; a call that cannot be repeated unchanged restores its starting point
//! itself.

use super::paths::{self, FileStamp};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

/// How often a call is tried if its git is killed each time.
pub(super) const MAX_KILLED_TRIES: u32 = 3;

/// How long a lock file must stay unchanged to count as left behind by a killed git.
const LOCK_REST_TIME: Duration = Duration::from_millis(500);
/// Interval at which such a lock file is polled.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Number of `SIGABRT`: git gives up by itself.
const ABORT_SIGNAL: i32 = 6;

/// Returns the signal that ended git, reported by the system or, plus 128, by a shell around git.
pub(super) fn ending_signal(status: ExitStatus) -> Option<i32> {
    // Git itself exits with 128 and 129.
    let by_shell = status.code().and_then(|code| code.checked_sub(128));
    let by_shell = by_shell.filter(|signal| (2..65).contains(signal));
    treebeam_process::exit_signal(status).or(by_shell)
}

/// Returns true if this signal means a kill from outside, so that the same call may succeed next
/// time.
pub(super) fn is_kill(signal: i32) -> bool {
    // A call that reached the file size limit would reach it again.
    ![ABORT_SIGNAL, treebeam_process::FILE_SIZE_SIGNAL].contains(&signal)
}

/// Lock files of a call that did not exist before it: if they exist after a kill, they are its own.
#[derive(Debug)]
pub(super) struct AbsentLocks<'a>(Vec<&'a Path>);

impl<'a> AbsentLocks<'a> {
    /// Notes which of these lock files do not exist.
    pub(super) fn note(locks: &'a [PathBuf]) -> Self {
        let is_absent = |lock: &&Path| fs::symlink_metadata(lock).is_err();
        Self(locks.iter().map(PathBuf::as_path).filter(is_absent).collect())
    }

    /// Removes the lock files of the killed git. One that goes or changes meanwhile belongs to
    /// another git and stays.
    pub(super) fn remove_left(&self) -> io::Result<()> {
        self.0.iter().try_for_each(|lock| {
            if is_unchanged_for(lock, LOCK_REST_TIME) { paths::remove_path(lock) } else { Ok(()) }
        })
    }
}

/// Returns true if a lock file exists and stays the same for this long.
fn is_unchanged_for(lock: &Path, time: Duration) -> bool {
    let begun = Instant::now();
    let Some(first) = lock_stamp(lock) else { return false };
    while begun.elapsed() < time {
        thread::sleep(LOCK_POLL_INTERVAL);
        if lock_stamp(lock).as_ref() != Some(&first) {
            return false;
        }
    }
    true
}

/// Returns the stamp that tells a lock file from a later one at the same path.
pub(super) fn lock_stamp(lock: &Path) -> Option<FileStamp> {
    fs::symlink_metadata(lock).ok().map(|found| paths::file_stamp(&found))
}
