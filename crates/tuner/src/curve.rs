//! Response curve of one constant: the gain of each tried value over the present one, and the
//! values to try next. Outcomes are differences; newer ones take precedence.

use super::axis::ValueAxis;
use super::constant::Constant;
use super::file_kind::FileKind;
use super::history::{TrialOutcome, TunerTrial};
use super::literal::Literal;
use std::collections::BTreeMap;

/// First step along an axis: a factor of 2.
const FIRST_STEP: f64 = 0.7;
/// Growth of the step after one that improved the score.
const STEP_GROWTH: f64 = 1.6;
/// Maximum step.
const MAX_STEP: f64 = 2.4;
/// Minimum step.
const MIN_STEP: f64 = 0.02;
/// Minimum distance of a new position from a known one, as a share of the gap between known ones.
const MIN_GAP_SHARE: f64 = 0.12;
/// Minimum number of values for a fitted parabola to replace the one through three of them.
const MIN_FITTED_VALUES: usize = 4;
/// Share of a slope that is expected to continue.
const SLOPE_PERSISTENCE: f64 = 0.5;

/// Constant with its tried values.
#[derive(Debug)]
pub(super) struct ConstantCurve<'a> {
    pub(super) constant: &'a Constant,
    axis: ValueAxis,
    steps: Vec<CurveStep>,
    points: Vec<CurvePoint>,
    parabola: [f64; 2],
    /// Effect of the constant so far.
    pub(super) effect: ConstantEffect,
}

/// Effect of a constant on the score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConstantEffect {
    Untried,
    Yes,
    No,
}

#[derive(Clone, Copy, Debug)]
struct CurvePoint {
    value: f64,
    place: f64,
    /// Gain over the present value; `None` if there was no result.
    gain: Option<f64>,
}

/// Value to try next.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProposedValue {
    pub(super) to: String,
    /// Expected gain over the present value.
    pub(super) expected_gain: f64,
    pub(super) reason: ProposalReason,
}

/// Reason to try a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ProposalReason {
    /// No value was tried yet.
    First,
    /// Improved the score on another node and is not the present value here.
    Join { gain: f64 },
    /// Continues in the direction that improved the score, beyond this value.
    Further { beyond: f64, gain: f64 },
    /// Moves away from a value that was worse or failed.
    Back { from: f64, loss: Option<f64> },
    /// Lies between two values, near the best known one.
    Between { low: f64, high: f64, best: f64 },
}

impl<'a> ConstantCurve<'a> {
    pub(super) fn new(constant: &'a Constant, trials: &[TunerTrial]) -> Self {
        let mut steps: Vec<CurveStep> = trials
            .iter()
            .filter(|trial| trial.change.is_about(&constant.id))
            .filter_map(|trial| CurveStep::from_trial(trial, &constant.id.file))
            .collect();
        steps.sort_by_key(|step| std::cmp::Reverse(step.node));
        let now = constant.literal.value();
        let ends = steps.iter().flat_map(|step| [step.from, step.to]);
        let values: Vec<f64> = ends.chain([now]).collect();
        let axis = ValueAxis::from_values(&constant.literal, &values);
        let matters = match steps.iter().all(|step| step.outcome == TrialOutcome::NoEffect) {
            _ if steps.is_empty() => ConstantEffect::Untried,
            true => ConstantEffect::No,
            false => ConstantEffect::Yes,
        };
        let points = known_points(now, &steps, axis);
        Self { constant, axis, steps, points, parabola: [0.0; 2], effect: matters }
    }

    /// Returns the outcomes that moved the score: node, positions from the present one, and gain.
    pub(super) fn score_moves(&self) -> impl Iterator<Item = (u32, [f64; 2], f64)> {
        let here = self.axis.position_of(self.present_value());
        self.steps.iter().filter_map(move |step| {
            let places = [step.from, step.to].map(|value| self.axis.position_of(value) - here);
            match step.outcome {
                TrialOutcome::Moved(gain) => Some((step.node, places, gain)),
                TrialOutcome::NoEffect | TrialOutcome::Failed => None,
            }
        })
    }

    /// Corrects the outcomes for the estimated luck of the nodes.
    pub(super) fn correct_for_luck(&mut self, parabola: [f64; 2], luck: &BTreeMap<u32, f64>) {
        for step in &mut self.steps {
            if let TrialOutcome::Moved(gain) = &mut step.outcome {
                *gain += luck.get(&step.node).copied().unwrap_or(0.0);
            }
        }
        self.parabola = parabola;
        self.points = known_points(self.present_value(), &self.steps, self.axis);
    }

