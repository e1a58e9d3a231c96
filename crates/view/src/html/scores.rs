//! Plots every score against the root, by eval and by depth, with the best so far. Scores far below
//! the others are drawn at the edge, and counted, so that one broken candidate does not squash the
//! rest.

use super::plot::{PlotScale, format_px, render_grid, to_float};
use super::status_mark;
use crate::figure::format_change;
use crate::lookup;
use crate::outcome::EvalStatus;
use crate::words::format_count;
use maud::{Markup, html};
use std::borrow::Cow;
use treebeam_core::facts::{Eval, Facts};
use treebeam_core::num::Finite;

/// Width and height of the drawing.
const PLOT_SIZE: (f64, f64) = (860.0, 260.0);
/// Plot area: left, right, top, bottom.
const PLOT_AREA: (f64, f64, f64, f64) = (64.0, 846.0, 14.0, 222.0);
/// Width of a depth's label.
const DEPTH_LABEL_WIDTH: f64 = 56.0;
/// Number of points above which they are drawn small.
const MAX_LARGE_POINTS: usize = 300;
/// Width over which the points of a depth are spread, as a part of the depth's width.
const DEPTH_SPREAD: f64 = 0.7;

/// An eval with its recorded score.
struct ScorePoint<'a> {
    eval: Cow<'a, Eval>,
    score: f64,
}

fn score_points(facts: &Facts) -> Vec<ScorePoint<'_>> {
    let scored = facts.evals.iter().filter_map(|eval| Some((lookup::rank_score(&eval)?, eval)));
    scored.map(|(score, eval)| ScorePoint { eval, score: score.get() }).collect()
}

