//! Waiting that can be seen and broken off. How long, and why, is decided elsewhere.

use super::question::Trouble;
use jiff::Timestamp;
use std::thread;
use std::time::{Duration, Instant};
use treebeam_run::port::Role;

/// How soon somebody who wants to stop is heard.
pub(super) const GLANCE: Duration = Duration::from_millis(100);

/// Sees what goes on behind the door.
pub trait Observer: Sync {
    /// A question has to wait.
    fn waits(&self, wait: &Wait<'_>);
    /// Something to know.
    fn note(&self, text: &str);
    /// Whether to stop waiting.
    fn wants_to_stop(&self) -> bool;
}

/// A question that has to wait.
#[derive(Clone, Copy, Debug)]
pub struct Wait<'a> {
    /// Whose.
    pub role: Role,
    /// Why.
    pub why: &'a str,
    /// How long.
    pub length: Duration,
    /// Until when.
    pub until: Timestamp,
}

/// Waits.
pub(super) trait Nap: Sync {
    /// Waits this long, unless somebody wants to stop.
    fn nap(&self, role: Role, why: &str, length: Duration) -> Result<(), Trouble>;
}

/// Really waits, and says so.
pub(super) struct RealNap<'a>(pub(super) &'a dyn Observer);

impl Nap for RealNap<'_> {
    fn nap(&self, role: Role, why: &str, length: Duration) -> Result<(), Trouble> {
        let now = Timestamp::now();
        self.0.waits(&Wait { role, why, length, until: now.saturating_add(length).unwrap_or(now) });
        let due = Instant::now() + length;
        loop {
            if self.0.wants_to_stop() {
                return Err(Trouble::Interrupted);
            }
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(GLANCE));
        }
    }
}
