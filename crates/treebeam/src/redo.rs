//! Turns the redo flags into recorded requests, and reports what is done again.
//!
//! Which evals can be done again is decided by [`treebeam_core::plan`].

use crate::cli::RedoFlags;
use crate::terminal;
use serde_json::{Value, json};
use treebeam_core::event::{SentBack, StopReason};
use treebeam_core::facts::{Eval, Facts, RunPhase, Stage};
use treebeam_core::id::{CodePlace, Depth, NodeId};
use treebeam_core::plan::{self, RedoKind};

impl RedoFlags {
    /// Iterates over the flags that are set and the redo that each requests.
    fn requested_redos(&self) -> impl Iterator<Item = (&'static str, RedoKind)> {
        let all = [
            (self.retry_failed, "--retry-failed", RedoKind::RetryFailed),
            (self.rerun_evals, "--rerun-evals", RedoKind::RerunEvals),
            (self.force_regenerate_ideas, "--force-regenerate-ideas", RedoKind::RegenerateIdeas),
        ];
        all.into_iter().filter(|(given, ..)| *given).map(|(_, flag, again)| (flag, again))
    }

    /// Returns the redos that the flags request.
    pub(crate) fn redo_kinds(&self) -> Vec<RedoKind> {
        self.requested_redos().map(|(_, again)| again).collect()
    }

    /// Returns the first flag that is set, if any.
    pub(crate) fn first_flag(&self) -> Option<&'static str> {
        self.requested_redos().map(|(flag, _)| flag).next()
    }
}

/// Reports for each flag what is done again, or why nothing is.
pub(crate) fn report_redo(facts: &Facts, flags: &RedoFlags, sent: Option<&SentBack>) {
    let open = facts.with_reopened_depth();
    let facts = open.as_ref().unwrap_or(facts);
    if let Some(depth) = sent.and_then(|sent| sent.reopened) {
        terminal::print_note(&format!("depth {depth} is open again: nothing was promoted from it"));
    }
    for (flag, again) in flags.requested_redos() {
        let done = sent.and_then(|sent| describe_redone(facts, again, sent));
        let what = done
            .unwrap_or_else(|| format!("nothing to do again: {}", explain_no_redo(facts, again)));
        terminal::print_note(&format!("`{flag}`: {what}"));
    }
}

/// Prints how to continue a run that has ended: without the budget that ended it, and with another
/// attempt for what failed. `command` renders the resume command with some settings replaced.
pub(crate) fn report_resume_hint(facts: &Facts, command: impl Fn(&Value) -> String) {
    let sent = plan::send_back(facts, &[RedoKind::RetryFailed], &|_| true, facts.created_at);
    let reopened = sent.and_then(|sent| sent.reopened);
    let flag = if reopened.is_some() { " --retry-failed" } else { "" };
    let goes_deeper = facts.user_ideas.is_none() && facts.depth.0 < facts.depth_limit();
    let hint = match (find_spent_limit(facts), reopened) {
        _ if facts.replays.is_some() || facts.stop_reason().is_none() => return,
        (Some((key, instead)), _) if reopened.is_some() || goes_deeper => {
            let command = command(&json!({ key: "none" }));
            format!("`{command}{flag}` goes on from here; {instead}")
        }
        (None, Some(depth)) => {
            let command = command(&Value::Null);
            format!("`{command}{flag}` tries again what failed at depth {depth}")
        }
        (None, None) if !goes_deeper => match find_cut_short_depth(facts) {
            Some(depth) => {
                let command = command(&json!({ "max_depth": facts.depth_limit() + 1 }));
                format!(
                    "a budget left something untried at depth {depth}, and closed depths stand; `{command}` goes on at the next one"
                )
            }
            None => return,
        },
        (Some(_) | None, _) => return,
    };
    terminal::print_line(&format!("hint: {hint}"));
}

/// Returns the last depth of a search if all depths are done and a budget cut that one short.
fn find_cut_short_depth(facts: &Facts) -> Option<Depth> {
    let is_done = facts.stop_reason() == Some(StopReason::MaxDepth) && facts.user_ideas.is_none();
    let last = facts.closed.last().filter(|closed| is_done && closed.cut_short);
    last.and_then(|_| facts.depth.0.checked_sub(1)).map(Depth)
}

/// Returns the setting that ended a run, and a hint on other values for it.
fn find_spent_limit(facts: &Facts) -> Option<(&'static str, &'static str)> {
    match facts.stop_reason()? {
        StopReason::Deadline => Some(("deadline", "`--deadline=07:00` until the next morning")),
        StopReason::MaxCost => Some(("max_cost_usd", "a greater sum in place of `none` bounds it")),
        StopReason::MaxTokens => {
            Some(("max_tokens_total", "a greater number in place of `none` bounds it"))
        }
        StopReason::MaxDepth
        | StopReason::EmptyFrontier
        | StopReason::NoIdeas
        | StopReason::MaxEvals
        | StopReason::StrictDepthFailure => None,
    }
}

