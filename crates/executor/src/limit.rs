//! How long a job may take. Its file says so at first; whoever adopts the job may say otherwise, in another file beside the
//! job's folder, where no sweep that clears its folder removes it, or that nobody wants it any more. The runner writes the
//! file, the job's process reads it.

use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use treebeam_store::atomic_file;
use treebeam_store::record_file::{self, RecordKind};

/// How often a job looks whether something else is said.
const ORDER_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The longest document that is read.
const MAX_ORDER_BYTES: u64 = 1 << 10;

/// What is said to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JobOrder {
    /// It may take this long in all, or as long as it likes.
    Within(Option<Duration>),
    /// Nobody wants it any more: it ends, and has no result.
    Withdrawn,
}

/// The file that is about the job in this folder: `s1.limit` beside `s1`.
fn order_path(folder: &Path) -> PathBuf {
    folder.with_extension("limit")
}

/// Tells the job in this folder how long it may take in all; the file is begun in `scratch`.
pub(super) fn order_timeout(
    scratch: &Path,
    folder: &Path,
    timeout: Option<Duration>,
) -> io::Result<()> {
    write_order(scratch, folder, JobOrder::Within(timeout))
}

/// Tells the job in this folder to end without a result.
pub(super) fn order_withdrawal(scratch: &Path, folder: &Path) -> io::Result<()> {
    write_order(scratch, folder, JobOrder::Withdrawn)
}

fn write_order(scratch: &Path, folder: &Path, said: JobOrder) -> io::Result<()> {
    if read_order(folder) == Some(said) {
        return Ok(());
    }
    let text = serde_json::to_vec(&said)?;
    atomic_file::replace_from(scratch, &order_path(folder), |file| file.write_all(&text))
}

/// What was said to the job in this folder; nothing where nobody has, or it cannot be read.
fn read_order(folder: &Path) -> Option<JobOrder> {
    let file = record_file::open_record(&order_path(folder), RecordKind::Lock).ok()?;
    serde_json::from_slice(&record_file::read_to_limit(file, MAX_ORDER_BYTES).ok()?).ok()
}

/// How long a job may take, as its own process knows it.
pub(super) struct JobLimit<'a> {
    folder: &'a Path,
    begun: Instant,
    order: Cell<JobOrder>,
    checked_at: Cell<Instant>,
}

impl<'a> JobLimit<'a> {
    /// Of a job that has begun with this much time.
    pub(super) const fn new(folder: &'a Path, begun: Instant, timeout: Option<Duration>) -> Self {
        Self {
            folder,
            begun,
            order: Cell::new(JobOrder::Within(timeout)),
            checked_at: Cell::new(begun),
        }
    }

    /// How long all commands may take together, as far as that is known by now.
    pub(super) const fn timeout(&self) -> Option<Duration> {
        match self.order.get() {
            JobOrder::Within(timeout) => timeout,
            JobOrder::Withdrawn => Some(Duration::ZERO),
        }
    }

    /// Whether nobody wants a result any more, as far as that is known by now.
    pub(super) fn is_withdrawn(&self) -> bool {
        self.order.get() == JobOrder::Withdrawn
    }

    /// When all must be done.
    pub(super) fn deadline(&self) -> Option<Instant> {
        if self.checked_at.get().elapsed() >= ORDER_POLL_INTERVAL {
            self.checked_at.set(Instant::now());
            if let Some(said) = read_order(self.folder) {
                self.order.set(said);
            }
        }
        self.timeout().and_then(|timeout| self.begun.checked_add(timeout))
    }
}
