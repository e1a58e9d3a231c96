//! Doing work of the open depth again: what the user may ask for, once, and whether a failed attempt is followed by the
//! next. Closed depths stand, but for the last one where nothing was promoted from it.

use crate::bill::RoleBills;
use crate::event::{EvalFailure, EvalRerun, EvalStage, Event, FailureKind, SentBack};
use crate::facts::{Eval, Expansion, Facts, Node, RunPhase, Stage};
use crate::group::EvalGroup;
use crate::id::{Commit, EvalId};
use crate::state::State;
use jiff::Timestamp;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RedoKind {
    /// Failed evals get another attempt, whatever they failed of, and nodes that no ideas came for are asked again. What a
    /// budget left unfinished at a depth that is opened again is tried to its end.
    RetryFailed,
    /// Scored evals are evaluated again under new ids.
    RerunEvals,
    /// Ideas that have not begun give way to new ones.
    RegenerateIdeas,
}

/// What is to be recorded for these wishes; nothing where there is nothing to do again. The last depth is opened again for
/// them where nothing was promoted from it, but nothing is measured again there that is compared already. Whoever asks says
/// which commits are still there.
#[must_use]
pub fn send_back(
    state: &Facts,
    wishes: &[RedoKind],
    is_there: &dyn Fn(&Commit) -> bool,
    at: Timestamp,
) -> Option<SentBack> {
    let at_open_depth = |state: &Facts, wishes: &[RedoKind]| {
        let sent = send_back_at_open_depth(state, wishes, at);
        let is_there = |id: &EvalId| {
            state
                .eval(*id)
                .and_then(|eval| eval.candidate())
                .is_some_and(|work| is_there(&work.commit))
        };
        let swept =
            evals_to_sweep_again(state, &sent.retried).into_iter().filter(is_there).collect();
        SentBack { swept, ..sent }
    };
    let Some(open) = state.with_reopened_depth() else {
        let is_open = state.phase == RunPhase::Searching;
        return is_open.then(|| at_open_depth(state, wishes)).filter(has_redo_work);
    };
    let wishes: Vec<_> =
        wishes.iter().copied().filter(|again| *again != RedoKind::RerunEvals).collect();
    let sent = SentBack { reopened: Some(open.depth), ..at_open_depth(&open, &wishes) };
    // Nothing waits at a depth that is closed: what does now was left unfinished.
    let waits = open.open_evals().iter().any(|eval| eval.stage == Stage::Queued);
    let goes_on = waits && wishes.contains(&RedoKind::RetryFailed);
    (goes_on || has_redo_work(&sent)).then_some(sent)
}

fn has_redo_work(sent: &SentBack) -> bool {
    !(sent.retried.is_empty() && sent.rerun.is_empty() && sent.asked.is_empty())
}

fn send_back_at_open_depth(state: &Facts, wishes: &[RedoKind], at: Timestamp) -> SentBack {
    let asks_for = |again| wishes.contains(&again);
    let retried = if asks_for(RedoKind::RetryFailed) { failed_evals(state) } else { Vec::new() };
    let rerun = if asks_for(RedoKind::RerunEvals) { rerun_scored(state) } else { Vec::new() };
    let of_tree =
        |rerun: &&EvalRerun| state.eval(rerun.of).is_some_and(|eval| eval.group.is_tree());
    let of_tree = u32::try_from(rerun.iter().filter(of_tree).count()).unwrap_or(u32::MAX);
    let room = state.remaining_evals().saturating_sub(of_tree);
    let replaced = nodes_to_ask_again(state, wishes, room);
    let asked: Vec<_> = replaced.iter().map(|(node, _)| node.id).collect();
    let set_aside: Vec<_> = replaced.into_iter().flat_map(|(_, evals)| evals).collect();
    SentBack { reopened: None, retried, swept: Vec::new(), rerun, set_aside, asked, at }
}

/// Failed evals whose candidate need not be another: its time was too short, the data were changed under it, or no sweep of the
/// depth came to its end, which is hardly the fault of all candidates. Where others were measured, the one that was not is at fault.
fn evals_to_sweep_again(state: &Facts, failed: &[EvalId]) -> Vec<EvalId> {
    let none_measured = state.open_evals().iter().all(|eval| eval.scored_candidate().is_none());
    let of_surroundings = |id: &&EvalId| {
        let eval = state.eval(**id);
        let failure = eval.as_ref().and_then(|eval| eval.fresh_candidate_failure());
        failure.is_some_and(|failure| match failure.kind {
            FailureKind::Timeout | FailureKind::Inputs | FailureKind::Artifacts => true,
            FailureKind::Setup
            | FailureKind::Sweep
            | FailureKind::NoResults
            | FailureKind::Results => none_measured,
            FailureKind::Agent
            | FailureKind::Patch
            | FailureKind::Rejected
            | FailureKind::Protected
            | FailureKind::NoChange
            | FailureKind::Tests => false,
        })
    };
    failed.iter().filter(of_surroundings).copied().collect()
}

