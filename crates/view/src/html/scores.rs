//! Every score against the root, by eval and by depth, with the best so far. Scores far below the others are drawn at the
//! edge, and counted: one candidate that broke everything does not hide what the others did.

use super::mark;
use super::plot::{Scale, float, grid, px};
use crate::figure::change;
use crate::outcome::Outcome;
use crate::read;
use crate::words::count;
use maud::{Markup, html};
use std::borrow::Cow;
use treebeam_core::facts::{Eval, Facts};
use treebeam_core::num::Finite;

/// The drawing's size.
const SIZE: (f64, f64) = (860.0, 260.0);
/// Where values are drawn: left, right, top, bottom.
const FIELD: (f64, f64, f64, f64) = (64.0, 846.0, 14.0, 222.0);
/// How much room the name of a depth needs.
const NAME: f64 = 56.0;
/// With more points than this they are small.
const FEW: usize = 300;
/// How wide the points of a depth are spread, as a part of the room between two.
const SPREAD: f64 = 0.7;

/// A score that is on record.
struct Point<'a> {
    eval: Cow<'a, Eval>,
    score: f64,
}

fn points(facts: &Facts) -> Vec<Point<'_>> {
    let scored = facts.evals.iter().filter_map(|eval| Some((read::rank_score(&eval)?, eval)));
    scored.map(|(score, eval)| Point { eval, score: score.get() }).collect()
}