    /// Returns the values to try next, best first. `sign` directs the first step of an untried one.
    pub(super) fn proposed_values(&self, sign: f64) -> Vec<ProposedValue> {
        let mut aims = match self.effect {
            ConstantEffect::Untried => self.first_values(sign),
            ConstantEffect::Yes | ConstantEffect::No => self.next_values(),
        };
        aims.sort_by(|a, b| b.expected_gain.total_cmp(&a.expected_gain));
        aims
    }

    fn present_value(&self) -> f64 {
        self.constant.literal.value()
    }

    fn first_values(&self, sign: f64) -> Vec<ProposedValue> {
        if self.axis == ValueAxis::Flag {
            let to = self.constant.literal.format_value(1.0 - self.present_value());
            return vec![ProposedValue { to, expected_gain: 0.0, reason: ProposalReason::First }];
        }
        let place = self.axis.position_of(self.present_value());
        let step = |sign: f64| self.new_value_at(place + sign * FIRST_STEP, sign);
        let aim = |to| ProposedValue { to, expected_gain: 0.0, reason: ProposalReason::First };
        [step(sign), step(-sign)].into_iter().flatten().map(aim).collect()
    }

    fn next_values(&self) -> Vec<ProposedValue> {
        let Some((at, best, gain)) = self.best_point() else { return Vec::new() };
        let mut aims = Vec::new();
        if best.value.total_cmp(&self.present_value()).is_ne() && self.can_retry(best.value) {
            let to = self.constant.literal.format_value(best.value);
            aims.push(ProposedValue {
                to,
                expected_gain: gain,
                reason: ProposalReason::Join { gain },
            });
        }
        if self.axis == ValueAxis::Flag {
            return aims;
        }
        let below = at.checked_sub(1).and_then(|at| self.points.get(at));
        let above = self.points.get(at + 1);
        match (below, above) {
            (None, None) => {}
            (Some(other), None) => aims.extend(self.value_beyond(&best, gain, other, 1.0)),
            (None, Some(other)) => aims.extend(self.value_beyond(&best, gain, other, -1.0)),
            (Some(low), Some(high)) => aims.extend(self.values_between(low, &best, gain, high)),
        }
        aims
    }

    /// Returns true if a value was never tried, or improved the score when tried last.
    fn can_retry(&self, value: f64) -> bool {
        let last = self.steps.iter().find(|step| step.to.total_cmp(&value).is_eq());
        last.is_none_or(|step| step.paid)
    }

    fn best_point(&self) -> Option<(usize, CurvePoint, f64)> {
        let known = self.points.iter().enumerate();
        let known = known.filter_map(|(at, point)| Some((at, *point, point.gain?)));
        known.max_by(|(.., a), (.., b)| a.total_cmp(b))
    }

    /// Proposes a value beyond the best one, away from its only neighbour.
    fn value_beyond(
        &self,
        best: &CurvePoint,
        gain: f64,
        other: &CurvePoint,
        sign: f64,
    ) -> Option<ProposedValue> {
        let gap = (best.place - other.place).abs();
        let rise = other.gain.map(|other| gain - other);
        let paid =
            self.steps.iter().any(|step| step.paid && step.to.total_cmp(&best.value).is_eq());
        let growth = if paid { STEP_GROWTH } else { 1.0 };
        let step = (gap * growth).clamp(FIRST_STEP / 2.0, MAX_STEP);
        let to = self.new_value_at(best.place + sign * step, sign)?;
        let reason = if paid {
            ProposalReason::Further { beyond: best.value, gain: rise.unwrap_or(gain) }
        } else {
            ProposalReason::Back { from: other.value, loss: rise }
        };
        Some(ProposedValue {
            to,
            expected_gain: gain + SLOPE_PERSISTENCE * rise.unwrap_or(0.0),
            reason,
        })
    }

    /// Proposes the peak of a parabola through three values, or the middle of the wider gap.
    fn values_between(
        &self,
        low: &CurvePoint,
        best: &CurvePoint,
        gain: f64,
        high: &CurvePoint,
    ) -> Vec<ProposedValue> {
        let (left, right) = (best.place - low.place, high.place - best.place);
        let reason = ProposalReason::Between { low: low.value, high: high.value, best: best.value };
        let aim = |offset: f64, hope| {
            let sign = offset.signum();
            let to = self.new_value_at(best.place + offset, sign)?;
            Some(ProposedValue { to, expected_gain: hope, reason: reason.clone() })
        };
        let drop = |point: &CurvePoint| point.gain.map(|other| gain - other);
        let peak = match (drop(low), drop(high)) {
            (Some(down), Some(up)) => parabola_peak(left, down, right, up),
            _ => None,
        };
        let peak = self.fitted_peak(best, gain, [low, high]).or(peak);
        let near =
            |offset: f64| offset.abs() < MIN_GAP_SHARE * if offset < 0.0 { left } else { right };
        let middle = if left > right { -left / 2.0 } else { right / 2.0 };
        let middle = Some(middle).filter(|offset| offset.abs() >= MIN_STEP);
        let peak = peak.filter(|(offset, _)| !near(*offset) && offset.abs() >= MIN_STEP);
        let peak = peak.and_then(|(offset, rise)| aim(offset, gain + rise));
        peak.or_else(|| aim(middle?, gain)).into_iter().collect()
    }

