//! Holds the time limit of a job, which may be changed or replaced by a withdrawal while it runs.
//! The first limit is in the job's file. An adopting runner writes another file, an order, beside
//! the job's folder, because a sweep may clear the folder; the job's process reads it.

use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use treebeam_store::atomic_file;
use treebeam_store::record_file::{self, RecordKind};

/// Interval at which a job reads its order.
const ORDER_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum size of the order file, in bytes.
const MAX_ORDER_BYTES: u64 = 1 << 10;

/// An order of a runner to a running job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JobOrder {
    /// Total time that the job may take; `None` for no limit.
    Within(Option<Duration>),
    /// The job must end without a result.
    Withdrawn,
}

/// Returns the path of a job's order file: `s1.limit` beside the folder `s1`.
fn order_path(folder: &Path) -> PathBuf {
    folder.with_extension("limit")
}

/// Orders a total time limit for the job in this folder; the file is first written in `scratch`.
pub(super) fn order_timeout(
    scratch: &Path,
    folder: &Path,
    timeout: Option<Duration>,
) -> io::Result<()> {
    write_order(scratch, folder, JobOrder::Within(timeout))
}

/// Orders the job in this folder to end without a result.
pub(super) fn order_withdrawal(scratch: &Path, folder: &Path) -> io::Result<()> {
    write_order(scratch, folder, JobOrder::Withdrawn)
}

fn write_order(scratch: &Path, folder: &Path, order: JobOrder) -> io::Result<()> {
    if read_order(folder) == Some(order) {
        return Ok(());
    }
    let text = serde_json::to_vec(&order)?;
    atomic_file::replace_from(scratch, &order_path(folder), |file| file.write_all(&text))
}

/// Reads the order to the job in this folder; `None` if there is none or it is unreadable.
fn read_order(folder: &Path) -> Option<JobOrder> {
    let file = record_file::open_record(&order_path(folder), RecordKind::Lock).ok()?;
    serde_json::from_slice(&record_file::read_to_limit(file, MAX_ORDER_BYTES).ok()?).ok()
}

/// Time limit of a job, as its own process knows it.
pub(super) struct JobLimit<'a> {
    folder: &'a Path,
    begun: Instant,
    order: Cell<JobOrder>,
    checked_at: Cell<Instant>,
}

impl<'a> JobLimit<'a> {
    /// Creates the limit of a job that began at `begun` with this time limit.
    pub(super) const fn new(folder: &'a Path, begun: Instant, timeout: Option<Duration>) -> Self {
        Self {
            folder,
            begun,
            order: Cell::new(JobOrder::Within(timeout)),
            checked_at: Cell::new(begun),
        }
    }

    /// Returns the last known time limit of all commands together.
    pub(super) const fn timeout(&self) -> Option<Duration> {
        match self.order.get() {
            JobOrder::Within(timeout) => timeout,
            JobOrder::Withdrawn => Some(Duration::ZERO),
        }
    }

    /// Returns true if a withdrawal has been read.
    pub(super) fn is_withdrawn(&self) -> bool {
        self.order.get() == JobOrder::Withdrawn
    }

    /// Returns the time at which all commands must be done; reads a new order from time to time.
    pub(super) fn deadline(&self) -> Option<Instant> {
        if self.checked_at.get().elapsed() >= ORDER_POLL_INTERVAL {
            self.checked_at.set(Instant::now());
            if let Some(order) = read_order(self.folder) {
                self.order.set(order);
            }
        }
        self.timeout().and_then(|timeout| self.begun.checked_add(timeout))
    }
}
