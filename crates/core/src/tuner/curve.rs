//! What is known about one constant: which values it has had, and how much better or worse each is than the present one.
//! Outcomes are differences; newer ones count before older ones. From that follow the values that are worth trying next.

use super::axis::Axis;
use super::constant::Constant;
use super::history::{Outcome, Trial};
use super::kind::FileKind;
use super::literal::Literal;
use std::collections::BTreeMap;

/// The first step along an axis: a factor of 2.
const FIRST: f64 = 0.7;
/// How much further the next step goes after one that paid.
const GROWTH: f64 = 1.6;
/// No step is longer.
const LONGEST: f64 = 2.4;
/// No step is shorter.
const SHORTEST: f64 = 0.02;
/// A place this near to a known one, as a part of the gap that it is in, teaches nothing.
const NEAR: f64 = 0.12;
/// So many values make a parabola that is better than one through three of them.
const FITTED: usize = 4;
/// How much of a slope is expected to go on.
const HOPE: f64 = 0.5;

/// A constant and what is known about its values.
#[derive(Debug)]
pub(super) struct Curve<'a> {
    pub(super) constant: &'a Constant,
    axis: Axis,
    steps: Vec<Step>,
    points: Vec<Point>,
    parabola: [f64; 2],
    /// Whether anything that was tried had an effect.
    pub(super) matters: Matters,
}

/// Whether a constant does anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Matters {
    Untried,
    Yes,
    No,
}

#[derive(Clone, Copy, Debug)]
struct Point {
    value: f64,
    place: f64,
    /// How much better than the present value; none where there was no result.
    gain: Option<f64>,
}

/// A value that is worth trying.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Aim {
    pub(super) to: String,
    /// How much better the score may become.
    pub(super) hope: f64,
    pub(super) reason: Reason,
}

/// Why a value is worth trying.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reason {
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

impl<'a> Curve<'a> {
    pub(super) fn new(constant: &'a Constant, trials: &[Trial]) -> Self {
        let mut steps: Vec<Step> = trials
            .iter()
            .filter(|trial| trial.change.is_about(&constant.id))
            .filter_map(|trial| Step::of(trial, &constant.id.file))
            .collect();
        steps.sort_by_key(|step| std::cmp::Reverse(step.node));
        let now = constant.literal.value();
        let ends = steps.iter().flat_map(|step| [step.from, step.to]);
        let values: Vec<f64> = ends.chain([now]).collect();
        let axis = Axis::of(&constant.literal, &values);
        let matters = match steps.iter().all(|step| step.outcome == Outcome::NoEffect) {
            _ if steps.is_empty() => Matters::Untried,
            true => Matters::No,
            false => Matters::Yes,
        };
        let points = known(now, &steps, axis);
        Self { constant, axis, steps, points, parabola: [0.0; 2], matters }
    }

    /// The outcomes in which the score moved: node, places from the present one on, and by how much.
    pub(super) fn moves(&self) -> impl Iterator<Item = (u32, [f64; 2], f64)> {
        let here = self.axis.place(self.now());
        self.steps.iter().filter_map(move |step| {
            let places = [step.from, step.to].map(|value| self.axis.place(value) - here);
            match step.outcome {
                Outcome::Moved(gain) => Some((step.node, places, gain)),
                Outcome::NoEffect | Outcome::Failed => None,
            }
        })
    }

    /// Corrects the outcomes, now that it is known how lucky nodes were.
    pub(super) fn settle(&mut self, parabola: [f64; 2], luck: &BTreeMap<u32, f64>) {
        for step in &mut self.steps {
            if let Outcome::Moved(gain) = &mut step.outcome {
                *gain += luck.get(&step.node).copied().unwrap_or(0.0);
            }
        }
        self.parabola = parabola;
        self.points = known(self.now(), &self.steps, self.axis);
    }