    /// Returns the peak of the fitted parabola relative to the best value, and its height above it.
    fn fitted_peak(
        &self,
        best: &CurvePoint,
        gain: f64,
        [low, high]: [&CurvePoint; 2],
    ) -> Option<(f64, f64)> {
        let [slope, bend] = self.parabola;
        let known = self.points.iter().filter(|point| point.gain.is_some()).count();
        let top = self.axis.position_of(self.present_value()) - slope / (2.0 * bend);
        let inside = low.place < top && top < high.place;
        let rise = -slope * slope / (4.0 * bend) - gain;
        (known >= MIN_FITTED_VALUES && bend < 0.0 && inside)
            .then_some((top - best.place, rise.max(0.0)))
    }

    /// Formats the value at a position, if it is new. A whole number moves by at least 1.
    fn new_value_at(&self, place: f64, sign: f64) -> Option<String> {
        let literal = &self.constant.literal;
        let read = |text: &str| self.parse_value(text);
        let text = literal.format_value(self.axis.value_at(place));
        let value = read(&text)?;
        let is_known =
            |value: f64| self.points.iter().any(|point| point.value.total_cmp(&value).is_eq());
        let text = if literal.is_whole() && is_known(value) {
            let toward =
                if matches!(self.axis, ValueAxis::Size { sign: -1.0 }) { -sign } else { sign };
            literal.format_value(value + toward)
        } else {
            text
        };
        let value = read(&text)?;
        (self.axis.contains(value) && !is_known(value)).then_some(text)
    }

    fn parse_value(&self, text: &str) -> Option<f64> {
        parse_literal_value(text, &self.constant.id.file)
    }
}

fn parse_literal_value(text: &str, file: &str) -> Option<f64> {
    Some(Literal::parse(text, FileKind::from_path(file)?)?.value())
}

/// Returns the peak of a parabola through three points relative to the middle one, and its height
/// above it. The middle point is the highest; the others are given by distance and drop.
fn parabola_peak(left: f64, down: f64, right: f64, up: f64) -> Option<(f64, f64)> {
    let bend = (down / left + up / right) / (left + right);
    let slope = down / left - bend * left;
    (bend > 0.0 && bend.is_finite()).then(|| (slope / (2.0 * bend), slope * slope / (4.0 * bend)))
}

#[derive(Debug)]
struct CurveStep {
    from: f64,
    to: f64,
    node: u32,
    outcome: TrialOutcome,
    /// True if it was measured to be better, by luck or not.
    paid: bool,
}

impl CurveStep {
    fn from_trial(trial: &TunerTrial, file: &str) -> Option<Self> {
        let TunerTrial { change, node, outcome } = trial;
        let (from, to) =
            (parse_literal_value(&change.from, file)?, parse_literal_value(&change.to, file)?);
        let paid = matches!(outcome, TrialOutcome::Moved(gain) if *gain > 0.0);
        Some(Self { from, to, node: *node, outcome: *outcome, paid })
    }
}

/// Returns all values that steps connect to the present one, and those that failed. Newer steps are
/// followed first.
fn known_points(now: f64, steps: &[CurveStep], axis: ValueAxis) -> Vec<CurvePoint> {
    let point = |value, gain| CurvePoint { value, place: axis.position_of(value), gain };
    let mut points = vec![point(now, Some(0.0))];
    let gain_of = |points: &[CurvePoint], value: f64| {
        points.iter().find(|point| point.value.total_cmp(&value).is_eq()).map(|point| point.gain)
    };
    let reach = |points: &[CurvePoint]| {
        steps.iter().find_map(|step| {
            let moved = match step.outcome {
                TrialOutcome::Moved(gain) => gain,
                TrialOutcome::NoEffect => 0.0,
                TrialOutcome::Failed => return None,
            };
            match (gain_of(points, step.from), gain_of(points, step.to)) {
                (Some(Some(gain)), None) => Some(point(step.to, Some(gain + moved))),
                (None, Some(Some(gain))) => Some(point(step.from, Some(gain - moved))),
                _ => None,
            }
        })
    };
    while let Some(reached) = reach(&points) {
        points.push(reached);
    }
    for step in steps {
        if gain_of(&points, step.to).is_none() {
            points.push(point(step.to, None));
        }
    }
    points.sort_by(|a, b| a.place.total_cmp(&b.place));
    points
}
