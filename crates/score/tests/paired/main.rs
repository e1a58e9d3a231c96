//! Paired comparison against scipy's bootstrap on 20 data sets, with 95 % percentile intervals of
//! 100,000 resamples. The result depends on the number of treebeam's resamples, not on which are
//! drawn: `make.py` made the data and computes how far apart two such intervals may be.

#![cfg(test)]

use serde::Deserialize;
use treebeam_core::evidence::PairedDifference;
use treebeam_core::policy::{Direction, Metric, ScorePolicy};
use treebeam_score::compare::compare_sweeps;
use treebeam_score::sweep_csv::Sweep;

/// Data set with scipy's results.
#[derive(Deserialize)]
struct Pairs {
    name: String,
    direction: Direction,
    before: Vec<f64>,
    after: Vec<f64>,
    mean: f64,
    wins: u32,
    losses: u32,
    low: f64,
    high: f64,
    /// Quantiles of scipy's resample means between which the ends of an interval from 1,000
    /// resamples lie: 4.5 standard errors either way.
    low_within: [f64; 2],
    high_within: [f64; 2],
}

fn sets() -> Vec<Pairs> {
    serde_json::from_str(include_str!("pairs.json")).unwrap()
}

fn policy(direction: Direction) -> ScorePolicy {
    let trading = ScorePolicy::trading_preset();
    let metric = Metric { column: "m".to_owned(), direction, ..trading.metrics[0].clone() };
    ScorePolicy { primary: "m".to_owned(), metrics: vec![metric], ..trading }
}

fn paired(before: &[f64], after: &[f64], direction: Direction) -> Option<PairedDifference> {
    let policy = policy(direction);
    let sweep = |numbers: &[f64]| {
        let rows = numbers.iter().enumerate().map(|(id, number)| format!("{id},{number:e}\n"));
        let text = format!("config_id,m\n{}", rows.collect::<String>());
        Sweep::read_csv(text.as_bytes(), "pairs.csv", None, &policy).unwrap()
    };
    compare_sweeps(&sweep(before), &sweep(after), &policy).unwrap().comparison.paired
}

impl Pairs {
    fn paired(&self) -> PairedDifference {
        paired(&self.before, &self.after, self.direction).unwrap()
    }

    /// Returns the largest contribution of rounding to a mean.
    fn rounding(&self) -> f64 {
        let sizes =
            self.before.iter().zip(&self.after).map(|(before, after)| (after - before).abs());
        sizes.fold(0.0, f64::max) * 1e-12
    }
}

#[test]
fn the_interval_is_scipys_but_for_chance() {
    for set in sets() {
        let (found, rounding) = (set.paired(), set.rounding());
        for (end, [from, to], scipys) in [
            (found.low.get(), set.low_within, set.low),
            (found.high.get(), set.high_within, set.high),
        ] {
            assert!(
                from - rounding <= end && end <= to + rounding,
                "{}: {end} is not in {from}..{to}; scipy says {scipys}",
                set.name
            );
        }
    }
}

#[test]
fn what_does_not_rest_on_chance_is_exact() {
    for set in sets() {
        let found = set.paired();
        assert_eq!(usize::try_from(found.pairs).unwrap(), set.before.len(), "{}", set.name);
        assert_eq!(found.mean_difference.get().to_bits(), set.mean.to_bits(), "{}", set.name);
        assert_eq!((found.wins, found.losses), (set.wins, set.losses), "{}", set.name);
        assert!(
            found.low <= found.mean_difference && found.mean_difference <= found.high,
            "{}",
            set.name
        );
    }
}

#[test]
fn the_same_pairs_give_the_same_interval_to_the_bit() {
    for set in sets() {
        let bits = |found: PairedDifference| [found.low, found.high].map(|end| end.get().to_bits());
        let turned = |numbers: &[f64]| numbers.iter().rev().copied().collect::<Vec<f64>>();
        let found = bits(set.paired());
        assert_eq!(bits(set.paired()), found, "{}", set.name);
        let other_ids = paired(&turned(&set.before), &turned(&set.after), set.direction).unwrap();
        assert_eq!(bits(other_ids), found, "{}: which id a pair has does not matter", set.name);
    }
}

#[test]
fn fewer_than_two_pairs_have_no_interval() {
    for (before, after) in [
        (&[1.0][..], &[2.0][..]),
        (&[1.0, 2.0], &[2.0]),
        (&[1.0], &[2.0, 3.0]),
        (&[1.0, f64::NAN], &[2.0, 3.0]),
        (&[1.0, 2.0], &[f64::INFINITY, 3.0]),
        (&[1.0, -1.7e308], &[2.0, 1.7e308]),
    ] {
        assert_eq!(paired(before, after, Direction::Higher), None, "{before:?} {after:?}");
    }
    assert!(paired(&[1.0, 2.0], &[2.0, 3.0], Direction::Higher).is_some());
}

#[test]
fn the_sets_are_what_the_head_says() {
    let sets = sets();
    assert_eq!(sets.len(), 20);
    let sizes = sets.iter().map(|set| set.before.len());
    assert_eq!((sizes.clone().min(), sizes.max()), (Some(2), Some(300)));
    for set in &sets {
        assert!(set.low_within[0] <= set.low && set.low <= set.low_within[1], "{}", set.name);
        assert!(set.high_within[0] <= set.high && set.high <= set.high_within[1], "{}", set.name);
    }
}
