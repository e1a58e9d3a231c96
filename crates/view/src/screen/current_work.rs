//! Describes the current activities of a watched run, and estimates the remaining time. An estimate
//! is based on the pace of recent evals; it promises nothing.

use super::WatchScene;
use super::line::{ScreenLine, ScreenTone};
use crate::busy_places::{BusyPlace, busy_places, current_activity};
use crate::lookup;
use crate::safe_text::one_line;
use crate::words::{self, format_age};
use jiff::Timestamp;
use std::borrow::Cow;
use std::time::Duration;
use treebeam_core::event::SweepSubject;
use treebeam_core::facts::{Eval, Facts, RunPhase, Stage};
use treebeam_core::id::CodePlace;

/// Minimum number of ended evals for an estimate.
const MIN_PACE_ENDS: usize = 3;

/// Returns a line for each current activity.
pub(super) fn activity_lines(scene: &WatchScene<'_>) -> Vec<ScreenLine> {
    let title =
        |busy: &BusyPlace<'_>| busy.idea.map_or_else(String::new, |idea| one_line(&idea.title));
    let what = |busy: &BusyPlace<'_>| {
        format!("{}{}", busy.what, submission_suffix(scene.facts, busy.place))
    };
    let busy = busy_places(scene.facts);
    busy.iter().map(|busy| activity_line(scene, busy.place, &what(busy), &title(busy))).collect()
}

/// Returns a note on the number of the submission of a running sweep, if it is not the first.
fn submission_suffix(facts: &Facts, place: CodePlace) -> String {
    let is_swept = |eval: Cow<'_, Eval>| matches!(eval.stage, Stage::Sweeping(_));
    let number = match place {
        CodePlace::Node(_) if matches!(facts.phase, RunPhase::Measuring) => {
            facts.submission_count(SweepSubject::Root)
        }
        CodePlace::Candidate(id) if facts.eval(id).is_some_and(is_swept) => {
            facts.submission_count(SweepSubject::Eval(id))
        }
        CodePlace::Node(_) | CodePlace::Candidate(_) => 0,
    };
    if number > 1 { format!(", again ({number})") } else { String::new() }
}

fn activity_line(scene: &WatchScene<'_>, place: CodePlace, what: &str, title: &str) -> ScreenLine {
    let since = scene.history.busy_since(place).filter(|_| scene.runner.is_some());
    let long =
        since.map_or_else(String::new, |since| format_age(elapsed_between(since, scene.now)));
    ScreenLine::new(ScreenTone::Strong, &format!("  {place:<6} "))
        .with_span(ScreenTone::Busy, &format!("{what:<22} "))
        .with_span(ScreenTone::Plain, &format!("{long:>8}  {title}"))
}

/// Formats what was spent, the limits, and the estimated time.
pub(super) fn format_budget(scene: &WatchScene<'_>) -> String {
    let facts = scene.facts;
    let spent = facts.total_spend();
    let spent = if spent.is_empty() {
        "nothing spent".to_owned()
    } else {
        let total = spent.total();
        let tokens = words::format_count(total.usage.total_tokens(), "token");
        format!("spent {}, {tokens}", words::format_cents(&total))
    };
    let until = facts.deadline().map(|end| {
        let left = format_age(elapsed_between(scene.now, end));
        format!("until {end:.0}, {left} from now")
    });
    let parts = [
        Some(spent),
        words::describe_spending_limits(&facts.limits),
        until,
        format_estimate(scene),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// Estimates the time for the open depth and for the whole run, if a process runs it and enough
/// evals have ended recently.
fn format_estimate(scene: &WatchScene<'_>) -> Option<String> {
    let facts = scene.facts;
    let paused = facts.history.paused_since.is_some();
    if scene.runner.is_none() || paused || facts.stop_reason().is_some() {
        return None;
    }
    let pace = eval_pace(scene)?;
    let (depth, run) = evals_to_end(facts);
    let long = |evals: u32| format_age(pace.saturating_mul(evals));
    if run > depth {
        return Some(format!("≈ {} for this depth, ≤ {} for all", long(depth), long(run)));
    }
    Some(format!("≈ {} left", long(depth)))
}

/// Returns the mean time between two ends of evals, however many run at once.
fn eval_pace(scene: &WatchScene<'_>) -> Option<Duration> {
    let mut ends = scene.history.eval_ends();
    let count = u32::try_from(ends.len()).ok().filter(|_| ends.len() >= MIN_PACE_ENDS)?;
    let (first, last) = (ends.next()?, ends.last()?);
    Some(elapsed_between(first, last) / (count - 1))
}

/// Returns how many evals are still to end: at the open depth, and at most in the whole run.
fn evals_to_end(facts: &Facts) -> (u32, u32) {
    let waits =
        |eval: &&Eval| matches!(eval.stage, Stage::Queued) || current_activity(eval).is_some();
    let open = facts.open_evals().iter().filter(waits).count();
    let open = u32::try_from(open).unwrap_or(u32::MAX);
    let wanted = facts.nodes_awaiting_ideas().filter_map(|id| facts.node(id));
    let wanted = wanted.map(|node| facts.wanted_idea_count(node)).fold(0, u32::saturating_add);
    let depth = open.saturating_add(wanted.min(facts.remaining_evals()));
    let closed = u32::try_from(facts.closed.len()).unwrap_or(u32::MAX);
    let beam = u32::try_from(facts.max_promoted()).unwrap_or(u32::MAX);
    let each = beam.saturating_mul(facts.settings.ideas_per_node.get());
    let later = facts.depth_limit().saturating_sub(closed.saturating_add(1)).saturating_mul(each);
    let room = facts.remaining_evals().saturating_sub(depth - open);
    (depth, depth.saturating_add(later.min(room)))
}

/// Returns the time between two moments; zero if a clock was set back.
fn elapsed_between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

/// Returns the ideas that led to the best node, each with its eval.
pub(super) fn best_path_ideas(facts: &Facts) -> Vec<String> {
    let named = |eval: &Cow<'_, Eval>| {
        format!("{} {}", lookup::eval_name(eval), one_line(&eval.idea.title))
    };
    facts.idea_chain(facts.best_node()).iter().map(named).collect()
}