fn failed_evals(state: &Facts) -> Vec<EvalId> {
    let failed = |eval: &&Eval| matches!(eval.stage, Stage::Failed { .. });
    state.open_evals().iter().filter(failed).map(|eval| eval.id).collect()
}

/// Scored evals with the ids that they get, as far as the budget of each group goes.
fn rerun_scored(state: &Facts) -> Vec<EvalRerun> {
    let mut room =
        [EvalGroup::Tree, EvalGroup::Control].map(|group| (group, state.remaining_evals_of(group)));
    let scored = state.open_evals().iter().filter(|eval| matches!(eval.stage, Stage::Scored(_)));
    let fits = scored.filter(|eval| {
        let left = room.iter_mut().find(|(group, _)| *group == eval.group);
        left.is_some_and(|(_, left)| std::mem::replace(left, left.saturating_sub(1)) > 0)
    });
    let ids = (state.next_eval_id().number()..).map(EvalId::new);
    fits.zip(ids).map(|(eval, id)| EvalRerun { of: eval.id, eval: id }).collect()
}

/// Nodes that lack ideas, because none came or once those that have not begun are set aside; only those that will surely have
/// room for new ones.
fn nodes_to_ask_again<'a>(
    state: &'a Facts,
    wishes: &[RedoKind],
    room: u32,
) -> Vec<(&'a Node, Vec<EvalId>)> {
    let [others, failed] =
        [RedoKind::RegenerateIdeas, RedoKind::RetryFailed].map(|again| wishes.contains(&again));
    if state.user_ideas.is_some() {
        return Vec::new();
    }
    let successors = successor_evals(state);
    let mut room = room;
    let mut found = Vec::new();
    for id in state.expanded_at_open_depth() {
        let Some(node) = state.node(id) else { continue };
        let is_asked = others || (failed && node.got_no_ideas_at(state.depth));
        if !is_asked {
            continue;
        }
        let fresh = if others { unstarted_evals(state, node, &successors) } else { Vec::new() };
        let wanted = state.wanted_idea_count(node) + u32::try_from(fresh.len()).unwrap_or(u32::MAX);
        if wanted > 0 && wanted <= room {
            room -= wanted;
            found.push((node, fresh));
        }
    }
    found
}

/// Evals of the open depth that an idea got for the second time: what was measured first counts no more, so they stay.
fn successor_evals(state: &Facts) -> BTreeSet<EvalId> {
    let successor = |eval: &Eval| match eval.stage {
        Stage::Superseded(_, by) => Some(by),
        Stage::Queued
        | Stage::Implementing(_)
        | Stage::Implemented(_)
        | Stage::Sweeping(_)
        | Stage::Swept(..)
        | Stage::Scored(_)
        | Stage::Decided(..)
        | Stage::Failed { .. }
        | Stage::Unfinished { .. }
        | Stage::SetAside => None,
    };
    state.open_evals().iter().filter_map(successor).collect()
}

/// Those that were asked for: an idea of the user's stays.
fn unstarted_evals(state: &Facts, node: &Node, successors: &BTreeSet<EvalId>) -> Vec<EvalId> {
    let here = node.expansions.iter().filter(|expansion| expansion.depth == state.depth);
    let evals = here.flat_map(Expansion::eval_ids).filter_map(|id| state.eval(*id));
    let fresh = |eval: &Cow<'_, Eval>| {
        // What a budget stopped waits again, and has answers that were paid for.
        let paid = !eval.total_spend().is_empty();
        let begun = eval.stage != Stage::Queued || eval.attempt > 1 || paid;
        !begun && eval.idea.turn.is_some() && !successors.contains(&eval.id)
    };
    evals.filter(fresh).map(|eval| eval.id).collect()
}

/// Why the results of a sweep do not count that was under way when artifacts were found changed.
pub const SUSPECT_SWEEP_MESSAGE: &str =
    "artifacts of the run were changed on disk while it was swept: its results do not count";

/// The failure of an eval that was being swept when artifacts were found changed.
pub(super) fn suspect_sweep_failure() -> EvalFailure {
    let (stage, kind) = (EvalStage::Sweep, FailureKind::Artifacts);
    EvalFailure { stage, kind, message: SUSPECT_SWEEP_MESSAGE.to_owned() }
}

/// What a failure means for the record: the end of its eval, or of one attempt.
pub(super) fn failure_event(
    state: &State,
    eval: EvalId,
    failure: EvalFailure,
    bills: RoleBills,
    at: Timestamp,
) -> Event {
    let attempt = state.eval(eval).map_or(1, |eval| eval.attempt);
    if failure.kind.is_worth_a_retry() && attempt <= state.limits.eval_retries {
        return Event::AttemptFailed { eval, attempt, failure, bills, at };
    }
    Event::EvalFailed { eval, failure, bills, at }
}
