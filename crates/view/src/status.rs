//! Renders the screen of `treebeam status`, of 80 columns and 24 lines: state, results, next
//! command. Longer text is cut, and marked; `show`, `best` and the reports have all of it. Plain
//! text, no colours. Whether a process runs the run is not on record: the caller supplies it.

use crate::figure::format_change;
use crate::lookup;
use crate::outcome::EvalCounts;
use crate::safe_text::{field_lines, first_few, format_field, one_line};
use crate::width::{fit_text, text_columns, wrap_text};
use crate::words::{self, format_count};
use treebeam_core::bill::Cost;
use treebeam_core::event::Leftover;
use treebeam_core::facts::{Eval, Facts, RemovalState, RootBaseline};
use treebeam_core::id::NodeId;
use treebeam_core::policy::RunLimits;

/// Size of the screen, without the line of the prompt.
const SCREEN_LINES: usize = 23;
const SCREEN_COLUMNS: usize = 80;
/// Width of a value, beside the name of its field.
const VALUE_COLUMNS: usize = SCREEN_COLUMNS - 12;
/// Maximum number of listed items of a kind.
const MAX_LISTED_ITEMS: usize = 8;

/// Worst-case costs of calls without an answer, which budgets count too. No event records them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnansweredCalls {
    /// Cost, as far as prices are known.
    pub cost: Cost,
    /// Number of tokens.
    pub tokens: u64,
}

impl UnansweredCalls {
    /// Describes the costs that are counted by a configured budget, if any.
    #[must_use]
    pub fn describe(self, limits: &RunLimits) -> Option<String> {
        let (cost, tokens) = (self.cost, self.tokens);
        let money = limits.max_cost_usd.is_some() && cost != Cost::default();
        let money = money.then(|| cost.to_string());
        let tokens = (limits.max_tokens_total.is_some() && tokens > 0).then_some(tokens);
        let parts = money.into_iter().chain(tokens.map(|tokens| format_count(tokens, "token")));
        let parts = parts.collect::<Vec<_>>().join(" and ");
        let why = "for calls that brought no answer";
        (!parts.is_empty()).then(|| format!("{parts} {why}: the budget counts the worst of them"))
    }
}

/// Renders a run on one screen: its runner if any, waiting questions, and the command that resumes
/// it.
#[must_use]
pub fn render_status(
    facts: &Facts,
    unanswered: UnansweredCalls,
    runner: Option<&str>,
    waits: &[String],
    resume_command: &str,
) -> String {
    let mut lines = head_lines(facts, unanswered);
    let mut foot = foot_lines(facts, runner, resume_command);
    foot.extend(waiting_lines(waits));
    // Commands are meant to be typed: they are not cut, and the terminal wraps them.
    let below: usize = foot.iter().map(|line| text_columns(line).div_ceil(SCREEN_COLUMNS)).sum();
    let deferred: Vec<_> = facts.leftovers.iter().filter_map(deferred_line).collect();
    let room = SCREEN_LINES.saturating_sub(lines.len() + below);
    // If there is not enough room for both, ideas take precedence over cleanups.
    let for_cleanup = if deferred.is_empty() { 0 } else { 2.min(room) };
    lines.extend(idea_chain_lines(facts, MAX_LISTED_ITEMS.min(room - for_cleanup)));
    let room = SCREEN_LINES.saturating_sub(lines.len() + below);
    lines.extend(cleanup_lines(facts, &deferred, room.min(MAX_LISTED_ITEMS)));
    lines.extend(foot);
    lines.join("\n") + "\n"
}

