//! Waits before a question is asked again, visibly and interruptibly. Does not decide how long.

use super::question::TryError;
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use treebeam_run::port::AgentRole;

/// The pause between two looks at whether to stop.
pub(super) const STOP_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Observer of the questions that wait.
pub trait DoorObserver: Sync {
    /// Called when a question begins to wait.
    fn on_wait(&self, wait: &QuestionWait<'_>);
    /// Called when a question that had to wait is answered or given up.
    fn on_wait_end(&self, _id: u64) {}
    /// Called with a message for the user.
    fn on_note(&self, text: &str);
    /// Returns true if waiting has to stop.
    fn wants_to_stop(&self) -> bool;
}

/// A question that has to wait.
#[derive(Clone, Copy, Debug)]
pub struct QuestionWait<'a> {
    /// Number of the question, unique in this process.
    pub id: u64,
    /// Role of the question.
    pub role: AgentRole,
    /// Reason of the wait.
    pub why: &'a str,
    /// Time of the question's first pause.
    pub since: Timestamp,
    /// Length of the pause.
    pub length: Duration,
    /// End of the pause.
    pub until: Timestamp,
}

/// A pause of a question before it is asked again.
pub(super) struct RetryPause<'a> {
    pub(super) id: u64,
    pub(super) role: AgentRole,
    pub(super) why: &'a str,
    pub(super) since: Timestamp,
    pub(super) length: Duration,
    /// Returns true once waiting any longer is of no use.
    pub(super) is_in_vain: &'a dyn Fn() -> bool,
}

/// A timer for pauses, which tests replace.
pub(super) trait RetryTimer: Sync {
    /// Returns the time on a clock that only goes forward.
    fn now(&self) -> Duration;
    /// Waits for a pause to end, unless the program is to stop or waiting is in vain.
    fn wait_pause(&self, pause: &RetryPause<'_>) -> Result<(), TryError>;
    /// Ends the wait of a question, if it had to wait.
    fn end_wait(&self, _id: u64) {}
}

/// The timer that really waits, and reports each wait.
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
