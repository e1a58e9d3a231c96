//! Waiting that can be seen and broken off. How long, and why, is decided elsewhere.

use super::question::Trouble;
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use treebeam_run::port::Role;

/// How soon somebody who wants to stop is heard.
pub(super) const GLANCE: Duration = Duration::from_millis(100);

/// Sees what goes on behind the door.
pub trait Observer: Sync {
    /// A question has to wait.
    fn waits(&self, wait: &Wait<'_>);
    /// A question that had to wait is answered or given up.
    fn no_longer_waits(&self, _id: u64) {}
    /// Something to know.
    fn note(&self, text: &str);
    /// Whether to stop waiting.
    fn wants_to_stop(&self) -> bool;
}

/// A question that has to wait.
#[derive(Clone, Copy, Debug)]
pub struct Wait<'a> {
    /// Tells it from other questions of this door.
    pub id: u64,
    /// Whose.
    pub role: Role,
    /// Why.
    pub why: &'a str,
    /// The time of its first pause.
    pub since: Timestamp,
    /// How long.
    pub length: Duration,
    /// Until when.
    pub until: Timestamp,
}

/// A pause of a question before it is asked again.
pub(super) struct RetryPause<'a> {
    pub(super) id: u64,
    pub(super) role: Role,
    pub(super) why: &'a str,
    pub(super) since: Timestamp,
    pub(super) length: Duration,
    /// True once waiting any longer is of no use.
    pub(super) is_in_vain: &'a dyn Fn() -> bool,
}

/// Waits.
pub(super) trait Nap: Sync {
    /// The time on a clock that only goes forward.
    fn now(&self) -> Duration;
    /// Waits for a pause to end, unless the program is to stop or waiting is in vain.
    fn nap(&self, pause: &RetryPause<'_>) -> Result<(), Trouble>;
    /// Ends the wait of a question, if it had to wait.
    fn end_wait(&self, _id: u64) {}
}

/// Really waits, and says so.
pub(super) struct RealNap<'a> {
    observer: &'a dyn Observer,
    begun: Instant,
    /// Numbers of the questions that were reported as waiting.
    told: Mutex<BTreeSet<u64>>,
}

impl<'a> RealNap<'a> {
    pub(super) fn new(observer: &'a dyn Observer) -> Self {
        Self { observer, begun: Instant::now(), told: Mutex::default() }
    }

    fn told(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Nap for RealNap<'_> {
    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn nap(&self, pause: &RetryPause<'_>) -> Result<(), Trouble> {
        let RetryPause { id, role, why, since, length, is_in_vain } = *pause;
        let now = Timestamp::now();
        let until = now.saturating_add(length).unwrap_or(now);
        self.told().insert(id);
        self.observer.waits(&Wait { id, role, why, since, length, until });
        let due = Instant::now() + length;
        loop {
            if self.observer.wants_to_stop() {
                return Err(Trouble::Interrupted);
            }
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() || is_in_vain() {
                return Ok(());
            }
            thread::sleep(left.min(GLANCE));
        }
    }

    fn end_wait(&self, id: u64) {
        if self.told().remove(&id) {
            self.observer.no_longer_waits(id);
        }
    }
}
