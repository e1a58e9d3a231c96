//! The layer that asks again. A temporary error is tried a few times, with growing pauses; rate
//! limits and servers that are gone or overloaded are waited for, so that a network outage does not
//! end a night's run. A pause is never shorter than treebeam's own, whatever the server states, and
//! all waiting has an end by the clock. All other errors pass at once.

use super::question::{AgentLayer, AgentQuestion, ServerFault, TryCost, TryError, TryMeter};
use super::retry_timer::{RetryPause, RetryTimer};
use super::server_id::ServerId;
use super::servers::ServerBook;
use jiff::Timestamp;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use treebeam_run::port::{AgentReply, PortError};

/// Number of tries, and how long to wait.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// The most tries of a question.
    pub tries: u32,
    /// Length of the first pause, about; each further one is twice as long.
    pub pause: Duration,
    /// The longest pause without a stated wait.
    pub longest_pause: Duration,
    /// The longest time after its first try that a question is asked again.
    pub wait: Duration,
    /// The least time that a rate limit of unstated length is waited for.
    pub rate_limit: Duration,
    /// The time that a server is waited for that has answered in this run, without stated pauses.
    pub outage: Duration,
    /// The time that any other server is waited for, without stated pauses.
    pub first_answer: Duration,
    /// The longest time until a server begins to answer, if it is shorter than `timeout_sec`.
    pub first_byte: Option<Duration>,
}

impl RetryPolicy {
    /// Policy for a run that is left alone: a quota may come back the next day.
    pub const UNATTENDED_RUN: Self = Self {
        tries: 6,
        pause: Duration::from_secs(1),
        longest_pause: Duration::from_mins(1),
        wait: Duration::from_hours(24),
        rate_limit: Duration::ZERO,
        outage: Duration::from_hours(6),
        first_answer: Duration::from_mins(30),
        first_byte: None,
    };
    /// Policy for a command that a person waits for: all waiting ends within a minute.
    pub const ATTENDED_COMMAND: Self = Self {
        tries: 3,
        pause: Duration::from_millis(500),
        longest_pause: Duration::from_secs(5),
        wait: Duration::from_secs(55),
        rate_limit: Duration::from_secs(55),
        outage: Duration::ZERO,
        first_answer: Duration::ZERO,
        first_byte: None,
    };
    /// Policy for a single question that a person waits for: a silent server is given up, too.
    pub const SINGLE_QUESTION: Self =
        Self { first_byte: Some(Duration::from_secs(55)), ..Self::ATTENDED_COMMAND };

    /// Replaces the patience for outages, for all servers alike.
    #[must_use]
    pub fn with_outage(self, outage: Duration) -> Self {
        Self { outage, first_answer: outage, wait: self.wait.max(outage), ..self }
    }
}

/// The longest single pause that a server may state, however long outages are waited for.
const LONGEST_STATED_PAUSE: Duration = Duration::from_hours(24);

/// Factor by which the longest pause grows for questions whose tries may each have cost something.
const PAID_PAUSE_FACTOR: u32 = 10;

/// The retry layer around an inner one.
pub(super) struct RetryLayer<'a, A, N> {
    inner: A,
    nap: N,
    patience: RetryPolicy,
    jitter: Mutex<Pcg64Mcg>,
    servers: ServerBook<'a>,
    /// Number of the next question.
    next_wait: AtomicU64,
}

impl<'a, A, N> RetryLayer<'a, A, N> {
    pub(super) fn new(
        inner: A,
        nap: N,
        patience: RetryPolicy,
        servers: ServerBook<'a>,
        seed: u64,
    ) -> Self {
        let jitter = Mutex::new(Pcg64Mcg::new(u128::from(seed)));
        Self { inner, nap, patience, jitter, servers, next_wait: AtomicU64::default() }
    }

