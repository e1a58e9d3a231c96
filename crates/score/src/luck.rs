//! Estimate of how good the best of many candidates would look by luck alone, if no idea had any
//! effect. A yardstick for people; no decision uses it.
//!
//! The change of a candidate without effect against its parent is taken as normal noise around 0.
//! The best of `n` such candidates shows `noise · best_of(n)`, where one that is worse than its
//! parent is not taken; the next depth continues from there, so depths add up. A gain is compared
//! with what only one such search in twenty exceeds: half of them exceed the average. The noise can
//! be estimated in two ways, and neither is exact: see [`Luck`].

use std::collections::BTreeMap;
use treebeam_core::facts::{Eval, Facts, ScoredCandidate};
use treebeam_core::gate::{self, GateRule};
use treebeam_core::id::{Depth, EvalId, NodeId};
use treebeam_core::num::Finite;

/// Minimum number of configurations to estimate noise, and of candidates to estimate spread.
const MIN_SAMPLES: usize = 5;
/// Minimum number of valid candidates for reports on luck.
pub const MIN_CANDIDATES: u32 = 5;
/// Width of a 95 % interval of a normal number, in standard errors.
const INTERVAL_STANDARD_ERRORS: f64 = 2.0 * 1.959_963_984_540_054;
/// Ratio of a normal distribution's standard deviation to its median distance from the median.
const MEDIAN_DISTANCE_FACTOR: f64 = 1.482_602_218_505_602;
/// Value that one standard normal number in twenty exceeds.
const ONE_IN_TWENTY_QUANTILE: f64 = 1.644_853_626_951_473;

/// Share of the typical change below which noise is only rounding of equal numbers.
const ROUNDING_NOISE_RATIO: f64 = 1e-9;

/// Luck of a search of this size without any effect, in the primary metric; positive is better.
#[derive(Clone, Debug, PartialEq)]
pub struct Luck {
    /// Depths at which candidates have figures.
    pub depths: Vec<DepthLuck>,
    /// Number of valid candidates with their parent's figures: no luck can make these the best.
    pub without_effect: u32,
    /// Gain of the best node over the root, which counts as 0.
    pub gain: Option<Finite>,
    /// Estimate from the noise between configurations: the typical standard error of a candidate's
    /// mean difference. Treats each configuration as an independent draw: if they are near copies,
    /// or the whole data set is a draw, luck is larger.
    pub by_configurations: LuckEstimate,
    /// Estimate from the spread of all candidates, as if all their differences were luck. If ideas
    /// do differ, luck is smaller.
    pub by_candidates: LuckEstimate,
}

/// Size of luck by one of the two estimates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LuckEstimate {
    /// Too few samples for an estimate.
    TooFew,
    /// No noise beyond the rounding of equal numbers: there is no yardstick.
    NoNoise,
    /// Estimated size of luck.
    Known(LuckYardstick),
}

impl LuckEstimate {
    /// Returns the yardstick, if luck could be estimated.
    #[must_use]
    pub const fn yardstick(self) -> Option<LuckYardstick> {
        match self {
            Self::Known(yardstick) => Some(yardstick),
            Self::TooFew | Self::NoNoise => None,
        }
    }
}

/// Luck of the candidates of one depth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DepthLuck {
    /// Depth of the candidates.
    pub depth: Depth,
    /// Number of valid candidates whose figures differ from their parent's. Those with the figures
    /// of an older twin are not independent draws and do not count.
    pub candidates: u32,
    /// Best of this number of draws, in units of one candidate's noise.
    pub best_of: BestOf,
    /// Eval of this depth on the best path.
    pub step: Option<EvalId>,
}

/// Size of luck for an estimated noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LuckYardstick {
    /// Standard deviation of the change of one candidate without effect.
    pub noise: Finite,
    /// Average of the best of the whole search.
    pub expected: Finite,
    /// Value that the best of one such search in twenty exceeds.
    pub rarely: Finite,
}

/// Distribution of the best of some numbers, or of a sum of several such: mean, variance and third
/// central moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BestOf {
    /// Mean of the best.
    pub mean: f64,
    variance: f64,
    third: f64,
}

