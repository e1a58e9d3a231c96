//! Waiting that can be seen and broken off. How long, and why, is decided elsewhere.

use super::question::TryError;
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use treebeam_run::port::AgentRole;

/// How soon somebody who wants to stop is heard.
pub(super) const STOP_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Sees what goes on behind the door.
pub trait DoorObserver: Sync {
    /// A question has to wait.
    fn on_wait(&self, wait: &QuestionWait<'_>);
    /// A question that had to wait is answered or given up.
    fn on_wait_end(&self, _id: u64) {}
    /// Something to know.
    fn on_note(&self, text: &str);
    /// Whether to stop waiting.
    fn wants_to_stop(&self) -> bool;
}

/// A question that has to wait.
#[derive(Clone, Copy, Debug)]
pub struct QuestionWait<'a> {
    /// Tells it from other questions of this door.
    pub id: u64,
    /// Whose.
    pub role: AgentRole,
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
    pub(super) role: AgentRole,
    pub(super) why: &'a str,
    pub(super) since: Timestamp,
    pub(super) length: Duration,
    /// True once waiting any longer is of no use.
    pub(super) is_in_vain: &'a dyn Fn() -> bool,
}

/// Waits.
pub(super) trait RetryTimer: Sync {
    /// The time on a clock that only goes forward.
    fn now(&self) -> Duration;
    /// Waits for a pause to end, unless the program is to stop or waiting is in vain.
    fn wait_pause(&self, pause: &RetryPause<'_>) -> Result<(), TryError>;
    /// Ends the wait of a question, if it had to wait.
    fn end_wait(&self, _id: u64) {}
}

/// Really waits, and says so.
pub(super) struct SystemTimer<'a> {
    observer: &'a dyn DoorObserver,
    begun: Instant,
    /// Numbers of the questions that were reported as waiting.
    reported: Mutex<BTreeSet<u64>>,
}

impl<'a> SystemTimer<'a> {
    pub(super) fn new(observer: &'a dyn DoorObserver) -> Self {
        Self { observer, begun: Instant::now(), reported: Mutex::default() }
    }

    fn lock_reported(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RetryTimer for SystemTimer<'_> {
    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn wait_pause(&self, pause: &RetryPause<'_>) -> Result<(), TryError> {
        let RetryPause { id, role, why, since, length, is_in_vain } = *pause;
        let now = Timestamp::now();
        let until = now.saturating_add(length).unwrap_or(now);
        self.lock_reported().insert(id);
        self.observer.on_wait(&QuestionWait { id, role, why, since, length, until });
        let due = Instant::now() + length;
        loop {
            if self.observer.wants_to_stop() {
                return Err(TryError::Interrupted);
            }
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() || is_in_vain() {
                return Ok(());
            }
            thread::sleep(left.min(STOP_POLL_INTERVAL));
        }
    }

    fn end_wait(&self, id: u64) {
        if self.lock_reported().remove(&id) {
            self.observer.on_wait_end(id);
        }
    }
}
