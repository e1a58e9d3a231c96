//! Draws a time line: the root's sweep, requests for ideas and evals as bars in few rows. Current
//! activities are also listed in words. It uses recorded times alone: the wait of an eval is a
//! line, its bar is pale until its commit, and what is in progress is drawn up to the latest
//! recorded time. When a sweep got its slot is not recorded.

use super::plot::{PlotScale, format_px, to_float};
use super::status_mark;
use super::visible_text::short_title;
use crate::busy_places::{busy_places, is_question_open};
use crate::lookup;
use crate::outcome::EvalStatus;
use crate::show::{ended_at, started_at};
use crate::words::{format_age, format_count};
use jiff::Timestamp;
use maud::{Markup, html};
use std::time::Duration;
use treebeam_core::facts::{Eval, Expansion, Facts, RootBaseline};
use treebeam_core::group::IdeaSource;

/// Width of the drawing, horizontal range of the bars, and height of a row.
const DRAWING_WIDTH: f64 = 860.0;
const PLOT_RANGE: (f64, f64) = (12.0, 848.0);
const ROW_HEIGHT: f64 = 16.0;
/// Minimum width of a bar.
const MIN_BAR_WIDTH: f64 = 1.5;
/// Units of time for the ticks, in seconds.
const TICK_UNITS_SECONDS: [f64; 14] = [
    1.0,
    5.0,
    15.0,
    60.0,
    300.0,
    900.0,
    3600.0,
    7200.0,
    14_400.0,
    28_800.0,
    86_400.0,
    172_800.0,
    604_800.0,
    2_592_000.0,
];
/// Maximum number of ticks.
const MAX_TICKS: f64 = 8.0;

/// A bar of the time line; times are in seconds since the start of the run.
struct TimelineBar {
    /// Start of the wait, or `from` without one.
    queued_at: f64,
    from: f64,
    /// End of the implementation, or `from` without one.
    implemented_at: f64,
    to: f64,
    class: &'static str,
    target: String,
    words: String,
}

/// Renders the time line.
#[must_use]
pub fn render_timeline(facts: &Facts) -> Markup {
    let mut bars = timeline_bars(facts);
    bars.sort_by(|one, other| {
        one.from.total_cmp(&other.from).then_with(|| one.target.cmp(&other.target))
    });
    let end = bars.iter().map(|bar| bar.to).fold(0.0, f64::max);
    if bars.is_empty() || end <= 0.0 {
        return html! { p.note { "Nothing has run yet." } (render_under_way(facts)) };
    }
    let (places, most) = assign_rows(&bars);
    let scale = PlotScale::new((0.0, end), PLOT_RANGE);
    let height = to_float(most).mul_add(ROW_HEIGHT, 30.0);
    let label = format!(
        "What ran when: {} in {}",
        format_count(bars.len(), "bar"),
        format_count(most, "row")
    );
    html! {
        div.scroll tabindex="0" role="group" aria-label="Time line" {
            svg.slots viewBox={ "0 0 " (format_px(DRAWING_WIDTH)) " " (format_px(height)) } role="group" aria-label=(label) {
                (render_ticks(&scale, end, height))
                @for (bar, place) in bars.iter().zip(places) { (render_bar(bar, place, &scale)) }
            }
        }
        p.note {
            (format_seconds(end)) " from the first step to the last. Colours as in the tree; pale: being implemented; full: tests, sweep and score, "
            "with the wait for a slot between them; a dotted line before: it waited for its turn. Blue outlines are questions for ideas and what is under way, the grey one is the root's own sweep, or the taking in of its results."
        }
        (render_under_way(facts))
    }
}

/// Lists current activities, or those at the time when the run was left.
fn render_under_way(facts: &Facts) -> Markup {
    let busy = busy_places(facts);
    html! {
        @if !busy.is_empty() {
            h3 { "Under way" }
            ul {
                @for busy in busy {
                    li {
                        a href={ "#" (busy.place) } { (busy.place) } " " (busy.what)
                        @if let Some(since) = busy.since { ", since " time datetime={ (since) } { (format!("{since:.0}")) } }
                        @if let Some(idea) = busy.idea { ": " (short_title(&idea.title)) }
                    }
                }
            }
        }
    }
}

fn timeline_bars(facts: &Facts) -> Vec<TimelineBar> {
    let since = |at: Timestamp| at.duration_since(facts.created_at).as_secs_f64();
    let latest = since(latest_time(facts));
    let root = if let RootBaseline::Measured { at, .. } = facts.baseline { Some(at) } else { None };
    let words = lookup::user_baseline(facts).map_or("the root's sweep", |_| "the root, not swept");
    let root = root.map(|at| TimelineBar {
        queued_at: 0.0,
        from: 0.0,
        implemented_at: 0.0,
        to: since(at),
        class: "root",
        target: "n0000".to_owned(),
        words: words.to_owned(),
    });
    let asked = facts.all_expansions();
    let asked = asked.filter_map(|(source, x)| ideas_bar(facts, source, x, (&since, latest)));
    let evals = facts.evals.iter().filter_map(|eval| eval_bar(&eval, (&since, latest)));
    root.into_iter().chain(asked).chain(evals).filter(|bar| bar.from >= 0.0).collect()
}

/// Returns the latest recorded time of an eval or a request for ideas.
fn latest_time(facts: &Facts) -> Timestamp {
    let of_eval = |eval: &Eval| {
        let made = eval.candidate().and_then(|work| work.implemented_at);
        [Some(eval.queued_at), started_at(eval), made, ended_at(eval)].into_iter().flatten().max()
    };
    let asked = facts.all_expansions().map(|(_, expansion)| expansion.started_at);
    facts
        .evals
        .iter()
        .filter_map(|eval| of_eval(&eval))
        .chain(asked)
        .max()
        .unwrap_or(facts.created_at)
}

