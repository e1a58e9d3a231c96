//! One screen for `treebeam status`: where a run is, what it has found and how to go on. Plain text, no colours. Whether a
//! process is at it right now is not on record: the caller says so.

use crate::figure::change;
use crate::line::{field, first_few, list, one_line, shorten};
use crate::outcome::Counts;
use crate::read;
use crate::words::{self, count};
use treebeam_core::event::Leftover;
use treebeam_core::facts::{Eval, Facts, Removal};
use treebeam_core::id::NodeId;

/// How many things of a kind fit on the screen.
const MOST: usize = 8;
/// The longest title or reason on a line.
const LINE_CHARS: usize = 80;

/// The run on one screen, and who runs it, if somebody does.
#[must_use]
pub fn status(facts: &Facts, runner: Option<&str>) -> String {
    let mut lines = vec![
        field("run", facts.run.as_str()),
        field("world", &words::world(facts.world)),
        field("phase", &words::phase(facts)),
        field("depth", &depth(facts)),
        field("frontier", &frontier(facts)),
        field("evals", &evals(facts)),
    ];
    let open = Counts::open_depth(facts);
    if open.total() > 0 && !facts.closed.is_empty() {
        lines.push(field("this depth", &format!("{}: {open}", count(open.total(), "eval"))));
    }
    lines.extend(list("answers", answers(facts)));
    if !facts.agents.0.is_empty() {
        lines.push(field("agents", &one_line(&facts.agents.to_string())));
    }
    lines.push(field("best", &best(facts)));
    lines.extend(chain(facts));
    lines.extend(cleanup(facts));
    if let Some(runner) = runner {
        lines.push(field("running", &one_line(runner)));
        lines.extend(paused(facts));
    } else if facts.stop_reason().is_none() {
        lines.push(field("running", "nobody: it was interrupted"));
        lines.push(field("go on", &format!("treebeam resume {}", facts.run)));
    }
    lines.join("\n") + "\n"
}

/// What answers took, and the most that they may take.
fn answers(facts: &Facts) -> impl Iterator<Item = String> {
    let spent = facts.spent();
    let total = (!spent.is_empty()).then(|| words::bill(&spent.total()));
    total.into_iter().chain(words::spending(&facts.reach))
}

fn paused(facts: &Facts) -> Vec<String> {
    let Some(since) = facts.history.paused_since else { return Vec::new() };
    vec![
        field("paused", &format!("since {since:.0}")),
        field("go on", &format!("treebeam unpause {}", facts.run)),
    ]
}

fn depth(facts: &Facts) -> String {
    let (closed, most) = (facts.closed.len(), facts.depths());
    let done = done(closed, most);
    if facts.stop_reason().is_some() {
        return done;
    }
    format!("{} ({done})", facts.depth)
}

/// A reach that was made shorter on the way does not undo what is done.
fn done(closed: usize, most: u32) -> String {
    if u32::try_from(closed).is_ok_and(|closed| closed <= most) {
        return format!("{closed} of {most} done");
    }
    format!("{closed} done, more than the {most} that are wanted now")
}

fn frontier(facts: &Facts) -> String {
    if facts.frontier.is_empty() {
        return "empty".to_owned();
    }
    first_few(facts.frontier.iter().copied().map(read::node_name), MOST)
}

fn evals(facts: &Facts) -> String {
    let counts = Counts::overall(facts);
    let most = facts.reach.max_total_idea_evals;
    let budget = most.map_or_else(String::new, |most| format!(" of at most {most}"));
    match counts.total() {
        0 => format!("0{budget}"),
        total => format!("{total}{budget}: {counts}"),
    }
}

fn best(facts: &Facts) -> String {
    let best = facts.best();
    let score = facts.node(best).and_then(|node| read::node_rank_score(facts, node));
    match best {
        NodeId::ROOT => format!("{}, the root: no node ranks above it", read::node_name(best)),
        _ => format!("{}, rank score {}", read::node_name(best), change(score)),
    }
}

/// The ideas that led to the best node, the last ones where there are many.
fn chain(facts: &Facts) -> Vec<String> {
    let chain = facts.idea_chain(facts.best());
    let earlier = chain.len().saturating_sub(MOST);
    let mut lines = Vec::new();
    if earlier > 0 {
        lines.push(field("", &format!("after {}:", count(earlier, "earlier idea"))));
    }
    lines.extend(chain.into_iter().skip(earlier).map(|eval| field("", &idea(eval))));
    lines
}

fn idea(eval: &Eval) -> String {
    let gain = read::scored(eval).and_then(|scored| scored.vs_parent.primary_delta);
    let title = shorten(&one_line(&eval.idea.title), LINE_CHARS);
    format!("{} {title} (primary {} vs parent)", read::eval_name(eval), change(gain))
}

/// What could not be removed; what is merely due goes without saying.
fn cleanup(facts: &Facts) -> Vec<String> {
    let deferred: Vec<_> = facts.leftovers.iter().filter_map(deferred).collect();
    let mut lines = Vec::new();
    if deferred.is_empty() {
        return lines;
    }
    let more = deferred.len().saturating_sub(MOST);
    let advice = format!("tried again by `treebeam clean {}`", facts.run);
    lines.push(field("cleanup", &format!("{} deferred; {advice}", deferred.len())));
    lines.extend(deferred.into_iter().take(MOST).map(|line| field("", &line)));
    if more > 0 {
        lines.push(field("", &format!("{more} more")));
    }
    lines
}

fn deferred((leftover, removal): (&Leftover, &Removal)) -> Option<String> {
    match removal {
        Removal::Kept | Removal::Due => None,
        Removal::Deferred { attempts, why, .. } => {
            let why = shorten(&one_line(why), LINE_CHARS);
            Some(format!("{leftover}: {why} (tried {})", count(*attempts, "time")))
        }
    }
}