/// Returns the lines with state and costs.
fn head_lines(facts: &Facts, unanswered: UnansweredCalls) -> Vec<String> {
    let mut lines = [
        wrapped_field("run", facts.run.as_str(), 1),
        wrapped_field("world", &words::describe_world(facts.world), 1),
        wrapped_field("phase", &words::describe_phase(facts), 2),
        wrapped_field("depth", &format_depth(facts), 1),
        wrapped_field("frontier", &format_frontier(facts), 2),
        wrapped_field("evals", &format_evals(facts), 2),
    ]
    .concat();
    let open = EvalCounts::open_depth(facts);
    if open.total() > 0 && !facts.closed.is_empty() {
        lines.extend(wrapped_field(
            "this depth",
            &format!("{}: {open}", format_count(open.total(), "eval")),
            2,
        ));
    }
    let spent = facts.total_spend();
    if !spent.is_empty() {
        lines.extend(wrapped_field("answers", &words::describe_bill(&spent.total()), 2));
    }
    lines.extend(
        words::describe_spending_limits(&facts.limits)
            .iter()
            .flat_map(|most| wrapped_field("budget", most, 1)),
    );
    let reserved = unanswered.describe(&facts.limits);
    lines.extend(reserved.iter().flat_map(|worst| wrapped_field("reserved", worst, 2)));
    lines.extend(
        facts.deadline().iter().flat_map(|end| wrapped_field("until", &format!("{end:.0}"), 1)),
    );
    if !facts.agents.0.is_empty() {
        lines.extend(wrapped_field("agents", &one_line(&facts.agents.to_string()), 2));
    }
    lines.extend(wrapped_field("best", &format_best(facts), 1));
    lines
}

/// Returns the lines with the runner or the command that resumes the run.
fn foot_lines(facts: &Facts, runner: Option<&str>, resume_command: &str) -> Vec<String> {
    match runner {
        Some(runner) => {
            let mut lines = wrapped_field("running", &one_line(runner), 2);
            lines.extend(paused_lines(facts));
            lines.extend(stop_line(facts));
            lines
        }
        None if matches!(facts.baseline, RootBaseline::Refused { .. }) => wrapped_field(
            "running",
            "nobody: it measured nothing, for its root cannot be compared with",
            2,
        ),
        None if facts.stop_reason().is_none() => {
            let why = facts.stopped_after().map_or_else(
                || "it was interrupted".to_owned(),
                |depth| format!("it stopped after depth {depth}, as the user wanted"),
            );
            let mut lines = vec![format_field("running", &format!("nobody: {why}"))];
            lines.extend(stop_line(facts));
            lines.push(format_field("go on", resume_command));
            lines
        }
        None => Vec::new(),
    }
}

/// Returns the question that has waited longest, and the number of others.
fn waiting_lines(waits: &[String]) -> Vec<String> {
    let Some((oldest, others)) = waits.split_first() else { return Vec::new() };
    let mut lines = wrapped_field("waits", &one_line(oldest), 2);
    if !others.is_empty() {
        lines.push(format_field(
            "",
            &format!("and {} more", format_count(others.len(), "question")),
        ));
    }
    lines
}

/// Formats a field on at most `most` lines; a cut is marked.
fn wrapped_field(name: &str, value: &str, most: usize) -> Vec<String> {
    let mut lines = wrap_text(value, VALUE_COLUMNS);
    if lines.len() > most {
        let rest = lines.split_off(most.saturating_sub(1)).join(" ");
        lines.push(fit_text(&rest, VALUE_COLUMNS));
    }
    field_lines(name, lines)
}

fn paused_lines(facts: &Facts) -> Vec<String> {
    let Some(since) = facts.history.paused_since else { return Vec::new() };
    vec![
        format_field("paused", &format!("since {since:.0}")),
        format_field("go on", &format!("treebeam unpause {}", facts.run)),
    ]
}

/// Returns the line with a requested stop. A later resume continues beyond it.
fn stop_line(facts: &Facts) -> Option<String> {
    let depth = facts.pending_stop_after()?;
    let way_back = format!("`treebeam unpause {}` takes that back", facts.run);
    Some(format_field("stops", &format!("after depth {depth}; {way_back}")))
}

pub(crate) fn format_depth(facts: &Facts) -> String {
    let (closed, most) = (facts.closed.len(), facts.depth_limit());
    let done = format_closed_depths(closed, most);
    if facts.stop_reason().is_some() {
        return done;
    }
    format!("{} ({done})", facts.depth)
}

