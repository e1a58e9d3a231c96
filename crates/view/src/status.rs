//! One screen for `treebeam status`, of 80 columns and 24 lines: where a run is, what it has found and how to go on. What
//! does not fit is cut, and marked; `show`, `best` and the reports have all of it. Plain text, no colours. Whether a
//! process is at it right now is not on record: the caller says so.

use crate::figure::change;
use crate::line::{field, first_few, list, one_line};
use crate::outcome::Counts;
use crate::read;
use crate::width::{columns, fit, wrap};
use crate::words::{self, count};
use treebeam_core::bill::Cost;
use treebeam_core::event::Leftover;
use treebeam_core::facts::{Baseline, Eval, Facts, Removal};
use treebeam_core::id::NodeId;
use treebeam_core::policy::Reach;

/// What a terminal shows at once, less the line on which one types.
const LINES: usize = 23;
const COLUMNS: usize = 80;
/// What is left of a line beside the name of what it is about.
const ROOM: usize = COLUMNS - 12;
/// How many things of a kind fit on the screen.
const MOST: usize = 8;

/// What budgets count beside what answers took: the worst of calls that brought none. No event tells of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unanswered {
    /// In money, as far as prices are known.
    pub cost: Cost,
    /// In tokens.
    pub tokens: u64,
}

impl Unanswered {
    /// In words, where there is a budget that counts it.
    #[must_use]
    pub fn in_words(self, reach: &Reach) -> Option<String> {
        let (cost, tokens) = (self.cost, self.tokens);
        let money = reach.max_cost_usd.is_some() && cost != Cost::default();
        let money = money.then(|| cost.to_string());
        let tokens = (reach.max_tokens_total.is_some() && tokens > 0).then_some(tokens);
        let parts = money.into_iter().chain(tokens.map(|tokens| count(tokens, "token")));
        let parts = parts.collect::<Vec<_>>().join(" and ");
        let why = "for calls that brought no answer";
        (!parts.is_empty()).then(|| format!("{parts} {why}: the budget counts the worst of them"))
    }
}

/// The run on one screen: who runs it, if somebody does, which of its questions wait, and which
/// command would go on with it.
#[must_use]
pub fn status(
    facts: &Facts,
    unanswered: Unanswered,
    runner: Option<&str>,
    waits: &[String],
    way_on: &str,
) -> String {
    let mut lines = head(facts, unanswered);
    let mut foot = foot(facts, runner, way_on);
    foot.extend(waiting(waits));
    // A command is to be typed: it is not cut, and the terminal breaks it.
    let below: usize = foot.iter().map(|line| columns(line).div_ceil(COLUMNS)).sum();
    let deferred: Vec<_> = facts.leftovers.iter().filter_map(deferred).collect();
    let room = LINES.saturating_sub(lines.len() + below);
    // Where there is not enough room for both, what was found comes first.
    let for_cleanup = if deferred.is_empty() { 0 } else { 2.min(room) };
    lines.extend(chain(facts, MOST.min(room - for_cleanup)));
    let room = LINES.saturating_sub(lines.len() + below);
    lines.extend(cleanup(facts, &deferred, room.min(MOST)));
    lines.extend(foot);
    lines.join("\n") + "\n"
}

/// Where it is, and what it took.
fn head(facts: &Facts, unanswered: Unanswered) -> Vec<String> {
    let mut lines = [
        about("run", facts.run.as_str(), 1),
        about("world", &words::world(facts.world), 1),
        about("phase", &words::phase(facts), 2),
        about("depth", &depth(facts), 1),
        about("frontier", &frontier(facts), 2),
        about("evals", &evals(facts), 2),
    ]
    .concat();
    let open = Counts::open_depth(facts);
    if open.total() > 0 && !facts.closed.is_empty() {
        lines.extend(about("this depth", &format!("{}: {open}", count(open.total(), "eval")), 2));
    }
    let spent = facts.spent();
    if !spent.is_empty() {
        lines.extend(about("answers", &words::bill(&spent.total()), 2));
    }
    lines.extend(words::spending(&facts.reach).iter().flat_map(|most| about("budget", most, 1)));
    let reserved = unanswered.in_words(&facts.reach);
    lines.extend(reserved.iter().flat_map(|worst| about("reserved", worst, 2)));
    lines.extend(facts.deadline().iter().flat_map(|end| about("until", &format!("{end:.0}"), 1)));
    if !facts.agents.0.is_empty() {
        lines.extend(about("agents", &one_line(&facts.agents.to_string()), 2));
    }
    lines.extend(about("best", &best(facts), 1));
    lines
}