impl BestOf {
    /// Returns the estimate for this noise of one candidate, unless that is no more than rounding.
    fn to_estimate(self, noise: f64, rounding: f64) -> LuckEstimate {
        let of = |units: f64| Finite::new(noise * units);
        match (of(1.0), of(self.mean), of(self.one_in_twenty_value())) {
            _ if noise <= rounding => LuckEstimate::NoNoise,
            (Some(noise), Some(expected), Some(rarely)) => {
                LuckEstimate::Known(LuckYardstick { noise, expected, rarely })
            }
            _ => LuckEstimate::TooFew,
        }
    }

    /// Returns the value exceeded once in twenty times, by Cornish and Fisher: there is skew.
    fn one_in_twenty_value(self) -> f64 {
        let deviation = self.variance.sqrt();
        let leaning = if deviation > 0.0 { self.third / deviation.powi(3) } else { 0.0 };
        let far = ONE_IN_TWENTY_QUANTILE + (ONE_IN_TWENTY_QUANTILE.powi(2) - 1.0) * leaning / 6.0;
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

/// Position of a gain relative to what luck rarely exceeds, by one or both yardsticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GainPosition {
    /// Above neither yardstick.
    Within,
    /// Above the smaller yardstick only.
    Between,
    /// Above every yardstick.
    Above,
}

impl Luck {
    /// Returns the number of candidates that the best was picked from.
    #[must_use]
    pub fn candidate_count(&self) -> u32 {
        self.depths.iter().map(|depth| depth.candidates).sum()
    }

    /// Returns the available yardsticks, the smaller one first.
    #[must_use]
    pub fn yardsticks(&self) -> Vec<LuckYardstick> {
        let both = [self.by_configurations, self.by_candidates];
        let mut yardsticks: Vec<LuckYardstick> =
            both.into_iter().filter_map(LuckEstimate::yardstick).collect();
        yardsticks.sort_unstable_by_key(|by| by.noise);
        yardsticks
    }

