//! What luck alone would have shown. The best of many candidates looks better than it is, for it was picked for its looks:
//! this is how good the best would look, had no idea any effect. A yardstick for people; nothing is decided by it.
//!
//! The change of a candidate without effect against its parent is taken as normal noise around 0. Of `n` such candidates the
//! best shows `noise · best_of(n)`, where one that is worse than its parent is not taken; the next depth goes on from there,
//! so depths add up. A gain is held against what only one such search in twenty exceeds: half of them exceed the average. How
//! large the noise is can be told in two ways, and neither is right: see [`Luck`].

use crate::facts::{Eval, Facts, Measured};
use crate::gate::{self, Rule};
use crate::id::{Depth, EvalId, NodeId};
use crate::num::Finite;
use std::collections::BTreeMap;

/// A comparison of fewer configurations says nothing about their noise, and fewer candidates nothing about their spread.
const FEWEST: usize = 5;
/// Of fewer valid candidates nothing is told of luck.
pub const MIN_CANDIDATES: u32 = 5;
/// The ends of a 95 % interval of a normal number are so many standard errors apart.
const INTERVAL_WIDTH: f64 = 2.0 * 1.959_963_984_540_054;
/// The standard deviation of normal numbers is so many times their median distance from the median.
const MEDIAN_DISTANCE: f64 = 1.482_602_218_505_602;
/// What one normal number in twenty exceeds.
const ONE_IN_TWENTY: f64 = 1.644_853_626_951_473;

/// Noise below this part of what changes is what rounding leaves of numbers that are equal.
const ROUNDING: f64 = 1e-9;

/// How good a search of this size would look without any effect, in the primary metric; positive is better.
#[derive(Clone, Debug, PartialEq)]
pub struct Luck {
    /// Each depth at which candidates have figures.
    pub depths: Vec<DepthLuck>,
    /// Valid candidates that differ from their parent in no figure: no luck can make these the best.
    pub without_effect: u32,
    /// By how much the best node is better than the root, which counts as 0.
    pub gain: Option<Finite>,
    /// By the noise between configurations: the typical standard error of a candidate's mean difference. As if each
    /// configuration were a draw of its own: where they are near copies, or the data as a whole are a draw, luck is larger.
    pub by_configurations: Measure,
    /// By the spread of all candidates: as if all that they differ by were luck. Where ideas do differ, luck is smaller.
    pub by_candidates: Measure,
}

/// How large luck is by one of the two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    /// There is too little to tell the noise by.
    TooFew,
    /// There is none, but for what rounding leaves of equal numbers: nothing can be held against it.
    NoNoise,
    /// As large as this.
    By(Yardstick),
}

impl Measure {
    /// What luck shows, where that can be told.
    #[must_use]
    pub const fn yardstick(self) -> Option<Yardstick> {
        match self {
            Self::By(yardstick) => Some(yardstick),
            Self::TooFew | Self::NoNoise => None,
        }
    }
}

/// What was looked at in one depth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DepthLuck {
    /// Which.
    pub depth: Depth,
    /// How many valid candidates have figures that differ from their parent's. Those that took over the figures of an older
    /// one with the same code are no draws of their own, and do not count.
    pub candidates: u32,
    /// What the best of so many shows, in units of the noise of one.
    pub best_of: BestOf,
    /// The one of them that is on the best path.
    pub step: Option<EvalId>,
}

/// What luck shows, if the noise is as large as this.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Yardstick {
    /// The standard deviation of the change of one candidate without effect.
    pub noise: Finite,
    /// What the best of the whole search would show on average.
    pub expected: Finite,
    /// What the best of one such search in twenty would exceed.
    pub rarely: Finite,
}

/// How the best of some numbers is spread, or the sum of several such: its mean, variance and third central moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BestOf {
    /// What it is on average.
    pub mean: f64,
    variance: f64,
    third: f64,
}