/// Formats closed depths; the limit may have been lowered below them later.
fn format_closed_depths(closed: usize, most: u32) -> String {
    if u32::try_from(closed).is_ok_and(|closed| closed <= most) {
        return format!("{closed} of {most} done");
    }
    format!("{closed} done, more than the {most} that are wanted now")
}

fn format_frontier(facts: &Facts) -> String {
    if facts.frontier.is_empty() {
        return "empty".to_owned();
    }
    first_few(facts.frontier.iter().copied().map(lookup::node_name), MAX_LISTED_ITEMS)
}

pub(crate) fn format_evals(facts: &Facts) -> String {
    let counts = EvalCounts::overall(facts);
    let most = facts.limits.max_total_idea_evals;
    let budget = most.map_or_else(String::new, |most| format!(" of at most {most}"));
    match counts.total() {
        0 => format!("0{budget}"),
        total => format!("{total}{budget}: {counts}"),
    }
}

pub(crate) fn format_best(facts: &Facts) -> String {
    let best = facts.best_node();
    let score = facts.node(best).and_then(|node| lookup::node_rank_score(facts, node));
    match best {
        NodeId::ROOT => format!("{}, the root: no node ranks above it", lookup::node_name(best)),
        _ => format!("{}, rank score {}", lookup::node_name(best), format_change(score)),
    }
}

/// Returns the ideas that led to the best node, only the last ones if there are too many.
fn idea_chain_lines(facts: &Facts, most: usize) -> Vec<String> {
    let chain = facts.idea_chain(facts.best_node());
    if chain.len() <= most {
        return chain.into_iter().map(|eval| format_field("", &format_idea(&eval))).collect();
    }
    let shown = most.saturating_sub(1);
    let earlier = chain.len() - shown;
    let first = format_field("", &format!("after {}:", format_count(earlier, "earlier idea")));
    let last = chain.into_iter().skip(earlier).map(|eval| format_field("", &format_idea(&eval)));
    std::iter::once(first).chain(last).take(most).collect()
}

fn format_idea(eval: &Eval) -> String {
    let gain = lookup::candidate_score(eval).and_then(|scored| scored.vs_parent.primary_delta);
    let (name, gain) =
        (lookup::eval_name(eval), format!("(gain {} vs parent)", format_change(gain)));
    let room = VALUE_COLUMNS.saturating_sub(text_columns(&name) + text_columns(&gain) + 2);
    format!("{name} {} {gain}", fit_text(&one_line(&eval.idea.title), room))
}

/// Returns what could not be removed; due removals that were not tried yet are not listed.
fn cleanup_lines(facts: &Facts, deferred: &[String], most: usize) -> Vec<String> {
    if deferred.is_empty() {
        return Vec::new();
    }
    let advice = format!("tried again by `treebeam clean {}`", facts.run);
    let mut lines = wrapped_field("cleanup", &format!("{} deferred; {advice}", deferred.len()), 2);
    let room = most.saturating_sub(lines.len());
    let shown = if deferred.len() <= room { room } else { room.saturating_sub(1) };
    lines.extend(deferred.iter().take(shown).map(|line| format_field("", line)));
    if deferred.len() > shown && room > 0 {
        lines.push(format_field("", &format!("{} more", deferred.len() - shown)));
    }
    lines
}

fn deferred_line((leftover, removal): (&Leftover, &RemovalState)) -> Option<String> {
    match removal {
        RemovalState::Kept | RemovalState::Due => None,
        RemovalState::Deferred { attempts, why, .. } => {
            let tried = format!("(tried {})", format_count(*attempts, "time"));
            let room = VALUE_COLUMNS.saturating_sub(text_columns(&tried) + 1);
            let why = fit_text(&format!("{leftover}: {}", one_line(why)), room);
            Some(format!("{why} {tried}"))
        }
    }
}