    /// Returns the position of the gain; `None` without a yardstick or a gain.
    #[must_use]
    pub fn gain_position(&self) -> Option<GainPosition> {
        let (gain, yardsticks) = (self.gain?, self.yardsticks());
        let above = yardsticks.iter().filter(|by| gain > by.rarely).count();
        match (above, yardsticks.len()) {
            (_, 0) => None,
            (0, _) => Some(GainPosition::Within),
            (above, all) if above < all => Some(GainPosition::Between),
            _ => Some(GainPosition::Above),
        }
    }
}

/// Candidate with figures of its own.
struct LuckSample {
    depth: Depth,
    /// Change against the parent.
    change: f64,
    /// Standard error of the change between configurations.
    error: Option<f64>,
}

/// Estimates luck in a run; `None` if no valid candidate has figures. Needs five of them.
#[must_use]
pub fn estimate_luck(facts: &Facts) -> Option<Luck> {
    let counts =
        |eval: &Eval| eval.group.is_tree() && eval.is_current() && has_valid_results(facts, eval);
    let seen = || facts.evals.iter().filter(|eval| counts(eval));
    let candidates: Vec<LuckSample> = seen().filter_map(|eval| luck_sample(&eval)).collect();
    if candidates.is_empty() {
        return None;
    }
    let (depths, gain) = (luck_by_depth(facts, &candidates), best_gain(facts));
    let best: BestOf = depths.iter().map(|depth| depth.best_of).sum();
    let errors: Vec<f64> = candidates.iter().filter_map(|each| each.error).collect();
    let changes: Vec<f64> = candidates.iter().map(|each| each.change).collect();
    let rounding = rounding_noise(&changes, gain);
    let measure = |noise: Option<f64>| {
        let noise = noise.filter(|_| candidates.len() >= MIN_SAMPLES);
        noise.map_or(LuckEstimate::TooFew, |it| best.to_estimate(it, rounding))
    };
    let without_effect = seen().filter(|eval| is_without_effect(eval)).count();
    Some(Luck {
        depths,
        without_effect: u32::try_from(without_effect).unwrap_or(u32::MAX),
        gain,
        by_configurations: measure(median_of(errors)),
        by_candidates: measure(robust_deviation(&changes)),
    })
}

/// Returns the largest noise that rounding may cause, by the candidates' changes and the gain.
fn rounding_noise(changes: &[f64], gain: Option<Finite>) -> f64 {
    let typical = median_of(changes.iter().map(|change| change.abs()).collect());
    let gain = gain.map_or(0.0, |gain| gain.get().abs());
    ROUNDING_NOISE_RATIO * typical.unwrap_or_default().max(gain)
}

/// Returns true if the results are a complete, well-formed sweep: others cannot be the best.
fn has_valid_results(facts: &Facts, eval: &Eval) -> bool {
    let valid =
        [GateRule::Complete, GateRule::WellFormed, GateRule::PrimaryPresent, GateRule::NumbersKept];
    eval.scored_candidate().is_some_and(|measured| {
        let checks = gate::check_results(&measured.scored, &facts.settings);
        checks.iter().all(|check| check.passed || !valid.contains(&check.rule))
    })
}

fn is_without_effect(eval: &Eval) -> bool {
    eval.scored_candidate().is_some_and(|measured| !measured.scored.has_effect)
}

fn luck_sample(eval: &Eval) -> Option<LuckSample> {
    let is_draw = |measured: &ScoredCandidate| {
        measured.scored.has_effect && measured.work.same_code_as.is_none()
    };
    let scored = &eval.scored_candidate().filter(is_draw)?.scored;
    let change = scored.vs_parent.primary_delta?.get();
    let paired = scored.vs_parent.paired.filter(|paired| paired.pairs as usize >= MIN_SAMPLES);
    let error =
        paired.map(|paired| (paired.high.get() - paired.low.get()) / INTERVAL_STANDARD_ERRORS);
    Some(LuckSample { depth: eval.depth, change, error: error.filter(|error| error.is_finite()) })
}

fn best_gain(facts: &Facts) -> Option<Finite> {
    match facts.best_node() {
        NodeId::ROOT => Some(Finite::ZERO),
        best => facts.idea_chain(best).last()?.scored_candidate()?.scored.vs_root.primary_delta,
    }
}

fn luck_by_depth(facts: &Facts, candidates: &[LuckSample]) -> Vec<DepthLuck> {
    let path = facts.idea_chain(facts.best_node());
    let steps: BTreeMap<Depth, EvalId> = path.iter().map(|eval| (eval.depth, eval.id)).collect();
    let mut counts: BTreeMap<Depth, u32> = BTreeMap::new();
    for candidate in candidates {
        *counts.entry(candidate.depth).or_default() += 1;
    }
    // Most depths have the same number of candidates.
    let mut known: BTreeMap<u32, BestOf> = BTreeMap::new();
    let depth = |(depth, candidates)| {
        let best_of = *known.entry(candidates).or_insert_with(|| best_of_normals(candidates));
        DepthLuck { depth, candidates, best_of, step: steps.get(&depth).copied() }
    };
    counts.into_iter().map(depth).collect()
}

/// Returns the distribution of the largest of 0 and this many standard normal numbers: its k-th
/// moment is the integral of k·zᵏ⁻¹·(1 − Φ(z)ⁿ) over z > 0.
fn best_of_normals(numbers: u32) -> BestOf {
    const STEP_WIDTH: f64 = 0.002;
    const STEP_COUNT: u32 = 5_000;
    let density = |z: f64| (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt();
    let above = |below: f64| 1.0 - below.min(1.0).powf(f64::from(numbers));
    let mut below = 0.5;
    let [mut first, mut second, mut third] = [0.0; 3];
    for step in 0..STEP_COUNT {
        let (z, last) = (f64::from(step) * STEP_WIDTH, above(below));
        let middle = density(z + STEP_WIDTH / 2.0);
        below += STEP_WIDTH / 6.0 * (density(z) + 4.0 * middle + density(z + STEP_WIDTH));
        let (next, part) = (z + STEP_WIDTH, above(below));
        first += STEP_WIDTH / 2.0 * (last + part);
        second += STEP_WIDTH * (z * last + next * part);
        third += STEP_WIDTH * 1.5 * (z * z * last + next * next * part);
    }
    let variance = second - first * first;
    BestOf { mean: first, variance, third: third - 3.0 * first * variance - first.powi(3) }
}

/// Returns a robust standard deviation of mostly normal numbers: outliers count no more.
fn robust_deviation(numbers: &[f64]) -> Option<f64> {
    let middle = median_of(numbers.to_vec()).filter(|_| numbers.len() >= MIN_SAMPLES)?;
    let distances = numbers.iter().map(|number| (number - middle).abs()).collect();
    median_of(distances).map(|distance| distance * MEDIAN_DISTANCE_FACTOR)
}

fn median_of(mut numbers: Vec<f64>) -> Option<f64> {
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

    /// One and two have closed forms, 1/√(2π) and (2 + √2)/(2√(2π)); the others are the expected
    /// largest of so many normal numbers, from tables, which 0 hardly ever exceeds.
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
            let best = best_of_normals(numbers).mean;
            assert!((best - expect).abs() < 5e-5, "{numbers}: {best}");
        }
    }

