//! What goes on at this moment: each place that is busy, with what and for how long, and how long it may still take. An
//! estimate goes by how fast evals ended of late; it promises nothing.

use super::Scene;
use super::line::{Line, Tone};
use crate::busy::{Busy, busy, doing};
use crate::line::one_line;
use crate::read;
use crate::words::{self, age};
use jiff::Timestamp;
use std::borrow::Cow;
use std::time::Duration;
use treebeam_core::event::Subject;
use treebeam_core::facts::{Eval, Facts, Phase, Stage};
use treebeam_core::id::Place;

/// How many ends of evals make a pace.
const ENOUGH: usize = 3;

/// What is being done.
pub(super) fn lines(scene: &Scene<'_>) -> Vec<Line> {
    let title = |busy: &Busy<'_>| busy.idea.map_or_else(String::new, |idea| one_line(&idea.title));
    let what = |busy: &Busy<'_>| format!("{}{}", busy.what, again(scene.facts, busy.place));
    let busy = busy(scene.facts);
    busy.iter().map(|busy| line(scene, busy.place, &what(busy), &title(busy))).collect()
}

/// How often something was handed over to be swept that is being swept now, if more than once.
fn again(facts: &Facts, place: Place) -> String {
    let is_swept = |eval: Cow<'_, Eval>| matches!(eval.stage, Stage::Sweeping(_));
    let number = match place {
        Place::Node(_) if matches!(facts.phase, Phase::Measuring) => {
            facts.submissions(Subject::Root)
        }
        Place::Candidate(id) if facts.eval(id).is_some_and(is_swept) => {
            facts.submissions(Subject::Eval(id))
        }
        Place::Node(_) | Place::Candidate(_) => 0,
    };
    if number > 1 { format!(", again ({number})") } else { String::new() }
}

fn line(scene: &Scene<'_>, place: Place, what: &str, title: &str) -> Line {
    let since = scene.diary.since(place).filter(|_| scene.runner.is_some());
    let long = since.map_or_else(String::new, |since| age(between(since, scene.now)));
    Line::of(Tone::Strong, &format!("  {place:<6} "))
        .add(Tone::Busy, &format!("{what:<22} "))
        .add(Tone::Plain, &format!("{long:>8}  {title}"))
}

/// What was spent, what may be, and how long it may take.
pub(super) fn budget(scene: &Scene<'_>) -> String {
    let facts = scene.facts;
    let spent = facts.spent();
    let spent = if spent.is_empty() {
        "nothing spent".to_owned()
    } else {
        let total = spent.total();
        let tokens = words::count(total.usage.total(), "token");
        format!("spent {}, {tokens}", words::cents(&total))
    };
    let until = facts.deadline().map(|end| {
        let left = age(between(scene.now, end));
        format!("until {end:.0}, {left} from now")
    });
    let parts = [Some(spent), words::spending(&facts.reach), until, estimate(scene)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// How long the open depth and the whole run may take, where evals have ended of late and somebody runs it.
fn estimate(scene: &Scene<'_>) -> Option<String> {
    let facts = scene.facts;
    let paused = facts.history.paused_since.is_some();
    if scene.runner.is_none() || paused || facts.stop_reason().is_some() {
        return None;
    }
    let pace = pace(scene)?;
    let (depth, run) = left(facts);
    let long = |evals: u32| age(pace.saturating_mul(evals));
    if run > depth {
        return Some(format!("≈ {} for this depth, ≤ {} for all", long(depth), long(run)));
    }
    Some(format!("≈ {} left", long(depth)))
}

/// How long it takes until the next eval ends, however many are under way.
fn pace(scene: &Scene<'_>) -> Option<Duration> {
    let mut ends = scene.diary.ends();
    let count = u32::try_from(ends.len()).ok().filter(|_| ends.len() >= ENOUGH)?;
    let (first, last) = (ends.next()?, ends.last()?);
    Some(between(first, last) / (count - 1))
}

/// How many evals are still to end: at the open depth, and at most in the whole run.
fn left(facts: &Facts) -> (u32, u32) {
    let waits = |eval: &&Eval| matches!(eval.stage, Stage::Queued) || doing(eval).is_some();
    let open = facts.open_evals().iter().filter(waits).count();
    let open = u32::try_from(open).unwrap_or(u32::MAX);
    let wanted = facts.waiting_for_ideas().filter_map(|id| facts.node(id));
    let wanted = wanted.map(|node| facts.ideas_wanted(node)).fold(0, u32::saturating_add);
    let depth = open.saturating_add(wanted.min(facts.room()));
    let closed = u32::try_from(facts.closed.len()).unwrap_or(u32::MAX);
    let beam = u32::try_from(facts.promoted_at_most()).unwrap_or(u32::MAX);
    let each = beam.saturating_mul(facts.meaning.ideas_per_node.get());
    let later = facts.depths().saturating_sub(closed.saturating_add(1)).saturating_mul(each);
    let room = facts.room().saturating_sub(depth - open);
    (depth, depth.saturating_add(later.min(room)))
}

/// From one moment to the next; nothing where a clock was set back.
fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

/// The ideas that led to the best node, each with its eval.
pub(super) fn path(facts: &Facts) -> Vec<String> {
    let named =
        |eval: &Cow<'_, Eval>| format!("{} {}", read::eval_name(eval), one_line(&eval.idea.title));
    facts.idea_chain(facts.best()).iter().map(named).collect()
}
