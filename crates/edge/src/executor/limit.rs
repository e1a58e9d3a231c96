//! How long a job may take. Its file says so at first; whoever adopts the job may say otherwise, in another file beside the
//! job's folder, where no sweep that clears its folder removes it, or that nobody wants it any more. The runner writes the
//! file, the job's process reads it.

use crate::store::durable;
use crate::store::record_file::{self, RecordKind};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often a job looks whether something else is said.
const GLANCE: Duration = Duration::from_millis(500);
/// The longest document that is read.
const LONGEST: u64 = 1 << 10;

/// What is said to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    /// It may take this long in all, or as long as it likes.
    Within(Option<Duration>),
    /// Nobody wants it any more: it ends, and has no result.
    Withdrawn,
}

/// The file that is about the job in this folder: `s1.limit` beside `s1`.
fn file(folder: &Path) -> PathBuf {
    folder.with_extension("limit")
}

/// Tells the job in this folder how long it may take in all; the file is begun in `scratch`.
pub(super) fn say(scratch: &Path, folder: &Path, timeout: Option<Duration>) -> io::Result<()> {
    put(scratch, folder, Said::Within(timeout))
}

/// Tells the job in this folder to end without a result.
pub(super) fn withdraw(scratch: &Path, folder: &Path) -> io::Result<()> {
    put(scratch, folder, Said::Withdrawn)
}

fn put(scratch: &Path, folder: &Path, said: Said) -> io::Result<()> {
    if heard(folder) == Some(said) {
        return Ok(());
    }
    let text = serde_json::to_vec(&said)?;
    durable::replace_from(scratch, &file(folder), |file| file.write_all(&text))
}

/// What was said to the job in this folder; nothing where nobody has, or it cannot be read.
fn heard(folder: &Path) -> Option<Said> {
    let file = record_file::open(&file(folder), RecordKind::Lock).ok()?;
    serde_json::from_slice(&record_file::read_to_limit(file, LONGEST).ok()?).ok()
}

/// How long a job may take, as its own process knows it.
pub(super) struct Limit<'a> {
    folder: &'a Path,
    begun: Instant,
    said: Cell<Said>,
    looked: Cell<Instant>,
}

impl<'a> Limit<'a> {
    /// Of a job that has begun with this much time.
    pub(super) const fn new(folder: &'a Path, begun: Instant, timeout: Option<Duration>) -> Self {
        Self { folder, begun, said: Cell::new(Said::Within(timeout)), looked: Cell::new(begun) }
    }

    /// How long all commands may take together, as far as that is known by now.
    pub(super) const fn timeout(&self) -> Option<Duration> {
        match self.said.get() {
            Said::Within(timeout) => timeout,
            Said::Withdrawn => Some(Duration::ZERO),
        }
    }

    /// Whether nobody wants a result any more, as far as that is known by now.
    pub(super) fn is_withdrawn(&self) -> bool {
        self.said.get() == Said::Withdrawn
    }

    /// When all must be done.
    pub(super) fn due(&self) -> Option<Instant> {
        if self.looked.get().elapsed() >= GLANCE {
            self.looked.set(Instant::now());
            if let Some(said) = heard(self.folder) {
                self.said.set(said);
            }
        }
        self.timeout().and_then(|timeout| self.begun.checked_add(timeout))
    }
}
