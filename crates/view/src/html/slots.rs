//! What ran when: the root's sweep, questions for ideas and evals as bars, in as few rows as nothing overlaps in, and what is
//! under way in words. From recorded times alone: what an eval waited before it was begun is a line, its bar is pale until its
//! commit, and what is under way is drawn up to the latest time on record. When its sweep got its slot is not on record.

use super::mark;
use super::plot::{Scale, float, px};
use super::text::title;
use crate::busy::{busy, is_asked};
use crate::outcome::Outcome;
use crate::read;
use crate::show::{ended_at, started_at};
use crate::words::{age, count};
use jiff::Timestamp;
use maud::{Markup, html};
use std::time::Duration;
use treebeam_core::facts::{Baseline, Eval, Expansion, Facts};
use treebeam_core::group::IdeaSource;

/// The width of the drawing, where bars begin and end, and the height of a row.
const WIDTH: f64 = 860.0;
const FIELD: (f64, f64) = (12.0, 848.0);
const ROW: f64 = 16.0;
/// No bar is narrower.
const LEAST: f64 = 1.5;
/// Units of time for the ticks, in seconds.
const UNITS: [f64; 14] = [
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
/// At most so many ticks.
const MOST_TICKS: f64 = 8.0;

/// Something that took its time.
struct Bar {
    /// Since when it waited, if it did.
    waits: f64,
    from: f64,
    /// Until when it was implemented, if it was.
    made: f64,
    to: f64,
    class: &'static str,
    target: String,
    words: String,
}

/// The time line.
#[must_use]
pub fn slots(facts: &Facts) -> Markup {
    let mut bars = bars(facts);
    bars.sort_by(|one, other| {
        one.from.total_cmp(&other.from).then_with(|| one.target.cmp(&other.target))
    });
    let end = bars.iter().map(|bar| bar.to).fold(0.0, f64::max);
    if bars.is_empty() || end <= 0.0 {
        return html! { p.note { "Nothing has run yet." } (under_way(facts)) };
    }
    let (places, most) = places(&bars);
    let scale = Scale::new((0.0, end), FIELD);
    let height = float(most).mul_add(ROW, 30.0);
    let said = format!("What ran when: {} in {}", count(bars.len(), "bar"), count(most, "row"));
    html! {
        div.scroll tabindex="0" role="group" aria-label="Time line" {
            svg.slots viewBox={ "0 0 " (px(WIDTH)) " " (px(height)) } role="group" aria-label=(said) {
                (ticks(&scale, end, height))
                @for (bar, place) in bars.iter().zip(places) { (drawn(bar, place, &scale)) }
            }
        }
        p.note {
            (span(end)) " from the first step to the last. Colours as in the tree; pale: being implemented; full: tests, sweep and score, "
            "with the wait for a slot between them; a dotted line before: it waited for its turn. Blue outlines are questions for ideas and what is under way, the grey one is the root's own sweep, or the taking in of its results."
        }
        (under_way(facts))
    }
}

/// What is being done now, or was when the run was left.
fn under_way(facts: &Facts) -> Markup {
    let busy = busy(facts);
    html! {
        @if !busy.is_empty() {
            h3 { "Under way" }
            ul {
                @for busy in busy {
                    li {
                        a href={ "#" (busy.place) } { (busy.place) } " " (busy.what)
                        @if let Some(since) = busy.since { ", since " time datetime={ (since) } { (format!("{since:.0}")) } }
                        @if let Some(idea) = busy.idea { ": " (title(&idea.title)) }
                    }
                }
            }
        }
    }
}

fn bars(facts: &Facts) -> Vec<Bar> {
    let since = |at: Timestamp| at.duration_since(facts.created_at).as_secs_f64();
    let latest = since(latest(facts));
    let root = if let Baseline::Measured { at, .. } = facts.baseline { Some(at) } else { None };
    let words = read::given_baseline(facts).map_or("the root's sweep", |_| "the root, not swept");
    let root = root.map(|at| Bar {
        waits: 0.0,
        from: 0.0,
        made: 0.0,
        to: since(at),
        class: "root",
        target: "n0000".to_owned(),
        words: words.to_owned(),
    });
    let asked = facts.all_expansions();
    let asked = asked.filter_map(|(source, x)| of_ideas(facts, source, x, (&since, latest)));
    let evals = facts.evals.iter().filter_map(|eval| of_eval(&eval, (&since, latest)));
    root.into_iter().chain(asked).chain(evals).filter(|bar| bar.from >= 0.0).collect()
}

/// The latest time on record that an eval or a question has.
fn latest(facts: &Facts) -> Timestamp {
    let of_eval = |eval: &Eval| {
        let made = eval.work().and_then(|work| work.implemented_at);
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

/// How times are counted, and the latest that there is.
type Times<'a> = (&'a dyn Fn(Timestamp) -> f64, f64);

/// From the question to the first eval that came of it.
fn of_ideas(
    facts: &Facts,
    source: IdeaSource,
    expansion: &Expansion,
    (since, latest): Times<'_>,
) -> Option<Bar> {
    let to = match expansion.evals().next() {
        Some(first) => since(facts.eval(*first)?.queued_at),
        None if is_asked(facts, expansion) => latest,
        None => return None,
    };
    let target = read::node_name(source.node());
    let words = match source {
        IdeaSource::Node(_) => format!("ideas for {target}"),
        IdeaSource::Control => "ideas for the control group".to_owned(),
    };
    let from = since(expansion.started_at);
    Some(Bar { waits: from, from, made: from, to, class: "ideas", target, words })
}

fn of_eval(eval: &Eval, (since, latest): Times<'_>) -> Option<Bar> {
    let (name, outcome) = (read::eval_name(eval), Outcome::of(eval));
    let to = match ended_at(eval) {
        Some(end) => since(end),
        None if outcome == Outcome::Running => latest,
        None => return None,
    };
    let from = since(started_at(eval)?);
    // A failure without a commit is all implementing; where an older run does not say when, nothing is told apart.
    let made = match eval.work() {
        Some(work) => work.implemented_at.map_or(from, since),
        None => to,
    };
    let waits = since(eval.queued_at);
    let parts =
        [("waited", from - waits), ("implementing", made - from), ("sweep and score", to - made)];
    let parts = parts.into_iter().filter(|(_, took)| *took >= 1.0);
    let parts: Vec<String> = parts.map(|(what, took)| format!("; {what} {}", span(took))).collect();
    let words = format!("{name} {outcome}: {}{}", title(&eval.idea.title), parts.concat());
    Some(Bar { waits, from, made, to, class: mark::class(outcome), target: name, words })
}

/// For each bar the first row that is free when it begins and since when it is, and how many rows that makes.
fn places(bars: &[Bar]) -> (Vec<(usize, f64)>, usize) {
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

fn drawn(bar: &Bar, (row, free): (usize, f64), scale: &Scale) -> Markup {
    let (x, made, end) = (scale.at(bar.from), scale.at(bar.made), scale.at(bar.to));
    let waits = scale.at(bar.waits.max(free));
    let top = float(row).mul_add(ROW, 2.0);
    let middle = px(top + (ROW - 4.0) / 2.0);
    html! {
        a href={ "#" (bar.target) } tabindex="-1" {
            title { (bar.words) " (" (span(bar.to - bar.from)) ")" }
            @if x - waits >= LEAST { line.waits x1=(px(waits)) x2=(px(x)) y1=(middle) y2=(middle) {} }
            @if made - x >= LEAST { (rect(bar.class, "bar pale ", (x, made), top)) }
            @if end - made >= LEAST || made - x < LEAST { (rect(bar.class, "bar ", (made, end), top)) }
        }
    }
}

fn rect(class: &str, kind: &str, (from, to): (f64, f64), top: f64) -> Markup {
    let width = px((to - from - 0.5).max(LEAST));
    html! { rect class={ (kind) (class) } x=(px(from)) y=(px(top)) width=(width) height=(px(ROW - 4.0)) rx="2" {} }
}

fn ticks(scale: &Scale, end: f64, height: f64) -> Markup {
    let unit = UNITS.into_iter().find(|unit| end / unit <= MOST_TICKS).unwrap_or(end / MOST_TICKS);
    let mut at = Vec::new();
    let mut tick = 0.0;
    while tick <= end {
        at.push(tick);
        tick += unit;
    }
    html! {
        g.grid {
            @for tick in at {
                @let x = px(scale.at(tick));
                line.faint x1=(x) x2=(x) y1="0" y2=(px(height - 22.0)) {}
                text x=(x) y=(px(height - 8.0)) { (span(tick)) }
            }
        }
    }
}

fn span(seconds: f64) -> String {
    age(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}