    /// Values that are worth trying, the most promising first. The sign says which way an untried one goes.
    pub(super) fn aims(&self, sign: f64) -> Vec<Aim> {
        let mut aims = match self.matters {
            Matters::Untried => self.first(sign),
            Matters::Yes | Matters::No => self.next(),
        };
        aims.sort_by(|a, b| b.hope.total_cmp(&a.hope));
        aims
    }

    fn now(&self) -> f64 {
        self.constant.literal.value()
    }

    fn first(&self, sign: f64) -> Vec<Aim> {
        if self.axis == Axis::Flag {
            let to = self.constant.literal.write(1.0 - self.now());
            return vec![Aim { to, hope: 0.0, reason: Reason::First }];
        }
        let place = self.axis.place(self.now());
        let step = |sign: f64| self.landing(place + sign * FIRST, sign);
        let aim = |to| Aim { to, hope: 0.0, reason: Reason::First };
        [step(sign), step(-sign)].into_iter().flatten().map(aim).collect()
    }

    fn next(&self) -> Vec<Aim> {
        let Some((at, best, gain)) = self.best() else { return Vec::new() };
        let mut aims = Vec::new();
        if best.value.total_cmp(&self.now()).is_ne() && self.may_come_again(best.value) {
            let to = self.constant.literal.write(best.value);
            aims.push(Aim { to, hope: gain, reason: Reason::Join { gain } });
        }
        if self.axis == Axis::Flag {
            return aims;
        }
        let below = at.checked_sub(1).and_then(|at| self.points.get(at));
        let above = self.points.get(at + 1);
        match (below, above) {
            (None, None) => {}
            (Some(other), None) => aims.extend(self.outward(&best, gain, other, 1.0)),
            (None, Some(other)) => aims.extend(self.outward(&best, gain, other, -1.0)),
            (Some(low), Some(high)) => aims.extend(self.between(low, &best, gain, high)),
        }
        aims
    }

    /// Whether a value was never tried, or paid when it was tried last.
    fn may_come_again(&self, value: f64) -> bool {
        let last = self.steps.iter().find(|step| step.to.total_cmp(&value).is_eq());
        last.is_none_or(|step| step.paid)
    }

    fn best(&self) -> Option<(usize, Point, f64)> {
        let known = self.points.iter().enumerate();
        let known = known.filter_map(|(at, point)| Some((at, *point, point.gain?)));
        known.max_by(|(.., a), (.., b)| a.total_cmp(b))
    }

    /// On from the best value, away from its only neighbour.
    fn outward(&self, best: &Point, gain: f64, other: &Point, sign: f64) -> Option<Aim> {
        let gap = (best.place - other.place).abs();
        let rise = other.gain.map(|other| gain - other);
        let paid =
            self.steps.iter().any(|step| step.paid && step.to.total_cmp(&best.value).is_eq());
        let growth = if paid { GROWTH } else { 1.0 };
        let step = (gap * growth).clamp(FIRST / 2.0, LONGEST);
        let to = self.landing(best.place + sign * step, sign)?;
        let reason = if paid {
            Reason::Further { beyond: best.value, gain: rise.unwrap_or(gain) }
        } else {
            Reason::Back { from: other.value, loss: rise }
        };
        Some(Aim { to, hope: gain + HOPE * rise.unwrap_or(0.0), reason })
    }

    /// Where a parabola through three values is highest, or the middle of the wider gap.
    fn between(&self, low: &Point, best: &Point, gain: f64, high: &Point) -> Vec<Aim> {
        let (left, right) = (best.place - low.place, high.place - best.place);
        let reason = Reason::Between { low: low.value, high: high.value, best: best.value };
        let aim = |offset: f64, hope| {
            let sign = offset.signum();
            let to = self.landing(best.place + offset, sign)?;
            Some(Aim { to, hope, reason: reason.clone() })
        };
        let drop = |point: &Point| point.gain.map(|other| gain - other);
        let peak = match (drop(low), drop(high)) {
            (Some(down), Some(up)) => summit(left, down, right, up),
            _ => None,
        };
        let peak = self.fitted(best, gain, [low, high]).or(peak);
        let near = |offset: f64| offset.abs() < NEAR * if offset < 0.0 { left } else { right };
        let middle = if left > right { -left / 2.0 } else { right / 2.0 };
        let middle = Some(middle).filter(|offset| offset.abs() >= SHORTEST);
        let peak = peak.filter(|(offset, _)| !near(*offset) && offset.abs() >= SHORTEST);
        let peak = peak.and_then(|(offset, rise)| aim(offset, gain + rise));
        peak.or_else(|| aim(middle?, gain)).into_iter().collect()
    }

