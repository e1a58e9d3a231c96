//! End of a depth and end of a run: gate, rank, beam, stop.

use crate::event::{Event, PaidStep, StopReason};
use crate::facts::{Candidate, Eval, Expansion, ExpansionIdeas, Facts, Node, Stage};
use crate::gate::{GateVerdict, judge_candidate};
use crate::group::IdeaSource;
use crate::id::{EvalId, NodeId};
use crate::rank;
use crate::state::State;

/// Returns true if nothing of the open depth has begun; requests that a budget stopped don't count.
fn is_untouched(state: &State) -> bool {
    let begun = |id: &NodeId| {
        let expansion = state.node(*id).and_then(|node| node.expansion_at(state.depth));
        // After the deadline no reply comes any more.
        let answered = |expansion: &Expansion| {
            !state.is_past_deadline() || expansion.ideas != ExpansionIdeas::Asked
        };
        expansion.is_some_and(answered)
            && !state.is_stopped_by_budget(PaidStep::Propose(IdeaSource::Node(*id)))
    };
    state.open_evals().is_empty() && !state.frontier.iter().any(begun)
}

/// Returns the reason to end the run before the open depth begins, if there is one.
pub(super) fn stop_before_depth(state: &State) -> Option<StopReason> {
    if !is_untouched(state) {
        return None;
    }
    if let Some(reached) = &state.reached_budget {
        return Some(reached.budget.into());
    }
    let out_of_evals = state.remaining_evals() == 0;
    if let Some(last) = state.closed.last() {
        if last.cut_short && out_of_evals {
            return Some(StopReason::MaxEvals);
        }
        if last.failed > 0 && state.limits.strict_fail_depth {
            return Some(StopReason::StrictDepthFailure);
        }
        if !state.has_tried_at_last_depth() && !last.cut_short {
            return Some(StopReason::NoIdeas);
        }
        if last.beam.is_empty()
            && !last.cut_short
            && state.limits.stop_on_empty_frontier
            && state.user_ideas.is_none()
        {
            return Some(StopReason::EmptyFrontier);
        }
    }
    if state.depth.0 >= state.depth_limit() {
        return Some(StopReason::MaxDepth);
    }
    out_of_evals.then_some(StopReason::MaxEvals)
}

/// Judges and ranks the tree's evals of the open depth, and selects its beam.
pub(super) fn close_depth_event(state: &State) -> Event {
    let mut verdicts: Vec<(EvalId, GateVerdict)> = Vec::new();
    let mut contenders = Vec::new();
    for eval in state.open_evals().iter().filter(|eval| eval.group.is_tree()) {
        let Stage::Scored(measured) = &eval.stage else { continue };
        let Candidate { files_changed, approval, .. } = measured.work;
        let verdict = judge_candidate(&measured.scored, files_changed, approval, &state.settings);
        let second = measured.work.tree.as_ref().is_some_and(|tree| state.is_tree_kept(tree));
        if verdict.has_passed() && !second {
            contenders.push((**measured).clone().into_ranked(eval.id));
        }
        verdicts.push((eval.id, verdict));
    }
    let beam = rank::select_beam(contenders.into_iter(), state.max_promoted());
    Event::DepthClosed { depth: state.depth, verdicts, beam, cut_short: is_cut_short(state) }
}

/// Returns true if the budget left ideas or nodes of the open depth untried or unfinished. Missing
/// control evals do not matter to the tree.
fn is_cut_short(state: &Facts) -> bool {
    let unfinished = |eval: &Eval| {
        eval.group.is_tree()
            && matches!(
                eval.stage,
                Stage::Queued | Stage::Implementing(_) | Stage::Implemented(_) | Stage::Sweeping(_)
            )
    };
    let lacks_ideas = |node: &Node| match node.expansion_at(state.depth).map(|e| &e.ideas) {
        None | Some(ExpansionIdeas::Asked) => true,
        Some(ExpansionIdeas::Proposed { untried, .. }) => !untried.is_empty(),
        Some(ExpansionIdeas::Failed { .. }) => false,
    };
    let mut frontier = state.frontier.iter().filter_map(|id| state.node(*id));
    frontier.any(lacks_ideas) || state.open_evals().iter().any(unfinished)
}