impl BestOf {
    /// What luck shows by it with this noise for one, unless that is no more than rounding leaves.
    fn by(self, noise: f64, rounding: f64) -> Measure {
        let of = |units: f64| Finite::new(noise * units);
        match (of(1.0), of(self.mean), of(self.rarely())) {
            _ if noise <= rounding => Measure::NoNoise,
            (Some(noise), Some(expected), Some(rarely)) => {
                Measure::By(Yardstick { noise, expected, rarely })
            }
            _ => Measure::TooFew,
        }
    }

    /// What it exceeds once in twenty times; by Cornish and Fisher, for it leans to one side.
    fn rarely(self) -> f64 {
        let deviation = self.variance.sqrt();
        let leaning = if deviation > 0.0 { self.third / deviation.powi(3) } else { 0.0 };
        let far = ONE_IN_TWENTY + (ONE_IN_TWENTY.powi(2) - 1.0) * leaning / 6.0;
        deviation.mul_add(far, self.mean)
    }
}

impl std::iter::Sum for BestOf {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |one, other| Self {
            mean: one.mean + other.mean,
            variance: one.variance + other.variance,
            third: one.third + other.third,
        })
    }
}

/// How a gain stands against what luck rarely exceeds, by both yardsticks, or the one that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Not above it by either.
    Within,
    /// Above it by the smaller one alone.
    Between,
    /// Above it by both.
    Above,
}

impl Luck {
    /// How many candidates the best was picked from.
    #[must_use]
    pub fn candidates(&self) -> u32 {
        self.depths.iter().map(|depth| depth.candidates).sum()
    }

    /// The yardsticks that there are, the smaller one first.
    #[must_use]
    pub fn yardsticks(&self) -> Vec<Yardstick> {
        let both = [self.by_configurations, self.by_candidates];
        let mut yardsticks: Vec<Yardstick> =
            both.into_iter().filter_map(Measure::yardstick).collect();
        yardsticks.sort_unstable_by_key(|by| by.noise);
        yardsticks
    }

    /// How the gain stands; none where there is nothing to hold it against.
    #[must_use]
    pub fn standing(&self) -> Option<Standing> {
        let (gain, yardsticks) = (self.gain?, self.yardsticks());
        let above = yardsticks.iter().filter(|by| gain > by.rarely).count();
        match (above, yardsticks.len()) {
            (_, 0) => None,
            (0, _) => Some(Standing::Within),
            (above, all) if above < all => Some(Standing::Between),
            _ => Some(Standing::Above),
        }
    }
}

/// A candidate with figures of its own.
struct Candidate {
    depth: Depth,
    /// Its change against its parent.
    change: f64,
    /// The standard error of that between configurations.
    error: Option<f64>,
}

/// What luck would have shown in a run; none where no valid candidate has figures. Of fewer than five nothing can be told.
#[must_use]
pub fn luck(facts: &Facts) -> Option<Luck> {
    let counts = |eval: &Eval| eval.group.is_tree() && eval.stands() && is_valid(facts, eval);
    let seen = || facts.evals.iter().filter(|eval| counts(eval));
    let candidates: Vec<Candidate> = seen().filter_map(|eval| candidate(&eval)).collect();
    if candidates.is_empty() {
        return None;
    }
    let (depths, gain) = (depths(facts, &candidates), gain(facts));
    let best: BestOf = depths.iter().map(|depth| depth.best_of).sum();
    let errors: Vec<f64> = candidates.iter().filter_map(|each| each.error).collect();
    let changes: Vec<f64> = candidates.iter().map(|each| each.change).collect();
    let rounding = rounding(&changes, gain);
    let measure = |noise: Option<f64>| {
        let noise = noise.filter(|_| candidates.len() >= FEWEST);
        noise.map_or(Measure::TooFew, |it| best.by(it, rounding))
    };
    let without_effect = seen().filter(|eval| is_without_effect(eval)).count();
    Some(Luck {
        depths,
        without_effect: u32::try_from(without_effect).unwrap_or(u32::MAX),
        gain,
        by_configurations: measure(median(errors)),
        by_candidates: measure(spread(&changes)),
    })
}

