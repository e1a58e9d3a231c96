//! The primary metric compared configuration by configuration: does a change act alike on all of them, or is its mean
//! the work of a few? Says nothing about other data: configurations of one sweep can be near copies of each other.

use crate::evidence::Paired;
use crate::exact::ExactSum;
use crate::num::Finite;
use crate::policy::Direction;
use crate::sweep::{RowId, Sweep};
use rand_pcg::Lcg64Xsh32;
use rand_pcg::rand_core::Rng;
use std::collections::BTreeMap;

/// How many resamples the interval rests on, while there are at most 10,000 pairs.
const RESAMPLES: usize = 1_000;
/// With more pairs, so many draws in all are enough…
const MAX_DRAWS: usize = 10_000_000;
/// …but never fewer resamples than this.
const MIN_RESAMPLES: usize = 100;
/// Where the random draws begin; the stream is the number of pairs. The same pairs give the same interval.
const SEED: u64 = 0x7472_6565_6265_616d;

/// Compares the primary of the configurations that both sides have. An id that stands twice on a side, or has no finite
/// primary there, is left out. None with fewer than two pairs.
#[must_use]
pub fn paired(baseline: &Sweep, candidate: &Sweep, direction: Direction) -> Option<Paired> {
    let (before, after) = (primaries(baseline), primaries(candidate));
    let change = |before: f64, after: f64| match direction {
        Direction::Higher => after - before,
        Direction::Lower => before - after,
    };
    let matched = before.iter().filter_map(|(id, before)| Some(((*before)?, (*after.get(id)?)?)));
    let mut differences: Vec<f64> = matched
        .map(|(before, after)| change(before, after))
        .filter(|difference| difference.is_finite())
        .collect();
    differences.sort_unstable_by(f64::total_cmp);
    summarize(&differences)
}

/// Each id's primary; none where the id stands twice or the primary is no finite number.
fn primaries(sweep: &Sweep) -> BTreeMap<RowId, Option<f64>> {
    let mut primaries = BTreeMap::new();
    for row in sweep.rows() {
        primaries.entry(row.id).and_modify(|primary| *primary = None).or_insert(row.primary);
    }
    primaries
}

/// The figures of sorted differences.
fn summarize(differences: &[f64]) -> Option<Paired> {
    if differences.len() < 2 {
        return None;
    }
    let sum: ExactSum = differences.iter().copied().collect();
    let mean = sum.mean(u64::try_from(differences.len()).ok()?)?;
    let count =
        |kept: fn(&&f64) -> bool| u32::try_from(differences.iter().filter(kept).count()).ok();
    let (low, high) = interval(differences, mean)?;
    Some(Paired {
        pairs: u32::try_from(differences.len()).ok()?,
        mean_difference: Finite::new(mean)?,
        wins: count(|difference| **difference > 0.0)?,
        losses: count(|difference| **difference < 0.0)?,
        low: Finite::new(low)?,
        high: Finite::new(high)?,
    })
}

/// The middle 95 % of the means of resamples, drawn with replacement.
fn interval(sorted: &[f64], mean: f64) -> Option<(f64, f64)> {
    let pairs = u32::try_from(sorted.len()).ok()?;
    let shares: Vec<f64> = sorted
        .iter()
        .map(|difference| difference / f64::from(pairs) - mean / f64::from(pairs))
        .collect();
    let (least, most) = (*sorted.first()?, *sorted.last()?);
    let mut random = Lcg64Xsh32::new(SEED, u64::from(pairs));
    let mut means: Vec<f64> = (0..resamples(sorted.len()))
        .map(|_| (mean + resample(&shares, pairs, &mut random)).clamp(least, most))
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    let cut = means.len() * 25 / 1_000;
    Some((*means.get(cut)?, *means.iter().rev().nth(cut)?))
}

