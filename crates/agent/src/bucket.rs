//! Counts slots, requests per minute and tokens per minute as numbers, without clock or threads.

use std::num::NonZeroU32;
use std::time::Duration;
use treebeam_core::policy::{RateLimit, RunLimits};

/// Limits that all questions share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentLimits {
    /// The most questions in flight at once.
    pub in_flight: NonZeroU32,
    /// The most questions that may begin in a minute.
    pub requests: Option<NonZeroU32>,
    /// The most tokens that questions may take in a minute.
    pub tokens: Option<NonZeroU32>,
}

impl From<&RunLimits> for AgentLimits {
    fn from(limits: &RunLimits) -> Self {
        let RateLimit { requests, tokens } = limits.llm_rate_limit;
        Self { in_flight: limits.llm_max_inflight, requests, tokens }
    }
}

/// The remaining room within the limits.
#[derive(Debug)]
pub(super) struct RemainingLimits {
    limits: AgentLimits,
    in_flight: u32,
    requests: Option<RateBucket>,
    tokens: Option<RateBucket>,
}

/// A bucket that refills evenly within a minute. Amounts above its size overdraw it.
#[derive(Debug)]
struct RateBucket {
    size: f64,
    level: f64,
    filled_at: Duration,
}

impl RateBucket {
    fn new(size: NonZeroU32) -> Self {
        let size = f64::from(size.get());
        Self { size, level: size, filled_at: Duration::ZERO }
    }

    fn refill(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.filled_at).as_secs_f64();
        self.level = (self.level + passed * self.size / 60.0).min(self.size);
        self.filled_at = now;
    }

    /// Returns the time until this amount is available.
    fn time_until(&self, amount: f64) -> Duration {
        let missing = amount.min(self.size) - self.level;
        Duration::try_from_secs_f64(missing.max(0.0) * 60.0 / self.size).unwrap_or_default()
    }
}

impl RemainingLimits {
    pub(super) fn new(limits: AgentLimits) -> Self {
        let (requests, tokens) =
            (limits.requests.map(RateBucket::new), limits.tokens.map(RateBucket::new));
        Self { limits, in_flight: 0, requests, tokens }
    }

    /// Admits a question, or returns the least time to wait; none: until another question ends.
    pub(super) fn try_enter(&mut self, tokens: f64, now: Duration) -> Result<(), Option<Duration>> {
        let mut buckets = [(&mut self.requests, 1.0), (&mut self.tokens, tokens)];
        let mut wait = Duration::ZERO;
        for (bucket, amount) in &mut buckets {
            if let Some(bucket) = bucket {
                bucket.refill(now);
                wait = wait.max(bucket.time_until(*amount));
            }
        }
        if !wait.is_zero() {
            return Err(Some(wait));
        }
        if self.in_flight >= self.limits.in_flight.get() {
            return Err(None);
        }
        for (bucket, amount) in buckets {
            if let Some(bucket) = bucket {
                bucket.level -= amount;
            }
        }
        self.in_flight += 1;
        Ok(())
    }

    /// Ends a question, and corrects its estimated tokens to those that it took.
    pub(super) fn leave(&mut self, thought: f64, took: f64) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Some(bucket) = &mut self.tokens {
            bucket.level = (bucket.level + thought - took).min(bucket.size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(in_flight: u32, requests: Option<u32>, tokens: Option<u32>) -> RemainingLimits {
        let [requests, tokens] = [requests, tokens].map(|n| n.and_then(NonZeroU32::new));
        RemainingLimits::new(AgentLimits {
            in_flight: NonZeroU32::new(in_flight).unwrap(),
            requests,
            tokens,
        })
    }

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn slots() {
        let mut room = room(2, None, None);
        assert_eq!([room.try_enter(9.0, at(0)), room.try_enter(9.0, at(0))], [Ok(()), Ok(())]);
        assert_eq!(room.try_enter(9.0, at(0)), Err(None));
        room.leave(9.0, 9.0);
        assert_eq!(room.try_enter(9.0, at(0)), Ok(()));
    }

    #[test]
    fn requests_are_spread_over_a_minute() {
        let mut room = room(100, Some(6), None);
        for _ in 0..6 {
            assert_eq!(room.try_enter(1.0, at(0)), Ok(()));
        }
        assert_eq!(room.try_enter(1.0, at(0)), Err(Some(at(10))));
        assert_eq!(room.try_enter(1.0, at(4)), Err(Some(at(6))));
        assert_eq!(room.try_enter(1.0, at(10)), Ok(()));
        assert_eq!(room.try_enter(1.0, at(10)), Err(Some(at(10))));
        // A minute of silence fills the bucket, but no more.
        let entered = (0..20).filter(|_| room.try_enter(1.0, at(1000)).is_ok()).count();
        assert_eq!(entered, 6);
    }

    #[test]
    fn what_was_not_taken_comes_back_and_what_was_taken_too_much_is_owed() {
        let mut room = room(100, None, Some(600));
        assert_eq!(room.try_enter(500.0, at(0)), Ok(()));
        assert_eq!(room.try_enter(200.0, at(0)), Err(Some(at(10))));
        room.leave(500.0, 100.0);
        assert_eq!(room.try_enter(200.0, at(0)), Ok(()));
        room.leave(200.0, 500.0);
        // The bucket is empty: 300 tokens take 30 s.
        assert_eq!(room.try_enter(300.0, at(0)), Err(Some(at(30))));
        // An amount larger than the bucket waits for a full one, and then all others wait for it.
        assert_eq!(room.try_enter(9000.0, at(0)), Err(Some(at(60))));
        assert_eq!(room.try_enter(9000.0, at(60)), Ok(()));
        assert_eq!(room.try_enter(1.0, at(60)), Err(Some(Duration::from_millis(840_100))));
    }
}