    /// Where the parabola through all outcomes is highest, seen from the best value, and how much higher.
    fn fitted(&self, best: &Point, gain: f64, [low, high]: [&Point; 2]) -> Option<(f64, f64)> {
        let [slope, bend] = self.parabola;
        let known = self.points.iter().filter(|point| point.gain.is_some()).count();
        let top = self.axis.place(self.now()) - slope / (2.0 * bend);
        let inside = low.place < top && top < high.place;
        let rise = -slope * slope / (4.0 * bend) - gain;
        (known >= FITTED && bend < 0.0 && inside).then_some((top - best.place, rise.max(0.0)))
    }

    /// The value at a place as it would be written, if it is new. A whole number moves by 1 at least.
    fn landing(&self, place: f64, sign: f64) -> Option<String> {
        let literal = &self.constant.literal;
        let read = |text: &str| self.read(text);
        let text = literal.write(self.axis.value(place));
        let value = read(&text)?;
        let is_known =
            |value: f64| self.points.iter().any(|point| point.value.total_cmp(&value).is_eq());
        let text = if literal.is_whole() && is_known(value) {
            let toward = if matches!(self.axis, Axis::Size { sign: -1.0 }) { -sign } else { sign };
            literal.write(value + toward)
        } else {
            text
        };
        let value = read(&text)?;
        (self.axis.has(value) && !is_known(value)).then_some(text)
    }

    fn read(&self, text: &str) -> Option<f64> {
        read(text, &self.constant.id.file)
    }
}

fn read(text: &str, file: &str) -> Option<f64> {
    Some(Literal::parse(text, FileKind::of(file)?)?.value())
}

/// How far from the middle of three values a parabola through them is highest, and how much higher. The middle one is the
/// highest of the three: the others lie so far away, and so much lower.
fn summit(left: f64, down: f64, right: f64, up: f64) -> Option<(f64, f64)> {
    let bend = (down / left + up / right) / (left + right);
    let slope = down / left - bend * left;
    (bend > 0.0 && bend.is_finite()).then(|| (slope / (2.0 * bend), slope * slope / (4.0 * bend)))
}

#[derive(Debug)]
struct Step {
    from: f64,
    to: f64,
    node: u32,
    outcome: Outcome,
    /// Whether it was measured to be better, lucky or not.
    paid: bool,
}

impl Step {
    fn of(trial: &Trial, file: &str) -> Option<Self> {
        let Trial { change, node, outcome } = trial;
        let (from, to) = (read(&change.from, file)?, read(&change.to, file)?);
        let paid = matches!(outcome, Outcome::Moved(gain) if *gain > 0.0);
        Some(Self { from, to, node: *node, outcome: *outcome, paid })
    }
}

/// Every value that steps lead to from the present one, and those that failed. The newest steps are followed first.
fn known(now: f64, steps: &[Step], axis: Axis) -> Vec<Point> {
    let point = |value, gain| Point { value, place: axis.place(value), gain };
    let mut points = vec![point(now, Some(0.0))];
    let gain_of = |points: &[Point], value: f64| {
        points.iter().find(|point| point.value.total_cmp(&value).is_eq()).map(|point| point.gain)
    };
    let reach = |points: &[Point]| {
        steps.iter().find_map(|step| {
            let moved = match step.outcome {
                Outcome::Moved(gain) => gain,
                Outcome::NoEffect => 0.0,
                Outcome::Failed => return None,
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