    /// Shortens a length at random by up to half, so that not all questions return at once.
    fn with_jitter(&self, length: Duration) -> Duration {
        let mut jitter = self.jitter.lock().unwrap_or_else(PoisonError::into_inner);
        let part = f64::from(jitter.next_u32()) / f64::from(u32::MAX);
        length.mul_f64(0.5 + part / 2.0)
    }

    /// Returns the pause before the n-th further try, counted from 1.
    fn pause_before_try(&self, n: u32, spent: TryCost) -> Duration {
        let longest = match spent {
            TryCost::Nothing => self.patience.longest_pause,
            TryCost::Unknown | TryCost::Known(_) => self.patience.longest_pause * PAID_PAUSE_FACTOR,
        };
        let grown = self.patience.pause.saturating_mul(1 << n.saturating_sub(1).min(16));
        self.with_jitter(grown.min(longest))
    }

    /// Returns the pause for a wait that the server states, plus a little more.
    fn stated_pause(&self, wait: Duration) -> Duration {
        let wait = wait.min(self.patience.wait).min(LONGEST_STATED_PAUSE);
        wait + self.with_jitter((wait / 10).min(Duration::from_secs(1)))
    }
}

/// An error after which a question may be asked again.
struct RetryableError {
    why: String,
    kind: RetryableKind,
    /// True if it may be the server's fault as well as this question's.
    is_undecided: bool,
    /// The pause that the server states.
    stated: Option<Duration>,
    spent: TryCost,
}

/// The kind of an error after which a question may be asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RetryableKind {
    /// The agent takes no more questions for now.
    Limited,
    /// No question would be answered now.
    Outage(ServerFault),
    /// This question was not answered well.
    BadAnswer,
}

impl RetryableError {
    /// Converts an error that may go away by itself; returns all others as they are.
    fn from_error(trouble: TryError) -> Result<Self, TryError> {
        match trouble {
            TryError::RateLimited { why, wait } => {
                let (kind, spent) = (RetryableKind::Limited, TryCost::Nothing);
                Ok(Self { why, kind, is_undecided: false, stated: wait, spent })
            }
            TryError::Temporary { why, fault, wait, spent } => {
                let kind = match fault {
                    ServerFault::Answering | ServerFault::Undecided => RetryableKind::BadAnswer,
                    ServerFault::Unreachable | ServerFault::Overloaded => {
                        RetryableKind::Outage(fault)
                    }
                };
                let is_undecided = fault == ServerFault::Undecided;
                Ok(Self { why, kind, is_undecided, stated: wait, spent })
            }
            other @ (TryError::Unanswered { .. }
            | TryError::Unreadable { .. }
            | TryError::Forgotten(_)
            | TryError::OverBudget { .. }
            | TryError::OutOfTime { .. }
            | TryError::Interrupted
            | TryError::Unavailable(_)) => Err(other),
        }
    }

    /// Returns the error that a question ends with if it is not asked again.
    fn into_final_error(self, counts: &RetryCounts, waited: Duration) -> TryError {
        let Self { why, kind, spent, is_undecided: _, stated: _ } = self;
        let all = counts.limits + counts.outages + counts.bad_answers;
        let unavailable =
            |what: String, hint: &str| TryError::from(PortError::new(what).with_hint(hint));
        let seconds = waited.as_secs();
        match kind {
            RetryableKind::Limited => unavailable(
                format!("the agent still takes no questions after {seconds} s: {why}"),
                "lower `llm_max_inflight` or `llm_rate_limit`, or go on later",
            ),
            RetryableKind::BadAnswer => {
                TryError::Unanswered { why: format!("{why}, {} times", counts.bad_answers), spent }
            }
            RetryableKind::Outage(fault) => {
                let hint = match fault {
                    ServerFault::Unreachable => "check the network and `base_url`, then go on",
                    ServerFault::Undecided => {
                        "go on later; if the server answers other questions then, this one is at fault"
                    }
                    ServerFault::Overloaded | ServerFault::Answering => {
                        "go on later: it is not this question's fault"
                    }
                };
                let during = if seconds == 0 { String::new() } else { format!(" in {seconds} s") };
                unavailable(format!("{why}, {all} times{during}"), hint)
            }
        }
    }
}

