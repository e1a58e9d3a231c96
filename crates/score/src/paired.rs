//! Comparison of sweeps by configuration: shows if a change acts on all, or on a few that move the
//! mean. Does not generalise to other data: configurations of one sweep can be near copies.

use crate::exact::ExactSum;
use crate::rounding::is_rounding_difference;
use crate::sweep_csv::{RowId, Sweep};
use rand_pcg::Lcg64Xsh32;
use rand_pcg::rand_core::Rng;
use treebeam_core::evidence::PairedDifference;
use treebeam_core::num::Finite;
use treebeam_core::policy::Direction;

/// Number of resamples behind the interval.
const RESAMPLE_COUNT: usize = 1_000;
/// Maximum number of lots. More pairs than this are dealt into lots at random, and lots are drawn:
/// the interval is the same up to a part of its chance error, and the number of draws does not grow
/// with the pairs.
const MAX_LOTS: usize = 2_000;
/// Seed of the random draws; the stream is a digest of the differences. Equal pairs give equal
/// intervals, others get independent draws: their chance errors are not shared across a run.
const RESAMPLING_SEED: u64 = 0x7472_6565_6265_616d;

/// Counts of configurations that improved or got worse in one metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairCounts {
    /// Number of configurations that both sides have.
    pub pairs: u32,
    /// Number of configurations that improved.
    pub wins: u32,
    /// Number of configurations that got worse.
    pub losses: u32,
}

impl PairCounts {
    /// Counts for the configured metric with this index. `None` with fewer than two pairs, or too
    /// many rows to keep.
    pub(crate) fn new(
        metric: usize,
        baseline: &Sweep,
        candidate: &Sweep,
        direction: Direction,
    ) -> Option<Self> {
        let changes = paired_changes(
            baseline.metric_figures(metric)?,
            candidate.metric_figures(metric)?,
            direction,
        );
        Self::from_changes(&changes.collect::<Vec<f64>>())
    }

    fn from_changes(changes: &[f64]) -> Option<Self> {
        let count =
            |kept: fn(&&f64) -> bool| u32::try_from(changes.iter().filter(kept).count()).ok();
        let pairs = u32::try_from(changes.len()).ok().filter(|pairs| *pairs >= 2)?;
        let (wins, losses) = (count(|change| **change > 0.0)?, count(|change| **change < 0.0)?);
        Some(Self { pairs, wins, losses })
    }
}

/// Compares the primary metric of the configurations that are ok on both sides. An id that is
/// repeated on a side, or has no finite primary there, is left out. `None` with fewer than two
/// pairs.
#[must_use]
pub fn compare_paired(
    baseline: &Sweep,
    candidate: &Sweep,
    direction: Direction,
) -> Option<PairedDifference> {
    summarise_differences(primary_changes(baseline, candidate, direction))
}

/// Returns the improvement of the primary in each configuration that both sides have, worst first.
#[must_use]
pub fn primary_changes(baseline: &Sweep, candidate: &Sweep, direction: Direction) -> Vec<f64> {
    let changes =
        paired_changes(baseline.primary_figures(), candidate.primary_figures(), direction);
    let mut differences: Vec<f64> = changes.collect();
    differences.sort_unstable_by(f64::total_cmp);
    differences
}

/// Returns the improvement of each configuration that both sides have.
fn paired_changes(
    before: impl Iterator<Item = (RowId, f64)>,
    after: impl Iterator<Item = (RowId, f64)>,
    direction: Direction,
) -> impl Iterator<Item = f64> {
    let gain = move |pair| gain_beyond_rounding(pair, direction);
    match_by_id(before, after).map(gain).filter(|change| change.is_finite())
}

/// Returns the improvement of a number; 0 if the two differ only by rounding: a metric that does
/// not depend on the change must not decide.
pub(crate) fn gain_beyond_rounding((before, after): (f64, f64), direction: Direction) -> f64 {
    match direction {
        _ if is_rounding_difference(before, after) => 0.0,
        Direction::Higher => after - before,
        Direction::Lower => before - after,
    }
}

