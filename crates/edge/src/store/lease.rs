//! One runner at a time: a lock of the operating system on `run.lock`, and beside it a note for people.
//! The lock decides; the note only says who. Nothing here takes a run away from anybody.

use super::durable;
use super::error::StoreError;
use super::layout::RunDir;
use super::os;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::thread;
use std::time::Duration;

/// The longest note that is read.
const NOTE_LIMIT: u64 = 64 * 1024;

/// How often the lock is tried, and how long after each time.
const TRIES: u32 = 5;
const MOMENT: Duration = Duration::from_millis(10);

/// The right to run a run, as long as it lives.
#[derive(Debug)]
pub struct Lease {
    run: RunDir,
    /// Held for its lock; the file itself stays empty.
    lock: File,
}

/// Who runs a run, as its note says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// The machine.
    pub hostname: String,
    /// Since when.
    pub created_at: Timestamp,
    /// When it last said that it is alive.
    pub last_heartbeat_at: Timestamp,
}

impl Lease {
    /// Takes the run.
    ///
    /// # Errors
    /// When another process has it, or the lock's file cannot be used.
    pub fn take(run: &RunDir) -> Result<Self, StoreError> {
        let path = run.lock();
        let mut how = OpenOptions::new();
        how.create(true).write(true).truncate(false);
        let lock = how.open(&path).map_err(StoreError::io("open", &path))?;
        for tries_left in (0..TRIES).rev() {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if tries_left == 0 => return Err(locked(run)),
                // Somebody who only asks who runs it holds the lock for a moment.
                Err(TryLockError::WouldBlock) => thread::sleep(MOMENT),
                Err(TryLockError::Error(error)) => {
                    return Err(StoreError::io("lock", &path)(error));
                }
            }
        }
        note(run)?;
        Ok(Self { run: run.clone(), lock })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // A note that stays says nothing: the lock decides.
        drop(fs::remove_file(self.run.holder()));
        // Closing the file would do, were there no child that holds it between its fork and its exec.
        drop(self.lock.unlock());
    }
}

/// Who runs the run, if its note is there and can be read. The process may be gone.
#[must_use]
pub fn holder(run: &RunDir) -> Option<Holder> {
    let mut text = String::new();
    File::open(run.holder()).ok()?.take(NOTE_LIMIT).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// Who runs the run at this moment, in words; nobody if its lock is free.
#[must_use]
pub fn runner(run: &RunDir) -> Option<String> {
    let lock = File::open(run.lock()).ok()?;
    match lock.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Some(in_words(run)),
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

fn in_words(run: &RunDir) -> String {
    holder(run).map_or("another process".to_owned(), |holder| {
        let Holder { pid, hostname, created_at, .. } = holder;
        format!("process {pid} on `{hostname}` since {created_at:.0}")
    })
}

fn locked(run: &RunDir) -> StoreError {
    StoreError::Locked { path: run.root().to_owned(), holder: in_words(run) }
}

fn note(run: &RunDir) -> Result<(), StoreError> {
    let now = Timestamp::now();
    let (pid, hostname) = (std::process::id(), os::hostname());
    let holder = Holder { pid, hostname, created_at: now, last_heartbeat_at: now };
    let path = run.holder();
    let write = |file: &mut File| {
        serde_json::to_writer(&mut *file, &holder)?;
        file.write_all(b"\n")
    };
    durable::replace(&path, write).map_err(StoreError::io("write", &path))
}