/// Counts of the tries and pauses of one question. Times are those of [`RetryTimer::now`].
struct RetryCounts {
    begun: Duration,
    /// The time of the first error.
    first_trouble: Option<Duration>,
    /// The number of the server's answers at the first trouble.
    answers_before: u64,
    /// The sum of the pauses that the server stated.
    stated: Duration,
    limits: u32,
    outages: u32,
    bad_answers: u32,
}

impl RetryCounts {
    const fn new(begun: Duration) -> Self {
        let (limits, outages, bad_answers) = (0, 0, 0);
        let stated = Duration::ZERO;
        let (first_trouble, answers_before) = (None, 0);
        Self { begun, first_trouble, answers_before, stated, limits, outages, bad_answers }
    }

    /// Returns the time since the first error, without the stated pauses.
    fn unstated_wait(&self, now: Duration) -> Duration {
        let since = self.first_trouble.map_or(Duration::ZERO, |then| now.saturating_sub(then));
        since.saturating_sub(self.stated)
    }
}

impl<A, N: RetryTimer> RetryLayer<'_, A, N> {
    /// Returns the pause before a question is asked again; none if it is given up.
    fn next_pause(
        &self,
        trouble: &mut RetryableError,
        counts: &mut RetryCounts,
        server: &ServerId,
    ) -> Option<Duration> {
        let now = self.nap.now();
        if counts.first_trouble.is_none() {
            counts.first_trouble = Some(now);
            counts.answers_before = self.servers.answer_count(server);
        }
        let count = match trouble.kind {
            RetryableKind::Limited => &mut counts.limits,
            RetryableKind::Outage(_) => &mut counts.outages,
            RetryableKind::BadAnswer => &mut counts.bad_answers,
        };
        *count += 1;
        let tried = *count;
        if tried >= self.patience.tries && self.is_likely_outage(trouble, counts, server) {
            trouble.kind = RetryableKind::Outage(ServerFault::Undecided);
        }
        let own = self.pause_before_try(tried, trouble.spent);
        let stated = trouble.stated.map_or(Duration::ZERO, |wait| self.stated_pause(wait));
        let left = self.patience.wait.saturating_sub(now.saturating_sub(counts.begun));
        let is_over = match trouble.kind {
            RetryableKind::BadAnswer => tried >= self.patience.tries,
            RetryableKind::Limited | RetryableKind::Outage(_) => {
                self.servers.is_given_up(server)
                    || (stated <= own && self.is_out_of_patience(trouble, counts, server, tried))
            }
        };
        if is_over || left.is_zero() {
            return None;
        }
        let pause = own.max(stated).min(left);
        if stated > own {
            counts.stated += pause;
        }
        Some(pause)
    }

    /// True if a bad answer that may be the server's fault counts as an outage: the server has
    /// answered no other question since this one's first trouble. Without patience there is no
    /// wait.
    fn is_likely_outage(
        &self,
        trouble: &RetryableError,
        counts: &RetryCounts,
        server: &ServerId,
    ) -> bool {
        let RetryPolicy { outage, first_answer, .. } = self.patience;
        trouble.is_undecided
            && !outage.max(first_answer).is_zero()
            && self.servers.answer_count(server) == counts.answers_before
    }

    /// Returns true if a question has waited long enough for a server that states no pause.
    fn is_out_of_patience(
        &self,
        trouble: &RetryableError,
        counts: &RetryCounts,
        server: &ServerId,
        tried: u32,
    ) -> bool {
        if tried < self.patience.tries {
            return false;
        }
        let waited = counts.unstated_wait(self.nap.now());
        let least = match trouble.kind {
            RetryableKind::Limited => self.patience.rate_limit,
            RetryableKind::Outage(_) | RetryableKind::BadAnswer => Duration::ZERO,
        };
        let RetryPolicy { outage, first_answer, .. } = self.patience;
        // Looked up only if it decides: it may read many files.
        waited >= outage.max(first_answer).max(least)
            || (waited >= outage.min(first_answer).max(least)
                && waited >= self.outage_patience(server).max(least))
    }

    /// Returns the patience with a server that is gone or overloaded.
    fn outage_patience(&self, server: &ServerId) -> Duration {
        let RetryPolicy { outage, first_answer, .. } = self.patience;
        if self.servers.has_answered(server) { outage } else { first_answer }
    }
}

