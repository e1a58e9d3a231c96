//! What is known about one constant: which values it has had, and how much better or worse each is than the present one.
//! Outcomes are differences; newer ones count before older ones. From that follow the values that are worth trying next.

use super::axis::ValueAxis;
use super::constant::Constant;
use super::file_kind::FileKind;
use super::history::{TrialOutcome, TunerTrial};
use super::literal::Literal;
use std::collections::BTreeMap;

/// The first step along an axis: a factor of 2.
const FIRST_STEP: f64 = 0.7;
/// How much further the next step goes after one that paid.
const STEP_GROWTH: f64 = 1.6;
/// No step is longer.
const MAX_STEP: f64 = 2.4;
/// No step is shorter.
const MIN_STEP: f64 = 0.02;
/// A place this near to a known one, as a part of the gap that it is in, teaches nothing.
const MIN_GAP_SHARE: f64 = 0.12;
/// So many values make a parabola that is better than one through three of them.
const MIN_FITTED_VALUES: usize = 4;
/// How much of a slope is expected to go on.
const SLOPE_PERSISTENCE: f64 = 0.5;

/// A constant and what is known about its values.
#[derive(Debug)]
pub(super) struct ConstantCurve<'a> {
    pub(super) constant: &'a Constant,
    axis: ValueAxis,
    steps: Vec<CurveStep>,
    points: Vec<CurvePoint>,
    parabola: [f64; 2],
    /// Whether anything that was tried had an effect.
    pub(super) effect: ConstantEffect,
}

/// Whether a constant does anything.
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
    /// How much better than the present value; none where there was no result.
    gain: Option<f64>,
}

/// A value that is worth trying.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProposedValue {
    pub(super) to: String,
    /// How much better the score may become.
    pub(super) expected_gain: f64,
    pub(super) reason: ProposalReason,
}

/// Why a value is worth trying.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ProposalReason {
    /// Nothing is known.
    First,
    /// It paid elsewhere and is not here yet.
    Join { gain: f64 },
    /// On in the direction that paid, beyond this value.
    Further { beyond: f64, gain: f64 },
    /// Away from a value that did not pay.
    Back { from: f64, loss: Option<f64> },
    /// Between two values, near the best known one.
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

    /// The outcomes in which the score moved: node, places from the present one on, and by how much.
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

    /// Corrects the outcomes, now that it is known how lucky nodes were.
    pub(super) fn correct_for_luck(&mut self, parabola: [f64; 2], luck: &BTreeMap<u32, f64>) {
        for step in &mut self.steps {
            if let TrialOutcome::Moved(gain) = &mut step.outcome {
                *gain += luck.get(&step.node).copied().unwrap_or(0.0);
            }
        }
        self.parabola = parabola;
        self.points = known_points(self.present_value(), &self.steps, self.axis);
    }

    /// Values that are worth trying, the most promising first. The sign says which way an untried one goes.
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

    /// Whether a value was never tried, or paid when it was tried last.
    fn can_retry(&self, value: f64) -> bool {
        let last = self.steps.iter().find(|step| step.to.total_cmp(&value).is_eq());
        last.is_none_or(|step| step.paid)
    }

    fn best_point(&self) -> Option<(usize, CurvePoint, f64)> {
        let known = self.points.iter().enumerate();
        let known = known.filter_map(|(at, point)| Some((at, *point, point.gain?)));
        known.max_by(|(.., a), (.., b)| a.total_cmp(b))
    }

    /// On from the best value, away from its only neighbour.
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

    /// Where a parabola through three values is highest, or the middle of the wider gap.
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

    /// Where the parabola through all outcomes is highest, seen from the best value, and how much higher.
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

    /// The value at a place as it would be written, if it is new. A whole number moves by 1 at least.
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

/// How far from the middle of three values a parabola through them is highest, and how much higher. The middle one is the
/// highest of the three: the others lie so far away, and so much lower.
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
    /// Whether it was measured to be better, lucky or not.
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

/// Every value that steps lead to from the present one, and those that failed. The newest steps are followed first.
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