fn resamples(pairs: usize) -> usize {
    (MAX_DRAWS / pairs.max(1)).clamp(MIN_RESAMPLES, RESAMPLES)
}

/// How far the mean of one resample is from the mean of all.
fn resample(shares: &[f64], pairs: u32, random: &mut Lcg64Xsh32) -> f64 {
    let draw = |_| {
        let at = (u64::from(random.next_u32()) * u64::from(pairs)) >> 32;
        usize::try_from(at).ok().and_then(|at| shares.get(at)).copied().unwrap_or_default()
    };
    (0..pairs).map(draw).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::ScorePolicy;
    use proptest::prelude::*;

    fn sweep(rows: &str) -> Sweep {
        let text = format!(
            "config_id,mean_topN_avg_return_per_trade_pct_oos\n{}",
            rows.replace(' ', "\n")
        );
        Sweep::read(text.as_bytes(), "test.csv", None, &ScorePolicy::trading()).unwrap()
    }

    fn figures(paired: Option<Paired>) -> String {
        paired.map_or("none".to_owned(), |p| {
            let (mean, low, high) = (p.mean_difference, p.low, p.high);
            format!(
                "{} pairs, {} wins, {} losses, {mean} [{low}, {high}]",
                p.pairs, p.wins, p.losses
            )
        })
    }

    #[track_caller]
    fn check(baseline: &str, candidate: &str, expect: &str) {
        let paired = paired(&sweep(baseline), &sweep(candidate), Direction::Higher);
        assert_eq!(figures(paired), expect);
    }

    #[test]
    fn pairs_are_matched_by_id() {
        check("0,1 1,2", "1,3 0,2", "2 pairs, 2 wins, 0 losses, 1 [1, 1]");
        check("0,1 1,2 2,5", "0,1 1,1 3,5", "2 pairs, 0 wins, 1 losses, -0.5 [-1, 0]");
        check("0,1 1,2", "0,1 2,2", "none");
        check("0,1 1,2", "0,1 1,nan", "none");
        check("0,1 1,2 1,2", "0,1 1,2", "none");
        check("a,1 b,2", "b,2.5 a,1.5", "2 pairs, 2 wins, 0 losses, 0.5 [0.5, 0.5]");
        check("0,-1.7e308 1,0 2,0", "0,1.7e308 1,1 2,1", "2 pairs, 2 wins, 0 losses, 1 [1, 1]");
    }

    #[test]
    fn less_can_be_better() {
        let (baseline, candidate) = (sweep("0,1 1,2"), sweep("0,0.5 1,1.5"));
        let lower = paired(&baseline, &candidate, Direction::Lower);
        assert_eq!(figures(lower), "2 pairs, 2 wins, 0 losses, 0.5 [0.5, 0.5]");
    }

    #[test]
    fn the_interval_is_the_same_on_every_machine() {
        let differences: Vec<f64> = (0..20).map(|n| f64::from(n) / 8.0 - 1.0).collect();
        let figures = figures(summarize(&differences));
        assert_eq!(figures, "20 pairs, 11 wins, 8 losses, 0.1875 [-0.1375, 0.48749999999999993]");
    }

    #[test]
    fn many_pairs_cost_no_more_than_their_share() {
        for (pairs, expect) in [(2, 1_000), (10_000, 1_000), (20_000, 500), (1_000_000, 100)] {
            assert_eq!(resamples(pairs), expect, "{pairs}");
        }
    }

    proptest! {
        #[test]
        fn the_interval_lies_within_the_differences(
            mut differences in prop::collection::vec(any::<f64>().prop_filter("finite", |n| n.is_finite()), 2..20),
        ) {
            differences.sort_unstable_by(f64::total_cmp);
            let paired = summarize(&differences).unwrap();
            prop_assert!(differences[0] <= paired.low.get());
            prop_assert!(paired.low <= paired.high);
            prop_assert!(paired.high.get() <= differences[differences.len() - 1]);
        }
    }
}