/// From the lowest to the highest, with 0 among them; where a few lie far below, without these.
fn scale(points: &[Point<'_>]) -> Scale {
    let mut scores: Vec<f64> = points.iter().map(|point| point.score).collect();
    scores.sort_by(f64::total_cmp);
    let at = |part: usize| scores.get(scores.len() * part / 100).copied().unwrap_or_default();
    let high = scores.last().copied().unwrap_or_default().max(0.0);
    let (least, usual) = (at(0).min(0.0), at(10).min(0.0));
    let low =
        if high - least > 3.0 * (high - usual) { usual - (high - usual) * 0.2 } else { least };
    let room = (high - low) * 0.06;
    Scale::new((low - room, high + room), (FIELD.3, FIELD.2))
}

/// Scores in the order of the evals.
#[must_use]
pub fn by_eval(facts: &Facts) -> Markup {
    let points = points(facts);
    let last = facts.evals.len().max(1);
    let across = Scale::new((0.5, float(last) + 0.5), (FIELD.0, FIELD.1));
    let place = |eval: &Eval| across.at(f64::from(eval.id.number()));
    let ticks: Vec<(f64, String)> = depths(facts)
        .into_iter()
        .map(|(depth, first)| (across.at(f64::from(first) - 0.5), format!("depth {depth}")))
        .collect();
    chart("Score against the root, by eval", &points, &place, &ticks)
}

/// Scores by depth.
#[must_use]
pub fn by_depth(facts: &Facts) -> Markup {
    let points = points(facts);
    let depths = depths(facts);
    let across = Scale::new((0.0, float(depths.len().max(1))), (FIELD.0, FIELD.1));
    let ends: Vec<u32> = depths.iter().skip(1).map(|(_, first)| *first).chain([u32::MAX]).collect();
    let place = |eval: &Eval| {
        let number = eval.id.number();
        let at = ends.partition_point(|end| *end <= number);
        let (first, end) = (depths.get(at).map_or(1, |depth| depth.1), ends.get(at).copied());
        let last = float(facts.evals.len()) + 1.0;
        let width = end.map_or(last, f64::from).min(last) - f64::from(first);
        let part = (f64::from(number - first) + 0.5) / width.max(1.0);
        across.at(float(at) + 0.5 + (part - 0.5) * SPREAD)
    };
    let ticks: Vec<(f64, String)> = depths
        .iter()
        .enumerate()
        .map(|(at, (depth, _))| (across.at(float(at)), format!("depth {depth}")))
        .collect();
    chart("Score against the root, by depth", &points, &place, &ticks)
}

/// Each depth that has evals, and the number of its first.
fn depths(facts: &Facts) -> Vec<(u32, u32)> {
    let mut depths: Vec<(u32, u32)> = Vec::new();
    for eval in facts.evals.iter() {
        if depths.last().is_none_or(|(depth, _)| *depth != eval.depth.0) {
            depths.push((eval.depth.0, eval.id.number()));
        }
    }
    depths
}

fn chart(
    name: &str,
    points: &[Point<'_>],
    place: &dyn Fn(&Eval) -> f64,
    ticks: &[(f64, String)],
) -> Markup {
    let scale = scale(points);
    let size = if points.len() > FEW { 2.2 } else { 3.5 };
    let below = points.iter().filter(|point| scale.is_below(point.score)).count();
    html! {
        figure {
            figcaption { (name) }
            div.scroll tabindex="0" role="group" aria-label=(name) {
                svg.chart viewBox={ "0 0 " (px(SIZE.0)) " " (px(SIZE.1)) } role="img" aria-label=(said(name, points)) {
                    (grid(&scale, FIELD.0, FIELD.1))
                    (bands(ticks))
                    path.running d=(running(points, place, &scale)) {}
                    @for point in points { (dot(point, size, place, &scale)) }
                }
            }
            @if below > 0 {
                p.note { (count(below, "score")) " far below the others: drawn at the lower edge." }
            }
        }
    }
}

fn said(name: &str, points: &[Point<'_>]) -> String {
    let best = points.iter().filter(|point| is_kept(point)).map(|point| point.score);
    let best = Finite::new(best.fold(0.0, f64::max));
    format!(
        "{name}: {}, the best that was promoted has {}",
        count(points.len(), "score"),
        change(best)
    )
}

fn bands(ticks: &[(f64, String)]) -> Markup {
    html! {
        g.grid {
            @for (x, _) in ticks {
                line.faint x1=(px(*x)) x2=(px(*x)) y1=(px(FIELD.2)) y2=(px(FIELD.3)) {}
            }
            @for (x, name) in apart(ticks) { text x=(px(x + 4.0)) y=(px(FIELD.3 + 20.0)) { (name) } }
        }
    }
}

/// Those whose names do not run into each other.
fn apart(ticks: &[(f64, String)]) -> Vec<&(f64, String)> {
    let mut named: Vec<&(f64, String)> = Vec::new();
    for tick in ticks {
        if named.last().is_none_or(|last| tick.0 - last.0 >= NAME) && tick.0 <= FIELD.1 - NAME {
            named.push(tick);
        }
    }
    named
}

fn dot(point: &Point<'_>, size: f64, place: &dyn Fn(&Eval) -> f64, scale: &Scale) -> Markup {
    let outcome = Outcome::of(&point.eval);
    let to = format!("translate({} {})", px(place(&point.eval)), px(scale.at(point.score)));
    let score = change(Finite::new(point.score));
    html! {
        g class={ "mark " (mark::class(outcome)) } transform=(to) {
            title { (read::eval_name(&point.eval)) " " (outcome) " " (score) }
            (mark::shape(outcome, size))
        }
    }
}

fn is_kept(point: &Point<'_>) -> bool {
    read::promoted_to(&point.eval).is_some()
}

/// The best that was promoted so far, as steps; the root counts as 0.
fn running(points: &[Point<'_>], place: &dyn Fn(&Eval) -> f64, scale: &Scale) -> String {
    let mut best = 0.0;
    let mut path = format!("M{} {}", px(FIELD.0), px(scale.at(best)));
    for point in points.iter().filter(|point| is_kept(point)) {
        if point.score > best {
            best = point.score;
            path.push_str(&format!("H{}V{}", px(place(&point.eval)), px(scale.at(best))));
        }
    }
    format!("{path}H{}", px(FIELD.1))
}
