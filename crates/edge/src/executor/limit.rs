//! How long a job may take. Its file says so at first; whoever adopts the job may say otherwise, in another file beside the
//! job's folder, where no sweep that clears its folder removes it. The runner writes it, the job's process reads it.

use super::outcome::is_plain;
use crate::store::durable;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often a job looks whether something else is said.
const GLANCE: Duration = Duration::from_millis(500);
/// The longest document that is read.
const LONGEST: u64 = 1 << 10;

/// What is said. No time: it may take as long as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Said {
    timeout: Option<Duration>,
}

/// The file that is about the job in this folder: `s1.limit` beside `s1`.
fn file(folder: &Path) -> PathBuf {
    folder.with_extension("limit")
}

/// Tells the job in this folder how long it may take in all; the file is begun in `scratch`.
pub(super) fn say(scratch: &Path, folder: &Path, timeout: Option<Duration>) -> io::Result<()> {
    let said = Said { timeout };
    if heard(folder) == Some(said) {
        return Ok(());
    }
    let text = serde_json::to_vec(&said)?;
    durable::replace_from(scratch, &file(folder), |file| file.write_all(&text))
}

/// What was said to the job in this folder; nothing where nobody has, or it cannot be read.
fn heard(folder: &Path) -> Option<Said> {
    let file = file(folder);
    if !is_plain(&file, LONGEST) {
        return None;
    }
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

/// How long a job may take, as its own process knows it.
pub(super) struct Limit<'a> {
    folder: &'a Path,
    begun: Instant,
    timeout: Cell<Option<Duration>>,
    looked: Cell<Instant>,
}

impl<'a> Limit<'a> {
    /// Of a job that has begun with this much time.
    pub(super) const fn new(folder: &'a Path, begun: Instant, timeout: Option<Duration>) -> Self {
        Self { folder, begun, timeout: Cell::new(timeout), looked: Cell::new(begun) }
    }

    /// How long all commands may take together, as far as that is known by now.
    pub(super) const fn timeout(&self) -> Option<Duration> {
        self.timeout.get()
    }

    /// When all must be done.
    pub(super) fn due(&self) -> Option<Instant> {
        if self.looked.get().elapsed() >= GLANCE {
            self.looked.set(Instant::now());
            if let Some(said) = heard(self.folder) {
                self.timeout.set(said.timeout);
            }
        }
        self.timeout.get().and_then(|timeout| self.begun.checked_add(timeout))
    }
}