impl<A: AgentLayer, N: RetryTimer> AgentLayer for RetryLayer<'_, A, N> {
    fn answer_question(
        &self,
        question: &AgentQuestion,
        meter: &dyn TryMeter,
    ) -> Result<AgentReply, TryError> {
        let id = self.next_wait.fetch_add(1, Ordering::Relaxed);
        let answer = self.ask_until_answered(id, question, meter);
        self.nap.end_wait(id);
        answer
    }
}

impl<A: AgentLayer, N: RetryTimer> RetryLayer<'_, A, N> {
    fn ask_until_answered(
        &self,
        id: u64,
        question: &AgentQuestion,
        meter: &dyn TryMeter,
    ) -> Result<AgentReply, TryError> {
        let server = self.servers.server_for_role(question.role);
        let watch = TryStopwatch { meter, took: Mutex::default() };
        let mut counts = RetryCounts::new(self.nap.now());
        let mut since = None;
        loop {
            let mut trouble = match self.inner.answer_question(question, &watch) {
                Ok(reply) => {
                    self.servers.note_answer(&server);
                    return Ok(AgentReply { millis: Some(watch.elapsed_millis()), ..reply });
                }
                Err(trouble) => RetryableError::from_error(trouble)?,
            };
            let Some(pause) = self.next_pause(&mut trouble, &mut counts, &server) else {
                if trouble.kind != RetryableKind::BadAnswer {
                    self.servers.give_up(&server);
                }
                let waited = self.nap.now().saturating_sub(counts.begun);
                return Err(trouble.into_final_error(&counts, waited));
            };
            if trouble.spent != TryCost::Nothing {
                meter.another_try()?;
            }
            let left = meter.deadline().map(|end| end.saturating_duration_since(Instant::now()));
            self.nap.wait_pause(&RetryPause {
                id,
                role: question.role,
                why: &trouble.why,
                since: *since.get_or_insert_with(Timestamp::now),
                length: left.map_or(pause, |left| left.min(pause)),
                is_in_vain: &|| {
                    trouble.kind != RetryableKind::BadAnswer && self.servers.is_given_up(&server)
                },
            })?;
            if left.is_some_and(|left| left <= pause) {
                return Err(TryError::too_late(&trouble.why));
            }
        }
    }
}

/// Measures the time of a question's tries, without the pauses between them.
struct TryStopwatch<'a> {
    meter: &'a dyn TryMeter,
    took: Mutex<Duration>,
}

impl TryStopwatch<'_> {
    fn lock_elapsed(&self) -> MutexGuard<'_, Duration> {
        self.took.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn elapsed_millis(&self) -> u64 {
        u64::try_from(self.lock_elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl TryMeter for TryStopwatch<'_> {
    fn another_try(&self) -> Result<(), TryError> {
        self.meter.another_try()
    }

    fn remaining_time(&self) -> Option<Duration> {
        self.meter.remaining_time().map(|left| left.saturating_sub(*self.lock_elapsed()))
    }

    fn deadline(&self) -> Option<Instant> {
        self.meter.deadline()
    }

    fn record_try_time(&self, took: Duration) {
        *self.lock_elapsed() += took;
    }
}