/// Who runs it, and how it goes on.
fn foot(facts: &Facts, runner: Option<&str>, way_on: &str) -> Vec<String> {
    match runner {
        Some(runner) => {
            let mut lines = about("running", &one_line(runner), 2);
            lines.extend(paused(facts));
            lines.extend(to_stop(facts));
            lines
        }
        None if matches!(facts.baseline, Baseline::Refused { .. }) => {
            about("running", "nobody: it measured nothing, for its root cannot be compared with", 2)
        }
        None if facts.stop_reason().is_none() => {
            let why = facts.stopped_after().map_or_else(
                || "it was interrupted".to_owned(),
                |depth| format!("it stopped after depth {depth}, as the user wanted"),
            );
            let mut lines = vec![field("running", &format!("nobody: {why}"))];
            lines.extend(to_stop(facts));
            lines.push(field("go on", way_on));
            lines
        }
        None => Vec::new(),
    }
}

/// The question that has waited longest, and how many others do.
fn waiting(waits: &[String]) -> Vec<String> {
    let Some((oldest, others)) = waits.split_first() else { return Vec::new() };
    let mut lines = about("waits", &one_line(oldest), 2);
    if !others.is_empty() {
        lines.push(field("", &format!("and {} more", count(others.len(), "question"))));
    }
    lines
}

/// A field on so many lines at most; a cut is marked.
fn about(name: &str, value: &str, most: usize) -> Vec<String> {
    let mut lines = wrap(value, ROOM);
    if lines.len() > most {
        let rest = lines.split_off(most.saturating_sub(1)).join(" ");
        lines.push(fit(&rest, ROOM));
    }
    list(name, lines)
}

fn paused(facts: &Facts) -> Vec<String> {
    let Some(since) = facts.history.paused_since else { return Vec::new() };
    vec![
        field("paused", &format!("since {since:.0}")),
        field("go on", &format!("treebeam unpause {}", facts.run)),
    ]
}

/// Where it is to stop. Whoever resumes it after that goes on.
fn to_stop(facts: &Facts) -> Option<String> {
    let depth = facts.to_stop_after()?;
    let way_back = format!("`treebeam unpause {}` takes that back", facts.run);
    Some(field("stops", &format!("after depth {depth}; {way_back}")))
}

pub(crate) fn depth(facts: &Facts) -> String {
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

pub(crate) fn evals(facts: &Facts) -> String {
    let counts = Counts::overall(facts);
    let most = facts.reach.max_total_idea_evals;
    let budget = most.map_or_else(String::new, |most| format!(" of at most {most}"));
    match counts.total() {
        0 => format!("0{budget}"),
        total => format!("{total}{budget}: {counts}"),
    }
}

pub(crate) fn best(facts: &Facts) -> String {
    let best = facts.best();
    let score = facts.node(best).and_then(|node| read::node_rank_score(facts, node));
    match best {
        NodeId::ROOT => format!("{}, the root: no node ranks above it", read::node_name(best)),
        _ => format!("{}, rank score {}", read::node_name(best), change(score)),
    }
}

/// The ideas that led to the best node, the last ones where there are more than fit.
fn chain(facts: &Facts, most: usize) -> Vec<String> {
    let chain = facts.idea_chain(facts.best());
    if chain.len() <= most {
        return chain.into_iter().map(|eval| field("", &idea(&eval))).collect();
    }
    let shown = most.saturating_sub(1);
    let earlier = chain.len() - shown;
    let first = field("", &format!("after {}:", count(earlier, "earlier idea")));
    let last = chain.into_iter().skip(earlier).map(|eval| field("", &idea(&eval)));
    std::iter::once(first).chain(last).take(most).collect()
}

fn idea(eval: &Eval) -> String {
    let gain = read::scored(eval).and_then(|scored| scored.vs_parent.primary_delta);
    let (name, gain) = (read::eval_name(eval), format!("(gain {} vs parent)", change(gain)));
    let room = ROOM.saturating_sub(columns(&name) + columns(&gain) + 2);
    format!("{name} {} {gain}", fit(&one_line(&eval.idea.title), room))
}

/// What could not be removed; what is merely due goes without saying.
fn cleanup(facts: &Facts, deferred: &[String], most: usize) -> Vec<String> {
    if deferred.is_empty() {
        return Vec::new();
    }
    let advice = format!("tried again by `treebeam clean {}`", facts.run);
    let mut lines = about("cleanup", &format!("{} deferred; {advice}", deferred.len()), 2);
    let room = most.saturating_sub(lines.len());
    let shown = if deferred.len() <= room { room } else { room.saturating_sub(1) };
    lines.extend(deferred.iter().take(shown).map(|line| field("", line)));
    if deferred.len() > shown && room > 0 {
        lines.push(field("", &format!("{} more", deferred.len() - shown)));
    }
    lines
}

fn deferred((leftover, removal): (&Leftover, &Removal)) -> Option<String> {
    match removal {
        Removal::Kept | Removal::Due => None,
        Removal::Deferred { attempts, why, .. } => {
            let tried = format!("(tried {})", count(*attempts, "time"));
            let room = ROOM.saturating_sub(columns(&tried) + 1);
            let why = fit(&format!("{leftover}: {}", one_line(why)), room);
            Some(format!("{why} {tried}"))
        }
    }
}