    /// For one depth there is an exact answer: Φ(z)ⁿ = 0.95.
    #[test]
    fn one_search_in_twenty_shows_more() {
        for (numbers, expect) in
            [(1, 1.6449), (2, 1.9545), (7, 2.4421), (40, 3.0158), (1_000, 3.8844)]
        {
            let rarely = best_of_normals(numbers).one_in_twenty_value();
            assert!((rarely - expect).abs() < 0.03, "{numbers}: {rarely}");
        }
        // From 400,000 simulated searches, each of three depths with seven candidates.
        let deep: BestOf = [best_of_normals(7); 3].into_iter().sum();
        assert!(
            (deep.one_in_twenty_value() - 5.902).abs() < 0.03,
            "{}",
            deep.one_in_twenty_value()
        );
        assert!(best_of_normals(0).one_in_twenty_value().abs() < 1e-12);
    }

    #[test]
    fn one_far_off_does_not_widen_the_spread() {
        assert_eq!(median_of(vec![]), None);
        assert_eq!(median_of(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median_of(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(robust_deviation(&[1.0, 2.0, 3.0, 4.0]), None, "too few");
        // Distances from 3: 2, 1, 0, 1, and 2 or very many.
        for last in [5.0, 5e9] {
            assert_eq!(robust_deviation(&[1.0, 2.0, 3.0, 4.0, last]), Some(MEDIAN_DISTANCE_FACTOR));
        }
    }

    #[test]
    fn a_gain_is_held_against_both() {
        let by = |rarely: f64| {
            let rarely = Finite::new(rarely).unwrap();
            LuckEstimate::Known(LuckYardstick { noise: rarely, expected: Finite::ZERO, rarely })
        };
        let check = |gain: f64, configurations: Option<f64>, candidates: Option<f64>, expect| {
            let luck = Luck {
                depths: Vec::new(),
                without_effect: 0,
                gain: Finite::new(gain),
                by_configurations: configurations.map_or(LuckEstimate::NoNoise, by),
                by_candidates: candidates.map_or(LuckEstimate::TooFew, by),
            };
            assert_eq!(luck.gain_position(), expect, "{luck:?}");
        };
        check(1.0, Some(1.0), Some(2.0), Some(GainPosition::Within));
        check(1.5, Some(1.0), Some(2.0), Some(GainPosition::Between));
        check(1.5, Some(2.0), Some(1.0), Some(GainPosition::Between));
        check(2.5, Some(1.0), Some(2.0), Some(GainPosition::Above));
        check(1.5, None, Some(1.0), Some(GainPosition::Above));
        check(0.5, None, Some(1.0), Some(GainPosition::Within));
        check(f64::NAN, Some(1.0), Some(1.0), None);
        check(1.0, None, None, None);
    }
}