/// Conversion of times to seconds since the start, and the latest time in seconds.
type TimeScale<'a> = (&'a dyn Fn(Timestamp) -> f64, f64);

/// Returns the bar of a request for ideas, which ends with the first eval that came of it.
fn ideas_bar(
    facts: &Facts,
    source: IdeaSource,
    expansion: &Expansion,
    (since, latest): TimeScale<'_>,
) -> Option<TimelineBar> {
    let to = match expansion.eval_ids().next() {
        Some(first) => since(facts.eval(*first)?.queued_at),
        None if is_question_open(facts, expansion) => latest,
        None => return None,
    };
    let target = lookup::node_name(source.node_id());
    let words = match source {
        IdeaSource::Node(_) => format!("ideas for {target}"),
        IdeaSource::Control => "ideas for the control group".to_owned(),
    };
    let from = since(expansion.started_at);
    Some(TimelineBar {
        queued_at: from,
        from,
        implemented_at: from,
        to,
        class: "ideas",
        target,
        words,
    })
}

fn eval_bar(eval: &Eval, (since, latest): TimeScale<'_>) -> Option<TimelineBar> {
    let (name, outcome) = (lookup::eval_name(eval), EvalStatus::from_eval(eval));
    let to = match ended_at(eval) {
        Some(end) => since(end),
        None if outcome == EvalStatus::Running => latest,
        None => return None,
    };
    let from = since(started_at(eval)?);
    // A failure without a commit counts as implementing; older runs do not record when a commit was
    // made, so their bars are not divided.
    let made = match eval.candidate() {
        Some(work) => work.implemented_at.map_or(from, since),
        None => to,
    };
    let waits = since(eval.queued_at);
    let parts =
        [("waited", from - waits), ("implementing", made - from), ("sweep and score", to - made)];
    let parts = parts.into_iter().filter(|(_, took)| *took >= 1.0);
    let parts: Vec<String> =
        parts.map(|(what, took)| format!("; {what} {}", format_seconds(took))).collect();
    let words = format!("{name} {outcome}: {}{}", short_title(&eval.idea.title), parts.concat());
    Some(TimelineBar {
        queued_at: waits,
        from,
        implemented_at: made,
        to,
        class: status_mark::status_class(outcome),
        target: name,
        words,
    })
}

/// Returns for each bar the first free row and since when that is free, and the number of rows.
fn assign_rows(bars: &[TimelineBar]) -> (Vec<(usize, f64)>, usize) {
    let mut ends: Vec<f64> = Vec::new();
    let mut places = Vec::with_capacity(bars.len());
    for bar in bars {
        let row = ends.iter().position(|end| *end <= bar.from).unwrap_or(ends.len());
        let free = ends.get_mut(row).map(|end| std::mem::replace(end, bar.to));
        if free.is_none() {
            ends.push(bar.to);
        }
        places.push((row, free.unwrap_or_default()));
    }
    (places, ends.len())
}

fn render_bar(bar: &TimelineBar, (row, free): (usize, f64), scale: &PlotScale) -> Markup {
    let (x, made, end) = (
        scale.position_of(bar.from),
        scale.position_of(bar.implemented_at),
        scale.position_of(bar.to),
    );
    let waits = scale.position_of(bar.queued_at.max(free));
    let top = to_float(row).mul_add(ROW_HEIGHT, 2.0);
    let middle = format_px(top + (ROW_HEIGHT - 4.0) / 2.0);
    html! {
        a href={ "#" (bar.target) } tabindex="-1" {
            title { (bar.words) " (" (format_seconds(bar.to - bar.from)) ")" }
            @if x - waits >= MIN_BAR_WIDTH { line.waits x1=(format_px(waits)) x2=(format_px(x)) y1=(middle) y2=(middle) {} }
            @if made - x >= MIN_BAR_WIDTH { (render_rect(bar.class, "bar pale ", (x, made), top)) }
            @if end - made >= MIN_BAR_WIDTH || made - x < MIN_BAR_WIDTH { (render_rect(bar.class, "bar ", (made, end), top)) }
        }
    }
}

fn render_rect(class: &str, kind: &str, (from, to): (f64, f64), top: f64) -> Markup {
    let width = format_px((to - from - 0.5).max(MIN_BAR_WIDTH));
    html! { rect class={ (kind) (class) } x=(format_px(from)) y=(format_px(top)) width=(width) height=(format_px(ROW_HEIGHT - 4.0)) rx="2" {} }
}

fn render_ticks(scale: &PlotScale, end: f64, height: f64) -> Markup {
    let unit = TICK_UNITS_SECONDS
        .into_iter()
        .find(|unit| end / unit <= MAX_TICKS)
        .unwrap_or(end / MAX_TICKS);
    let mut at = Vec::new();
    let mut tick = 0.0;
    while tick <= end {
        at.push(tick);
        tick += unit;
    }
    html! {
        g.grid {
            @for tick in at {
                @let x = format_px(scale.position_of(tick));
                line.faint x1=(x) x2=(x) y1="0" y2=(format_px(height - 22.0)) {}
                text x=(x) y=(format_px(height - 8.0)) { (format_seconds(tick)) }
            }
        }
    }
}

fn format_seconds(seconds: f64) -> String {
    format_age(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}
