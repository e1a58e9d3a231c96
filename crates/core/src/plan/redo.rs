//! Repeating work of the open depth: on request of the user, or by automatic retries. Closed depths
//! are final, except the last one if it promoted nothing.

use crate::bill::RoleBills;
use crate::event::{EvalFailure, EvalRerun, EvalStage, Event, FailureKind, SentBack};
use crate::facts::{Eval, Expansion, Facts, Node, RunPhase, Stage};
use crate::group::EvalGroup;
use crate::id::{Commit, EvalId};
use crate::state::State;
use jiff::Timestamp;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Kind of work that the user can have repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RedoKind {
    /// Failed evals get another attempt, whatever the failure, and nodes that received no ideas get
    /// new ones. At a reopened depth, evals that a budget left unfinished are completed.
    RetryFailed,
    /// Scored evals are evaluated again under new ids.
    RerunEvals,
    /// Ideas that have not begun are replaced by new ones.
    RegenerateIdeas,
}

/// Returns the event for these requests; `None` if there is nothing to repeat. The last depth is
/// reopened for them if it promoted nothing, but scored evals there are not measured again.
/// `is_there` tells which commits still exist.
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
    // Nothing waits at a closed depth: evals that wait now were left unfinished.
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

/// Selects failed evals whose candidate need not change: the time was too short, the data changed
/// during the sweep, or no sweep of the depth finished, which is hardly the fault of all
/// candidates. If others were measured, the failed candidate is at fault.
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

/// Assigns new ids to scored evals, as far as the budget of each group allows.
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

/// Selects nodes that lack ideas, because none were received or after setting aside those not
/// begun; only nodes that are certain to fit the budget.
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

/// Returns the evals of the open depth that repeat a superseded one, and therefore stay.
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

/// Returns the node's evals of generated ideas that have not begun: the user's ideas stay.
fn unstarted_evals(state: &Facts, node: &Node, successors: &BTreeSet<EvalId>) -> Vec<EvalId> {
    let here = node.expansions.iter().filter(|expansion| expansion.depth == state.depth);
    let evals = here.flat_map(Expansion::eval_ids).filter_map(|id| state.eval(*id));
    let fresh = |eval: &Cow<'_, Eval>| {
        // An eval that a budget stopped is queued again, but has replies that were paid for.
        let paid = !eval.total_spend().is_empty();
        let begun = eval.stage != Stage::Queued || eval.attempt > 1 || paid;
        !begun && eval.idea.turn.is_some() && !successors.contains(&eval.id)
    };
    evals.filter(fresh).map(|eval| eval.id).collect()
}

/// Message of the failure of a sweep that was running when artifacts were found changed.
pub const SUSPECT_SWEEP_MESSAGE: &str =
    "artifacts of the run were changed on disk while it was swept: its results do not count";

/// Returns the failure of an eval that was being swept when artifacts were found changed.
pub(super) fn suspect_sweep_failure() -> EvalFailure {
    let (stage, kind) = (EvalStage::Sweep, FailureKind::Artifacts);
    EvalFailure { stage, kind, message: SUSPECT_SWEEP_MESSAGE.to_owned() }
}

/// Returns the event for a failure: the end of its eval, or of one attempt.
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
