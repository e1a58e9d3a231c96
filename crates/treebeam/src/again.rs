//! What the user wants done again, once: from the flags to what is recorded, and the words about it. What can be done
//! again, and to which evals, is the plan's business.

use crate::cli::AgainFlags;
use crate::terminal;
use serde_json::{Value, json};
use treebeam_core::event::{SentBack, Stop};
use treebeam_core::facts::{Eval, Facts, Phase, Stage};
use treebeam_core::id::{Depth, NodeId, Place};
use treebeam_core::plan::{self, Again};

impl AgainFlags {
    /// The flags that were given, and what each asks for.
    fn given(&self) -> impl Iterator<Item = (&'static str, Again)> {
        let all = [
            (self.retry_failed, "--retry-failed", Again::RetryFailed),
            (self.rerun_evals, "--rerun-evals", Again::RerunEvals),
            (self.force_regenerate_ideas, "--force-regenerate-ideas", Again::RegenerateIdeas),
        ];
        all.into_iter().filter(|(given, ..)| *given).map(|(_, flag, again)| (flag, again))
    }

    /// What was asked for.
    pub(crate) fn wishes(&self) -> Vec<Again> {
        self.given().map(|(_, again)| again).collect()
    }

    /// The first flag that was given, if any.
    pub(crate) fn first(&self) -> Option<&'static str> {
        self.given().map(|(flag, _)| flag).next()
    }
}

/// Says for each flag what is done again, or why nothing is.
pub(crate) fn tell(facts: &Facts, flags: &AgainFlags, sent: Option<&SentBack>) {
    let open = facts.reopened();
    let facts = open.as_ref().unwrap_or(facts);
    if let Some(depth) = sent.and_then(|sent| sent.reopened) {
        terminal::note(&format!("depth {depth} is open again: nothing was promoted from it"));
    }
    for (flag, again) in flags.given() {
        let done = sent.and_then(|sent| done(facts, again, sent));
        let what = done.unwrap_or_else(|| format!("nothing to do again: {}", why(facts, again)));
        terminal::note(&format!("`{flag}`: {what}"));
    }
}

/// Says how to go on with a run that has ended: without the budget that ended it, and with another attempt for what failed.
/// The command is made with settings other than those that were said.
pub(crate) fn tell_of_way_on(facts: &Facts, command: impl Fn(&Value) -> String) {
    let sent = plan::send_back(facts, &[Again::RetryFailed], &|_| true, facts.created_at);
    let reopened = sent.and_then(|sent| sent.reopened);
    let flag = if reopened.is_some() { " --retry-failed" } else { "" };
    let goes_deeper = facts.given.is_none() && facts.depth.0 < facts.depths();
    let hint = match (spent(facts), reopened) {
        _ if facts.replays.is_some() || facts.stop_reason().is_none() => return,
        (Some((key, instead)), _) if reopened.is_some() || goes_deeper => {
            let command = command(&json!({ key: "none" }));
            format!("`{command}{flag}` goes on from here; {instead}")
        }
        (None, Some(depth)) => {
            let command = command(&Value::Null);
            format!("`{command}{flag}` tries again what failed at depth {depth}")
        }
        (None, None) if !goes_deeper => match cut_short(facts) {
            Some(depth) => {
                let command = command(&json!({ "max_depth": facts.depths() + 1 }));
                format!(
                    "a budget left something untried at depth {depth}, and closed depths stand; `{command}` goes on at the next one"
                )
            }
            None => return,
        },
        (Some(_) | None, _) => return,
    };
    terminal::say(&format!("hint: {hint}"));
}

/// The last depth of a search, where all depths are done and a budget cut that one short.
fn cut_short(facts: &Facts) -> Option<Depth> {
    let is_done = facts.stop_reason() == Some(Stop::MaxDepth) && facts.given.is_none();
    let last = facts.closed.last().filter(|closed| is_done && closed.cut_short);
    last.and_then(|_| facts.depth.0.checked_sub(1)).map(Depth)
}

/// The setting that ended a run, and what else it could be.
fn spent(facts: &Facts) -> Option<(&'static str, &'static str)> {
    match facts.stop_reason()? {
        Stop::Deadline => Some(("deadline", "`--deadline=07:00` until the next morning")),
        Stop::MaxCost => Some(("max_cost_usd", "a greater sum in place of `none` bounds it")),
        Stop::MaxTokens => {
            Some(("max_tokens_total", "a greater number in place of `none` bounds it"))
        }
        Stop::MaxDepth
        | Stop::EmptyFrontier
        | Stop::NoIdeas
        | Stop::MaxEvals
        | Stop::StrictDepthFailure => None,
    }
}

