//! The one place that asks again. What may go away by itself is tried a few times, with pauses that grow; a rate limit is
//! waited for, as long as the other side says; so is an agent that has answered before and is gone or overloaded now: a
//! night must not end with the network's hiccup. Everything else goes straight through.

use super::question::{Answer, Fault, Meter, Question, Spent, Trouble};
use super::wait::Nap;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng as _;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use treebeam_run::port::{PortError, Reply, Role};

/// How often and how long.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// How often a question is tried.
    pub tries: u32,
    /// About how long the first pause is; each further one is twice as long.
    pub pause: Duration,
    /// The longest pause that we choose ourselves.
    pub longest_pause: Duration,
    /// How long one question may wait for rate limits in all.
    pub wait: Duration,
    /// How long it may wait for an agent that has answered others.
    pub outage: Duration,
}

impl Patience {
    /// For a run that is left alone: a quota may come back the next day.
    pub const OVERNIGHT: Self = Self {
        tries: 6,
        pause: Duration::from_secs(1),
        longest_pause: Duration::from_mins(1),
        wait: Duration::from_hours(24),
        outage: Duration::from_hours(6),
    };
    /// For somebody who sits and waits.
    pub const BRIEF: Self = Self {
        tries: 3,
        pause: Duration::from_millis(500),
        longest_pause: Duration::from_secs(5),
        wait: Duration::from_mins(1),
        outage: Duration::ZERO,
    };
}

/// A layer that tries again.
pub(super) struct Retrying<A, N> {
    inner: A,
    nap: N,
    patience: Patience,
    jitter: Mutex<Pcg64Mcg>,
    /// Who has answered: whoever has not may be set wrong, and is not waited for.
    known: Mutex<BTreeSet<Role>>,
}

impl<A, N> Retrying<A, N> {
    pub(super) fn new(inner: A, nap: N, patience: Patience, seed: u64) -> Self {
        let jitter = Mutex::new(Pcg64Mcg::new(u128::from(seed)));
        Self { inner, nap, patience, jitter, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, BTreeSet<Role>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From one half of a length to all of it, so that not everybody comes back at once.
    fn spread(&self, length: Duration) -> Duration {
        let mut jitter = self.jitter.lock().unwrap_or_else(PoisonError::into_inner);
        let part = f64::from(jitter.next_u32()) / f64::from(u32::MAX);
        length.mul_f64(0.5 + part / 2.0)
    }

    /// The pause before the n-th further try, counted from 1.
    fn pause(&self, n: u32) -> Duration {
        let grown = self.patience.pause.saturating_mul(1 << (n - 1).min(16));
        self.spread(grown.min(self.patience.longest_pause))
    }

    /// A pause that the other side has asked for, and a little more.
    fn stated(&self, wait: Duration) -> Duration {
        let wait = wait.min(self.patience.wait);
        wait + self.spread((wait / 10).min(Duration::from_secs(1)))
    }
}

impl<A: Answer, N: Nap> Answer for Retrying<A, N> {
    fn answer(&self, question: &Question, meter: &dyn Meter) -> Result<Reply, Trouble> {
        let (mut failures, mut limits) = (0, 0);
        let watch = Watch { meter, took: Mutex::default() };
        let (mut waited, mut away) = (Duration::ZERO, Duration::ZERO);
        loop {
            let trouble = match self.inner.answer(question, &watch) {
                Ok(reply) => {
                    self.known().insert(question.role);
                    return Ok(Reply { millis: Some(watch.millis()), ..reply });
                }
                Err(trouble) => trouble,
            };
            let (why, pause) = match trouble {
                Trouble::TooMany { why, wait } => {
                    limits += 1;
                    let pause = wait.map_or_else(|| self.pause(limits), |wait| self.stated(wait));
                    if waited >= self.patience.wait {
                        return Err(too_long(&why, waited).into());
                    }
                    waited += pause;
                    (why, pause)
                }
                Trouble::Passing { why, fault, wait, spent } => {
                    failures += 1;
                    let outage = spent == Spent::Nothing
                        && fault != Fault::Answering
                        && self.known().contains(&question.role);
                    if failures >= self.patience.tries && !(outage && away < self.patience.outage) {
                        return Err(given_up(&why, fault, spent, failures));
                    }
                    if spent != Spent::Nothing {
                        meter.another_try()?;
                    }
                    let stated = wait.map_or(Duration::ZERO, |wait| self.stated(wait));
                    let pause = stated.max(self.pause(failures));
                    away += pause;
                    (why, pause)
                }
                other @ (Trouble::Unanswered { .. }
                | Trouble::Unreadable { .. }
                | Trouble::Forgotten(_)
                | Trouble::OverBudget { .. }
                | Trouble::OutOfTime { .. }
                | Trouble::Interrupted
                | Trouble::Unavailable(_)) => return Err(other),
            };
            let left = meter.end().map(|end| end.saturating_duration_since(Instant::now()));
            self.nap.nap(question.role, &why, left.map_or(pause, |left| left.min(pause)))?;
            if left.is_some_and(|left| left <= pause) {
                return Err(Trouble::too_late(&why));
            }
        }
    }
}

/// Counts how long the tries of one question took, without the pauses between them.
struct Watch<'a> {
    meter: &'a dyn Meter,
    took: Mutex<Duration>,
}

impl Watch<'_> {
    fn took(&self) -> MutexGuard<'_, Duration> {
        self.took.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn millis(&self) -> u64 {
        u64::try_from(self.took().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Meter for Watch<'_> {
    fn another_try(&self) -> Result<(), Trouble> {
        self.meter.another_try()
    }

    fn left(&self) -> Option<Duration> {
        self.meter.left().map(|left| left.saturating_sub(*self.took()))
    }

    fn end(&self) -> Option<Instant> {
        self.meter.end()
    }

    fn tried(&self, took: Duration) {
        *self.took() += took;
    }
}

fn too_long(why: &str, waited: Duration) -> PortError {
    let what = format!("the agent still takes no questions after {} s: {why}", waited.as_secs());
    PortError::new(what).hint("lower `llm_max_inflight` or `llm_rate_limit`, or go on later")
}

/// Nobody there, or nobody who has time: nothing else would be answered either. A bad answer is this question's own.
fn given_up(why: &str, fault: Fault, spent: Spent, tries: u32) -> Trouble {
    let why = format!("{why}, {tries} times");
    let unavailable = |hint: &str| PortError::new(&why).hint(hint).into();
    match fault {
        Fault::Answering => Trouble::Unanswered { why, spent },
        Fault::Unreachable => unavailable("check the network and `base_url`, then go on"),
        Fault::Overloaded => unavailable("go on later: it is not this question's fault"),
    }
}