/// Pairs the values of two sides, each ordered by id. Ids that repeat on a side are left out.
pub(crate) fn match_by_id<T: Copy>(
    before: impl Iterator<Item = (RowId, T)>,
    after: impl Iterator<Item = (RowId, T)>,
) -> impl Iterator<Item = (T, T)> {
    let mut after = unique_ids(after).peekable();
    unique_ids(before).filter_map(move |(id, before)| {
        while after.next_if(|(other, _)| *other < id).is_some() {}
        after.next_if(|(other, _)| *other == id).map(|(_, after)| (before, after))
    })
}

/// Drops all items whose id is repeated; they are ordered by id.
fn unique_ids<T: Copy>(
    items: impl Iterator<Item = (RowId, T)>,
) -> impl Iterator<Item = (RowId, T)> {
    let mut items = items.peekable();
    std::iter::from_fn(move || {
        loop {
            let (id, item) = items.next()?;
            if items.next_if(|(other, _)| *other == id).is_none() {
                return Some((id, item));
            }
            while items.next_if(|(other, _)| *other == id).is_some() {}
        }
    })
}

/// Summarises sorted differences.
fn summarise_differences(differences: Vec<f64>) -> Option<PairedDifference> {
    let PairCounts { pairs, wins, losses } = PairCounts::from_changes(&differences)?;
    let mean = differences.iter().copied().collect::<ExactSum>().mean()?;
    let (low, high) = bootstrap_interval(differences, mean)?;
    Some(PairedDifference {
        pairs,
        mean_difference: Finite::new(mean)?,
        wins,
        losses,
        low: Finite::new(low)?,
        high: Finite::new(high)?,
    })
}

/// Returns the middle 95 % of the means of resamples, drawn with replacement.
fn bootstrap_interval(sorted: Vec<f64>, mean: f64) -> Option<(f64, f64)> {
    let (least, most) = (*sorted.first()?, *sorted.last()?);
    let mut random = Lcg64Xsh32::new(RESAMPLING_SEED, digest_numbers(&sorted));
    let lots = deal_lots(sorted, mean, &mut random)?;
    let mut means: Vec<f64> = (0..RESAMPLE_COUNT)
        .map(|_| (mean + resample_mean(&lots, &mut random)).clamp(least, most))
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    let cut = RESAMPLE_COUNT * 25 / 1_000;
    Some((*means.get(cut)?, *means.iter().rev().nth(cut)?))
}