/// Says that a run that has just begun has nothing to do again.
pub(crate) fn tell_of_new_run(flags: &AgainFlags) {
    for (flag, _) in flags.given() {
        terminal::note(&format!("`{flag}`: nothing to do again: the run is new"));
    }
}

fn done(facts: &Facts, again: Again, sent: &SentBack) -> Option<String> {
    match again {
        Again::RetryFailed => {
            let (swept, drafted): (Vec<_>, Vec<_>) =
                sent.retried.iter().copied().partition(|id| sent.swept.contains(id));
            let [swept, drafted] =
                [swept, drafted].map(|evals| names(evals.into_iter().map(Place::Candidate)));
            let swept = swept.map(|evals| format!("swept again as committed: {evals}"));
            let drafted = drafted.map(|evals| format!("implemented again: {evals}"));
            let none_came =
                |id: &NodeId| facts.node(*id).is_some_and(|node| node.got_no_ideas_at(facts.depth));
            let asked = sent.asked.iter().copied().filter(none_came);
            let asked = names(asked.map(Place::Node));
            let asked = asked.map(|nodes| format!("asked for ideas again: {nodes}"));
            let left = sent.reopened.and_then(|_| names(unfinished(facts)));
            let left = left.map(|evals| format!("tried to their end: {evals}"));
            let parts: Vec<_> = swept.into_iter().chain(drafted).chain(left).chain(asked).collect();
            (!parts.is_empty()).then(|| parts.join("; "))
        }
        Again::RerunEvals => {
            let rerun = &sent.rerun;
            let evals = rerun.iter().map(|rerun| Place::Candidate(rerun.of));
            let missing = scored(facts) - rerun.len();
            Some(format!("evaluated again: {}{}", names(evals)?, left_out(missing, "eval")))
        }
        Again::RegenerateIdeas => {
            let nodes = names(sent.asked.iter().copied().map(Place::Node))?;
            let aside = sent.set_aside.iter().copied().map(Place::Candidate);
            let aside = names(aside).unwrap_or_else(|| "nothing".to_owned());
            Some(format!("other ideas are asked for: {nodes}; set aside for them: {aside}"))
        }
    }
}

/// What waits at a depth that was just opened again was left unfinished when it closed.
fn unfinished(facts: &Facts) -> impl Iterator<Item = Place> {
    let waiting = facts.open_evals().iter().filter(|eval| eval.stage == Stage::Queued);
    waiting.map(|eval| Place::Candidate(eval.id))
}

fn left_out(missing: usize, thing: &str) -> String {
    match missing {
        0 => String::new(),
        1 => format!("; the budget has no room for 1 {thing} more"),
        n => format!("; the budget has no room for {n} {thing}s more"),
    }
}

fn scored(facts: &Facts) -> usize {
    let scored = facts.open_evals().iter().filter(|eval| matches!(eval.stage, Stage::Scored(_)));
    scored.count()
}

fn names(places: impl Iterator<Item = Place>) -> Option<String> {
    let names: Vec<_> = places.map(|place| place.to_string()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Why there is nothing to do again.
fn why(facts: &Facts, again: Again) -> String {
    let depth = facts.depth;
    let frontier = || facts.frontier.iter().filter_map(|id| facts.node(*id));
    let begun = frontier().any(|node| node.expansion_at(depth).is_some());
    if !begun || facts.phase != Phase::Searching {
        return match facts.closed.len().checked_sub(1) {
            Some(last) => format!("depth {last} is closed, and closed depths stand"),
            None => "no idea has been tried yet".to_owned(),
        };
    }
    let spent = facts.room() == 0;
    let judged = |eval: &Eval| matches!(eval.stage, Stage::Decided(..));
    match again {
        Again::RetryFailed if frontier().any(|node| node.got_no_ideas_at(depth)) => {
            NO_ROOM.to_owned()
        }
        Again::RetryFailed => format!("nothing of depth {depth} has failed"),
        Again::RerunEvals if facts.open_evals().iter().any(judged) => {
            format!("the evals of depth {depth} are judged, and that stands")
        }
        Again::RerunEvals if spent && scored(facts) > 0 => NO_ROOM.to_owned(),
        Again::RerunEvals => format!("no eval of depth {depth} is completed"),
        Again::RegenerateIdeas => {
            format!("every idea of depth {depth} has begun, or the budget has no room for others")
        }
    }
}

const NO_ROOM: &str = "the budget of evals is used up (`--max-total-idea-evals` raises it)";