/// Returns a scale from the lowest to the highest score, including 0, but without a few scores that
/// are far below.
fn score_scale(points: &[ScorePoint<'_>]) -> PlotScale {
    let mut scores: Vec<f64> = points.iter().map(|point| point.score).collect();
    scores.sort_by(f64::total_cmp);
    let at = |part: usize| scores.get(scores.len() * part / 100).copied().unwrap_or_default();
    let high = scores.last().copied().unwrap_or_default().max(0.0);
    let (least, usual) = (at(0).min(0.0), at(10).min(0.0));
    let low =
        if high - least > 3.0 * (high - usual) { usual - (high - usual) * 0.2 } else { least };
    let room = (high - low) * 0.06;
    PlotScale::new((low - room, high + room), (PLOT_AREA.3, PLOT_AREA.2))
}

/// Plots the scores in the order of the evals.
#[must_use]
pub fn render_scores_by_eval(facts: &Facts) -> Markup {
    let points = score_points(facts);
    let last = facts.evals.len().max(1);
    let across = PlotScale::new((0.5, to_float(last) + 0.5), (PLOT_AREA.0, PLOT_AREA.1));
    let place = |eval: &Eval| across.position_of(f64::from(eval.id.number()));
    let ticks: Vec<(f64, String)> = first_evals_by_depth(facts)
        .into_iter()
        .map(|(depth, first)| {
            (across.position_of(f64::from(first) - 0.5), format!("depth {depth}"))
        })
        .collect();
    render_chart("Score against the root, by eval", &points, &place, &ticks)
}

/// Plots the scores by depth.
#[must_use]
pub fn render_scores_by_depth(facts: &Facts) -> Markup {
    let points = score_points(facts);
    let depths = first_evals_by_depth(facts);
    let across = PlotScale::new((0.0, to_float(depths.len().max(1))), (PLOT_AREA.0, PLOT_AREA.1));
    let ends: Vec<u32> = depths.iter().skip(1).map(|(_, first)| *first).chain([u32::MAX]).collect();
    let place = |eval: &Eval| {
        let number = eval.id.number();
        let at = ends.partition_point(|end| *end <= number);
        let (first, end) = (depths.get(at).map_or(1, |depth| depth.1), ends.get(at).copied());
        let last = to_float(facts.evals.len()) + 1.0;
        let width = end.map_or(last, f64::from).min(last) - f64::from(first);
        let part = (f64::from(number - first) + 0.5) / width.max(1.0);
        across.position_of(to_float(at) + 0.5 + (part - 0.5) * DEPTH_SPREAD)
    };
    let ticks: Vec<(f64, String)> = depths
        .iter()
        .enumerate()
        .map(|(at, (depth, _))| (across.position_of(to_float(at)), format!("depth {depth}")))
        .collect();
    render_chart("Score against the root, by depth", &points, &place, &ticks)
}

/// Returns each depth that has evals, and the number of its first.
fn first_evals_by_depth(facts: &Facts) -> Vec<(u32, u32)> {
    let mut depths: Vec<(u32, u32)> = Vec::new();
    for eval in facts.evals.iter() {
        if depths.last().is_none_or(|(depth, _)| *depth != eval.depth.0) {
            depths.push((eval.depth.0, eval.id.number()));
        }
    }
    depths
}

fn render_chart(
    name: &str,
    points: &[ScorePoint<'_>],
    place: &dyn Fn(&Eval) -> f64,
    ticks: &[(f64, String)],
) -> Markup {
    let scale = score_scale(points);
    let size = if points.len() > MAX_LARGE_POINTS { 2.2 } else { 3.5 };
    let below = points.iter().filter(|point| scale.is_below(point.score)).count();
    html! {
        figure {
            figcaption { (name) }
            div.scroll tabindex="0" role="group" aria-label=(name) {
                svg.chart viewBox={ "0 0 " (format_px(PLOT_SIZE.0)) " " (format_px(PLOT_SIZE.1)) } role="img" aria-label=(chart_label(name, points)) {
                    (render_grid(&scale, PLOT_AREA.0, PLOT_AREA.1))
                    (render_bands(ticks))
                    path.running d=(best_so_far_path(points, place, &scale)) {}
                    @for point in points { (render_dot(point, size, place, &scale)) }
                }
            }
            @if below > 0 {
                p.note { (format_count(below, "score")) " far below the others: drawn at the lower edge." }
            }
        }
    }
}

fn chart_label(name: &str, points: &[ScorePoint<'_>]) -> String {
    let best = points.iter().filter(|point| is_promoted(point)).map(|point| point.score);
    let best = Finite::new(best.fold(0.0, f64::max));
    format!(
        "{name}: {}, the best that was promoted has {}",
        format_count(points.len(), "score"),
        format_change(best)
    )
}

fn render_bands(ticks: &[(f64, String)]) -> Markup {
    html! {
        g.grid {
            @for (x, _) in ticks {
                line.faint x1=(format_px(*x)) x2=(format_px(*x)) y1=(format_px(PLOT_AREA.2)) y2=(format_px(PLOT_AREA.3)) {}
            }
            @for (x, name) in spaced_ticks(ticks) { text x=(format_px(x + 4.0)) y=(format_px(PLOT_AREA.3 + 20.0)) { (name) } }
        }
    }
}

/// Returns the ticks whose labels do not overlap.
fn spaced_ticks(ticks: &[(f64, String)]) -> Vec<&(f64, String)> {
    let mut named: Vec<&(f64, String)> = Vec::new();
    for tick in ticks {
        if named.last().is_none_or(|last| tick.0 - last.0 >= DEPTH_LABEL_WIDTH)
            && tick.0 <= PLOT_AREA.1 - DEPTH_LABEL_WIDTH
        {
            named.push(tick);
        }
    }
    named
}

fn render_dot(
    point: &ScorePoint<'_>,
    size: f64,
    place: &dyn Fn(&Eval) -> f64,
    scale: &PlotScale,
) -> Markup {
    let outcome = EvalStatus::from_eval(&point.eval);
    let to = format!(
        "translate({} {})",
        format_px(place(&point.eval)),
        format_px(scale.position_of(point.score))
    );
    let score = format_change(Finite::new(point.score));
    html! {
        g class={ "mark " (status_mark::status_class(outcome)) } transform=(to) {
            title { (lookup::eval_name(&point.eval)) " " (outcome) " " (score) }
            (status_mark::status_shape(outcome, size))
        }
    }
}

fn is_promoted(point: &ScorePoint<'_>) -> bool {
    lookup::promoted_to(&point.eval).is_some()
}

/// Returns the best promoted score so far as a step line; the root counts as 0.
fn best_so_far_path(
    points: &[ScorePoint<'_>],
    place: &dyn Fn(&Eval) -> f64,
    scale: &PlotScale,
) -> String {
    let mut best = 0.0;
    let mut path = format!("M{} {}", format_px(PLOT_AREA.0), format_px(scale.position_of(best)));
    for point in points.iter().filter(|point| is_promoted(point)) {
        if point.score > best {
            best = point.score;
            path.push_str(&format!(
                "H{}V{}",
                format_px(place(&point.eval)),
                format_px(scale.position_of(best))
            ));
        }
    }
    format!("{path}H{}", format_px(PLOT_AREA.1))
}