/// Computes a digest of numbers (FNV-1a, a word at a time). Signs and powers of two are ignored: in
/// another unit the interval is the same, in that unit.
fn digest_numbers(numbers: &[f64]) -> u64 {
    let mix = |digest: u64, number: &f64| {
        let significand = number.to_bits() & ((1 << (f64::MANTISSA_DIGITS - 1)) - 1);
        (digest ^ significand ^ (significand >> 26)).wrapping_mul(0x0100_0000_01b3)
    };
    numbers.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

/// Returns the contribution of each lot to the distance of a resample's mean from the overall mean.
/// Up to [`MAX_LOTS`] pairs, each lot is one pair.
fn deal_lots(mut differences: Vec<f64>, mean: f64, random: &mut Lcg64Xsh32) -> Option<Vec<f64>> {
    let pairs = f64::from(u32::try_from(differences.len()).ok()?);
    let share = |difference: &f64| difference / pairs - mean / pairs;
    let (all, lots) = (differences.len(), differences.len().min(MAX_LOTS));
    if all > lots {
        shuffle_differences(&mut differences, random);
    }
    let lot = |at: usize| differences.get(at * all / lots..(at + 1) * all / lots);
    (0..lots).map(|at| Some(lot(at)?.iter().map(share).sum())).collect()
}

fn shuffle_differences(differences: &mut [f64], random: &mut Lcg64Xsh32) {
    for end in (1..differences.len()).rev() {
        let other = draw_below(end + 1, random);
        differences.swap(end, other);
    }
}

/// Returns the distance of one resample's mean from the overall mean.
fn resample_mean(lots: &[f64], random: &mut Lcg64Xsh32) -> f64 {
    let one = |_| lots.get(draw_below(lots.len(), random)).copied().unwrap_or_default();
    (0..lots.len()).map(one).sum()
}

/// Draws a number below `end`, which fits in 32 bits.
fn draw_below(end: usize, random: &mut Lcg64Xsh32) -> usize {
    let drawn = (u64::from(random.next_u32()) * end as u64) >> 32;
    usize::try_from(drawn).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use treebeam_core::policy::ScorePolicy;

    fn sweep(rows: &str) -> Sweep {
        let text = format!(
            "config_id,mean_topN_avg_return_per_trade_pct_oos\n{}",
            rows.replace(' ', "\n")
        );
        Sweep::read_csv(text.as_bytes(), "test.csv", None, &ScorePolicy::trading_preset()).unwrap()
    }

    fn figures(paired: Option<PairedDifference>) -> String {
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
        let paired = compare_paired(&sweep(baseline), &sweep(candidate), Direction::Higher);
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
        check(
            "0,0.3 1,3",
            "0,0.30000000000000004 1,2.9999999999999996",
            "2 pairs, 0 wins, 0 losses, 0 [0, 0]",
        );
        check(
            "0,0.0001 1,0",
            "0,0.0002 1,0.000001",
            "2 pairs, 2 wins, 0 losses, 0.0000505 [0.000001, 0.0001]",
        );
        check("0,-1.7e308 1,0 2,0", "0,1.7e308 1,1 2,1", "2 pairs, 2 wins, 0 losses, 1 [1, 1]");
    }

    #[test]
    fn less_can_be_better() {
        let (baseline, candidate) = (sweep("0,1 1,2"), sweep("0,0.5 1,1.5"));
        let lower = compare_paired(&baseline, &candidate, Direction::Lower);
        assert_eq!(figures(lower), "2 pairs, 2 wins, 0 losses, 0.5 [0.5, 0.5]");
    }

    #[test]
    fn each_metric_is_counted() {
        let (baseline, candidate) = (sweep("0,1 1,2 2,3 3,4"), sweep("3,4 2,9 1,1 0,2"));
        let counts = |direction| PairCounts::new(0, &baseline, &candidate, direction);
        let [higher, lower] =
            [(2, 1), (1, 2)].map(|(wins, losses)| PairCounts { pairs: 4, wins, losses });
        assert_eq!(counts(Direction::Higher), Some(higher));
        assert_eq!(counts(Direction::Lower), Some(lower));
        assert_eq!(
            PairCounts::new(1, &baseline, &candidate, Direction::Higher),
            None,
            "no such column"
        );
    }

    #[test]
    fn the_interval_is_the_same_on_every_machine() {
        let differences: Vec<f64> = (0..20).map(|n| f64::from(n) / 8.0 - 1.0).collect();
        let figures = figures(summarise_differences(differences));
        assert_eq!(figures, "20 pairs, 11 wins, 8 losses, 0.1875 [-0.125, 0.48749999999999993]");
    }

    /// Lots give the same interval as pairs, within the chance error of 1,000 resamples.
    #[test]
    fn many_pairs_are_drawn_in_lots() {
        let differences: Vec<f64> =
            (0..50_000_u32).map(|n| f64::from(n % 1_000) / 1_000.0).collect();
        let lots = deal_lots(differences.clone(), 0.4995, &mut Lcg64Xsh32::new(1, 1)).unwrap();
        assert_eq!(lots.len(), 2_000);
        assert!(lots.iter().sum::<f64>().abs() < 1e-12, "nothing is lost");
        let mut sorted = differences;
        sorted.sort_unstable_by(f64::total_cmp);
        let paired = summarise_differences(sorted).unwrap();
        // The mean of 50,000 even numbers from 0 to 1 has a standard error of √(1/12) / √50,000.
        let expected = 1.96 * (1.0_f64 / 12.0).sqrt() / 50_000_f64.sqrt();
        let half = (paired.high.get() - paired.low.get()) / 2.0;
        assert!((half / expected - 1.0).abs() < 0.1, "{half} {expected}");
    }

    proptest! {
        #[test]
        fn the_interval_lies_within_the_differences(
            mut differences in prop::collection::vec(any::<f64>().prop_filter("finite", |n| n.is_finite()), 2..20),
        ) {
            differences.sort_unstable_by(f64::total_cmp);
            let paired = summarise_differences(differences.clone()).unwrap();
            prop_assert!(differences[0] <= paired.low.get());
            prop_assert!(paired.low <= paired.high);
            prop_assert!(paired.high.get() <= differences[differences.len() - 1]);
        }
    }
}