/// What rounding may make of noise that is none, by what candidates change and what was gained.
fn rounding(changes: &[f64], gain: Option<Finite>) -> f64 {
    let typical = median(changes.iter().map(|change| change.abs()).collect());
    let gain = gain.map_or(0.0, |gain| gain.get().abs());
    ROUNDING * typical.unwrap_or_default().max(gain)
}

/// Whether the figures are those of a whole sweep in its form: others are no draw that could be the best.
fn is_valid(facts: &Facts, eval: &Eval) -> bool {
    let valid = [Rule::Complete, Rule::WellFormed, Rule::PrimaryPresent, Rule::NumbersKept];
    eval.measured().is_some_and(|measured| {
        let checks = gate::results(&measured.scored, &facts.meaning);
        checks.iter().all(|check| check.passed || !valid.contains(&check.rule))
    })
}

fn is_without_effect(eval: &Eval) -> bool {
    eval.measured().is_some_and(|measured| !measured.scored.has_effect)
}

fn candidate(eval: &Eval) -> Option<Candidate> {
    let is_draw =
        |measured: &Measured| measured.scored.has_effect && measured.work.same_code_as.is_none();
    let scored = &eval.measured().filter(is_draw)?.scored;
    let change = scored.vs_parent.primary_delta?.get();
    let paired = scored.vs_parent.paired.filter(|paired| paired.pairs as usize >= FEWEST);
    let error = paired.map(|paired| (paired.high.get() - paired.low.get()) / INTERVAL_WIDTH);
    Some(Candidate { depth: eval.depth, change, error: error.filter(|error| error.is_finite()) })
}

fn gain(facts: &Facts) -> Option<Finite> {
    match facts.best() {
        NodeId::ROOT => Some(Finite::ZERO),
        best => facts.idea_chain(best).last()?.measured()?.scored.vs_root.primary_delta,
    }
}

fn depths(facts: &Facts, candidates: &[Candidate]) -> Vec<DepthLuck> {
    let path = facts.idea_chain(facts.best());
    let steps: BTreeMap<Depth, EvalId> = path.iter().map(|eval| (eval.depth, eval.id)).collect();
    let mut counts: BTreeMap<Depth, u32> = BTreeMap::new();
    for candidate in candidates {
        *counts.entry(candidate.depth).or_default() += 1;
    }
    // Most depths have the same number.
    let mut known: BTreeMap<u32, BestOf> = BTreeMap::new();
    let depth = |(depth, candidates)| {
        let best_of = *known.entry(candidates).or_insert_with(|| best_of(candidates));
        DepthLuck { depth, candidates, best_of, step: steps.get(&depth).copied() }
    };
    counts.into_iter().map(depth).collect()
}

