//! What luck alone would have shown. The best of many candidates looks better than it is, for it was picked for its looks:
//! this is how good the best would look, had no idea any effect. A yardstick for people; nothing is decided by it.
//!
//! The change of a candidate without effect against its parent is taken as normal noise around 0. Of `n` such candidates the
//! best shows `noise · best_of(n)` on average, where one that is worse than its parent is not taken; the next depth goes on
//! from there, so depths add up. How large the noise is can be told in two ways, and neither is right: see [`Luck`].

use crate::facts::{Eval, Facts};
use crate::id::{Depth, EvalId, NodeId};
use crate::num::Finite;
use std::collections::BTreeMap;

/// A comparison of fewer configurations says nothing about their noise, and fewer candidates nothing about their spread.
const FEWEST: usize = 5;
/// The ends of a 95 % interval of a normal number are so many standard errors apart.
const INTERVAL_WIDTH: f64 = 2.0 * 1.959_963_984_540_054;
/// The standard deviation of normal numbers is so many times their median distance from the median.
const MEDIAN_DISTANCE: f64 = 1.482_602_218_505_602;

/// How good a search of this size would look without any effect, in the primary metric; positive is better.
#[derive(Clone, Debug, PartialEq)]
pub struct Luck {
    /// Each depth at which candidates have figures.
    pub depths: Vec<DepthLuck>,
    /// Candidates that differ from their parent in no figure: no luck can make these the best.
    pub without_effect: u32,
    /// By how much the best node is better than the root, which counts as 0.
    pub gain: Option<Finite>,
    /// By the noise between configurations: the typical standard error of a candidate's mean difference. As if each
    /// configuration were a draw of its own: where they are near copies, or the data as a whole are a draw, luck is larger.
    pub by_configurations: Option<Yardstick>,
    /// By the spread of all candidates: as if all that they differ by were luck. Where ideas do differ, luck is smaller.
    pub by_candidates: Option<Yardstick>,
}

/// What was looked at in one depth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DepthLuck {
    /// Which.
    pub depth: Depth,
    /// How many candidates have figures that differ from their parent's.
    pub candidates: u32,
    /// What the best of so many shows on average, in units of the noise of one.
    pub best_of: f64,
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
}

/// How a gain stands against both yardsticks, or the one that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Not above either.
    Within,
    /// Above the smaller one alone.
    Between,
    /// Above both.
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
    pub fn expected(&self) -> Vec<Finite> {
        let both = [self.by_configurations, self.by_candidates];
        let mut expected: Vec<Finite> = both.iter().flatten().map(|by| by.expected).collect();
        expected.sort_unstable();
        expected
    }

    /// How the gain stands; none where there is nothing to hold it against.
    #[must_use]
    pub fn standing(&self) -> Option<Standing> {
        let (gain, expected) = (self.gain?, self.expected());
        let above = expected.iter().filter(|luck| gain > **luck).count();
        match (above, expected.len()) {
            (_, 0) => None,
            (0, _) => Some(Standing::Within),
            (above, all) if above < all => Some(Standing::Between),
            _ => Some(Standing::Above),
        }
    }
}

/// A candidate with figures.
struct Candidate {
    depth: Depth,
    /// Its change against its parent.
    change: f64,
    /// The standard error of that between configurations.
    error: Option<f64>,
}

/// What luck would have shown in a run; none where no candidate has figures.
#[must_use]
pub fn luck(facts: &Facts) -> Option<Luck> {
    let seen = || facts.evals.iter().filter(|eval| eval.group.is_tree() && eval.stands());
    let candidates: Vec<Candidate> = seen().filter_map(candidate).collect();
    if candidates.is_empty() {
        return None;
    }
    let depths = depths(facts, &candidates);
    let luckiest: f64 = depths.iter().map(|depth| depth.best_of).sum();
    let yardstick = |noise: f64| {
        Some(Yardstick { noise: Finite::new(noise)?, expected: Finite::new(noise * luckiest)? })
    };
    let errors: Vec<f64> = candidates.iter().filter_map(|each| each.error).collect();
    let changes: Vec<f64> = candidates.iter().map(|each| each.change).collect();
    let without_effect = seen().filter(|eval| is_without_effect(eval)).count();
    Some(Luck {
        depths,
        without_effect: u32::try_from(without_effect).unwrap_or(u32::MAX),
        gain: gain(facts),
        by_configurations: median(errors).and_then(yardstick),
        by_candidates: spread(&changes).and_then(yardstick),
    })
}

fn is_without_effect(eval: &Eval) -> bool {
    eval.measured().is_some_and(|measured| !measured.scored.has_effect)
}

fn candidate(eval: &Eval) -> Option<Candidate> {
    let scored = &eval.measured().filter(|measured| measured.scored.has_effect)?.scored;
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
    let mut known: BTreeMap<u32, f64> = BTreeMap::new();
    let depth = |(depth, candidates)| {
        let best_of = *known.entry(candidates).or_insert_with(|| best_of(candidates));
        DepthLuck { depth, candidates, best_of, step: steps.get(&depth).copied() }
    };
    counts.into_iter().map(depth).collect()
}

/// The expected largest of 0 and so many standard normal numbers: the integral of 1 − Φ(z)ⁿ over z > 0.
fn best_of(numbers: u32) -> f64 {
    const WIDTH: f64 = 0.002;
    const STEPS: u32 = 5_000;
    let density = |z: f64| (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt();
    let above = |below: f64| 1.0 - below.min(1.0).powf(f64::from(numbers));
    let mut below = 0.5;
    let mut sum = 0.0;
    for step in 0..STEPS {
        let (z, last) = (f64::from(step) * WIDTH, above(below));
        let middle = density(z + WIDTH / 2.0);
        below += WIDTH / 6.0 * (density(z) + 4.0 * middle + density(z + WIDTH));
        sum += WIDTH / 2.0 * (last + above(below));
    }
    sum
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
            let best = best_of(numbers);
            assert!((best - expect).abs() < 5e-5, "{numbers}: {best}");
        }
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
        let by = |expected: f64| Yardstick {
            noise: Finite::ZERO,
            expected: Finite::new(expected).unwrap(),
        };
        let check = |gain: f64, configurations: Option<f64>, candidates: Option<f64>, expect| {
            let luck = Luck {
                depths: Vec::new(),
                without_effect: 0,
                gain: Finite::new(gain),
                by_configurations: configurations.map(by),
                by_candidates: candidates.map(by),
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