/// Reports that a new run has nothing to do again.
pub(crate) fn report_new_run(flags: &RedoFlags) {
    for (flag, _) in flags.requested_redos() {
        terminal::print_note(&format!("`{flag}`: nothing to do again: the run is new"));
    }
}

fn describe_redone(facts: &Facts, again: RedoKind, sent: &SentBack) -> Option<String> {
    match again {
        RedoKind::RetryFailed => {
            let (swept, drafted): (Vec<_>, Vec<_>) =
                sent.retried.iter().copied().partition(|id| sent.swept.contains(id));
            let [swept, drafted] = [swept, drafted]
                .map(|evals| join_places(evals.into_iter().map(CodePlace::Candidate)));
            let swept = swept.map(|evals| format!("swept again as committed: {evals}"));
            let drafted = drafted.map(|evals| format!("implemented again: {evals}"));
            let none_came =
                |id: &NodeId| facts.node(*id).is_some_and(|node| node.got_no_ideas_at(facts.depth));
            let asked = sent.asked.iter().copied().filter(none_came);
            let asked = join_places(asked.map(CodePlace::Node));
            let asked = asked.map(|nodes| format!("asked for ideas again: {nodes}"));
            let left = sent.reopened.and_then(|_| join_places(unfinished_places(facts)));
            let left = left.map(|evals| format!("tried to their end: {evals}"));
            let parts: Vec<_> = swept.into_iter().chain(drafted).chain(left).chain(asked).collect();
            (!parts.is_empty()).then(|| parts.join("; "))
        }
        RedoKind::RerunEvals => {
            let rerun = &sent.rerun;
            let evals = rerun.iter().map(|rerun| CodePlace::Candidate(rerun.of));
            let missing = count_scored(facts) - rerun.len();
            Some(format!(
                "evaluated again: {}{}",
                join_places(evals)?,
                describe_left_out(missing, "eval")
            ))
        }
        RedoKind::RegenerateIdeas => {
            let nodes = join_places(sent.asked.iter().copied().map(CodePlace::Node))?;
            let aside = sent.set_aside.iter().copied().map(CodePlace::Candidate);
            let aside = join_places(aside).unwrap_or_else(|| "nothing".to_owned());
            Some(format!("other ideas are asked for: {nodes}; set aside for them: {aside}"))
        }
    }
}

/// Returns the queued evals of a depth that was just reopened: they were unfinished when it closed.
fn unfinished_places(facts: &Facts) -> impl Iterator<Item = CodePlace> {
    let waiting = facts.open_evals().iter().filter(|eval| eval.stage == Stage::Queued);
    waiting.map(|eval| CodePlace::Candidate(eval.id))
}

fn describe_left_out(missing: usize, thing: &str) -> String {
    match missing {
        0 => String::new(),
        1 => format!("; the budget has no room for 1 {thing} more"),
        n => format!("; the budget has no room for {n} {thing}s more"),
    }
}

fn count_scored(facts: &Facts) -> usize {
    let scored = facts.open_evals().iter().filter(|eval| matches!(eval.stage, Stage::Scored(_)));
    scored.count()
}

fn join_places(places: impl Iterator<Item = CodePlace>) -> Option<String> {
    let names: Vec<_> = places.map(|place| place.to_string()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Explains why there is nothing to do again.
fn explain_no_redo(facts: &Facts, again: RedoKind) -> String {
    let depth = facts.depth;
    let frontier = || facts.frontier.iter().filter_map(|id| facts.node(*id));
    let begun = frontier().any(|node| node.expansion_at(depth).is_some());
    if !begun || facts.phase != RunPhase::Searching {
        return match facts.closed.len().checked_sub(1) {
            Some(last) => format!("depth {last} is closed, and closed depths stand"),
            None => "no idea has been tried yet".to_owned(),
        };
    }
    let spent = facts.remaining_evals() == 0;
    let judged = |eval: &Eval| matches!(eval.stage, Stage::Decided(..));
    match again {
        RedoKind::RetryFailed if frontier().any(|node| node.got_no_ideas_at(depth)) => {
            EVAL_BUDGET_SPENT.to_owned()
        }
        RedoKind::RetryFailed => format!("nothing of depth {depth} has failed"),
        RedoKind::RerunEvals if facts.open_evals().iter().any(judged) => {
            format!("the evals of depth {depth} are judged, and that stands")
        }
        RedoKind::RerunEvals if spent && count_scored(facts) > 0 => EVAL_BUDGET_SPENT.to_owned(),
        RedoKind::RerunEvals => format!("no eval of depth {depth} is completed"),
        RedoKind::RegenerateIdeas => {
            format!("every idea of depth {depth} has begun, or the budget has no room for others")
        }
    }
}

const EVAL_BUDGET_SPENT: &str =
    "the budget of evals is used up (`--max-total-idea-evals` raises it)";