/// The largest of 0 and so many standard normal numbers: its k-th moment is the integral of k·zᵏ⁻¹·(1 − Φ(z)ⁿ) over z > 0.
fn best_of(numbers: u32) -> BestOf {
    const WIDTH: f64 = 0.002;
    const STEPS: u32 = 5_000;
    let density = |z: f64| (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt();
    let above = |below: f64| 1.0 - below.min(1.0).powf(f64::from(numbers));
    let mut below = 0.5;
    let [mut first, mut second, mut third] = [0.0; 3];
    for step in 0..STEPS {
        let (z, last) = (f64::from(step) * WIDTH, above(below));
        let middle = density(z + WIDTH / 2.0);
        below += WIDTH / 6.0 * (density(z) + 4.0 * middle + density(z + WIDTH));
        let (next, part) = (z + WIDTH, above(below));
        first += WIDTH / 2.0 * (last + part);
        second += WIDTH * (z * last + next * part);
        third += WIDTH * 1.5 * (z * z * last + next * next * part);
    }
    let variance = second - first * first;
    BestOf { mean: first, variance, third: third - 3.0 * first * variance - first.powi(3) }
}

/// The standard deviation of numbers most of which are normal: a few that lie far off count no more than others.
fn spread(numbers: &[f64]) -> Option<f64> {
    let middle = median(numbers.to_vec()).filter(|_| numbers.len() >= FEWEST)?;
    let distances = numbers.iter().map(|number| (number - middle).abs()).collect();
    median(distances).map(|distance| distance * MEDIAN_DISTANCE)
}

fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_unstable_by(f64::total_cmp);
    let half = numbers.len() / 2;
    let upper = *numbers.get(half)?;
    let lower =
        if numbers.len().is_multiple_of(2) { *numbers.get(half.checked_sub(1)?)? } else { upper };
    Some(f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One and two have closed forms, 1/√(2π) and (2 + √2)/(2√(2π)); the others are the expected largest of so many normal
    /// numbers, from tables, which 0 hardly ever exceeds.
    #[test]
    fn the_best_of_many_grows_slowly() {
        for (numbers, expect) in [
            (0, 0.0),
            (1, 0.398_942),
            (2, 0.681_038),
            (10, 1.538_87),
            (40, 2.160_78),
            (100, 2.507_59),
            (1_000, 3.241_44),
        ] {
            let best = best_of(numbers).mean;
            assert!((best - expect).abs() < 5e-5, "{numbers}: {best}");
        }
    }

    /// Of one depth it can be said exactly: Φ(z)ⁿ = 0.95.
    #[test]
    fn one_search_in_twenty_shows_more() {
        for (numbers, expect) in
            [(1, 1.6449), (2, 1.9545), (7, 2.4421), (40, 3.0158), (1_000, 3.8844)]
        {
            let rarely = best_of(numbers).rarely();
            assert!((rarely - expect).abs() < 0.03, "{numbers}: {rarely}");
        }
        // Of 400,000 simulated searches, each of three depths with seven candidates.
        let deep: BestOf = [best_of(7); 3].into_iter().sum();
        assert!((deep.rarely() - 5.902).abs() < 0.03, "{}", deep.rarely());
        assert!(best_of(0).rarely().abs() < 1e-12);
    }

    #[test]
    fn one_far_off_does_not_widen_the_spread() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(spread(&[1.0, 2.0, 3.0, 4.0]), None, "too few");
        // Around 3: 2, 1, 0, 1 and 2 or very many.
        for last in [5.0, 5e9] {
            assert_eq!(spread(&[1.0, 2.0, 3.0, 4.0, last]), Some(MEDIAN_DISTANCE));
        }
    }

    #[test]
    fn a_gain_is_held_against_both() {
        let by = |rarely: f64| {
            let rarely = Finite::new(rarely).unwrap();
            Measure::By(Yardstick { noise: rarely, expected: Finite::ZERO, rarely })
        };
        let check = |gain: f64, configurations: Option<f64>, candidates: Option<f64>, expect| {
            let luck = Luck {
                depths: Vec::new(),
                without_effect: 0,
                gain: Finite::new(gain),
                by_configurations: configurations.map_or(Measure::NoNoise, by),
                by_candidates: candidates.map_or(Measure::TooFew, by),
            };
            assert_eq!(luck.standing(), expect, "{luck:?}");
        };
        check(1.0, Some(1.0), Some(2.0), Some(Standing::Within));
        check(1.5, Some(1.0), Some(2.0), Some(Standing::Between));
        check(1.5, Some(2.0), Some(1.0), Some(Standing::Between));
        check(2.5, Some(1.0), Some(2.0), Some(Standing::Above));
        check(1.5, None, Some(1.0), Some(Standing::Above));
        check(0.5, None, Some(1.0), Some(Standing::Within));
        check(f64::NAN, Some(1.0), Some(1.0), None);
        check(1.0, None, None, None);
    }
}
