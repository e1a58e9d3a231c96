//! Repeating a git that was killed: which signals count as a kill, and the lock files that such a git leaves behind. It does
//! not know what a call does; a call that cannot be repeated as it is restores its own beginning.

use super::paths::{self, FileStamp};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

/// How often a call is tried whose git is killed each time.
pub(super) const MAX_KILLED_TRIES: u32 = 3;

/// How long a lock file must stay as it is before it counts as left behind by a killed git.
const LOCK_REST_TIME: Duration = Duration::from_millis(500);
/// How often a lock file is looked at meanwhile.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// `SIGABRT`: git gives up by itself.
const ABORT_SIGNAL: i32 = 6;

/// The signal that ended git, be it told by the system or, with 128 added, by a shell that runs git.
pub(super) fn ending_signal(status: ExitStatus) -> Option<i32> {
    // Git itself exits with 128 and 129.
    let by_shell = status.code().and_then(|code| code.checked_sub(128));
    let by_shell = by_shell.filter(|signal| (2..65).contains(signal));
    treebeam_process::exit_signal(status).or(by_shell)
}

/// Whether a git that ended by this signal was killed from outside: the same call may succeed the next time.
pub(super) fn is_kill(signal: i32) -> bool {
    // What has reached the limit of a file's size would reach it again.
    ![ABORT_SIGNAL, treebeam_process::FILE_SIZE_SIGNAL].contains(&signal)
}

/// The lock files of a call that were not there before it: those that are there after its git was killed are its own.
#[derive(Debug)]
pub(super) struct AbsentLocks<'a>(Vec<&'a Path>);

impl<'a> AbsentLocks<'a> {
    /// Notes which of these lock files are not there.
    pub(super) fn note(locks: &'a [PathBuf]) -> Self {
        let is_absent = |lock: &&Path| fs::symlink_metadata(lock).is_err();
        Self(locks.iter().map(PathBuf::as_path).filter(is_absent).collect())
    }

    /// Removes those that a killed git has left. One that goes or changes meanwhile belongs to another git, and stays.
    pub(super) fn remove_left(&self) -> io::Result<()> {
        self.0.iter().try_for_each(|lock| {
            if is_unchanged_for(lock, LOCK_REST_TIME) { paths::remove_path(lock) } else { Ok(()) }
        })
    }
}

/// Whether a lock file is there and stays the same for this long.
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

/// What tells a lock file from a later one at the same path; nothing where there is none.
pub(super) fn lock_stamp(lock: &Path) -> Option<FileStamp> {
    fs::symlink_metadata(lock).ok().map(|found| paths::file_stamp(&found))
}
