//! The end of a depth and the end of a run: gate, rank, beam, stop.

use crate::event::{Event, Intent, Stop};
use crate::facts::{Eval, Expansion, Facts, Ideas, Node, Stage, Work};
use crate::gate::{Verdict, gate};
use crate::group::IdeaSource;
use crate::id::{EvalId, NodeId};
use crate::rank::{self, Contender};
use crate::state::State;

/// Whether nothing of the open depth has begun; a question that a budget stopped has not.
fn is_untouched(state: &State) -> bool {
    let begun = |id: &NodeId| {
        let expansion = state.node(*id).and_then(|node| node.expansion_at(state.depth));
        // Nobody answers any more once the time is over.
        let answered = |expansion: &Expansion| !state.is_late() || expansion.ideas != Ideas::Asked;
        expansion.is_some_and(answered) && !state.is_refused(Intent::Propose(IdeaSource::Node(*id)))
    };
    state.open_evals().is_empty() && !state.frontier.iter().any(begun)
}

/// Why the run ends before the open depth begins, if it does.
pub(super) fn stop(state: &State) -> Option<Stop> {
    if !is_untouched(state) {
        return None;
    }
    if let Some(reached) = &state.reached {
        return Some(reached.budget.into());
    }
    let out_of_evals = state.room() == 0;
    if let Some(last) = state.closed.last() {
        if last.cut_short && out_of_evals {
            return Some(Stop::MaxEvals);
        }
        if last.failed > 0 && state.reach.strict_fail_depth {
            return Some(Stop::StrictDepthFailure);
        }
        if !state.tried_at_last_depth() && !last.cut_short {
            return Some(Stop::NoIdeas);
        }
        if last.beam.is_empty()
            && !last.cut_short
            && state.reach.stop_on_empty_frontier
            && state.given.is_none()
        {
            return Some(Stop::EmptyFrontier);
        }
    }
    if state.depth.0 >= state.depths() {
        return Some(Stop::MaxDepth);
    }
    out_of_evals.then_some(Stop::MaxEvals)
}

/// Gates, ranks and cuts the tree's part of the open depth.
pub(super) fn depth(state: &State) -> Event {
    let mut verdicts: Vec<(EvalId, Verdict)> = Vec::new();
    let mut contenders = Vec::new();
    for eval in state.open_evals().iter().filter(|eval| eval.group.is_tree()) {
        let Stage::Scored(measured) = &eval.stage else { continue };
        let Work { files_changed, approval, .. } = measured.work;
        let verdict = gate(&measured.scored, files_changed, approval, &state.meaning);
        let second = measured.work.tree.as_ref().is_some_and(|tree| state.has_place(tree));
        if verdict.passed() && !second {
            contenders.push(Contender::new(eval.id, (**measured).clone()));
        }
        verdicts.push((eval.id, verdict));
    }
    let beam = rank::beam(contenders.into_iter(), state.promoted_at_most());
    Event::DepthClosed { depth: state.depth, verdicts, beam, cut_short: is_cut_short(state) }
}

/// Whether ideas or whole nodes of the open depth go untried, or not to their end, for want of budget. What the control group
/// lacks does not matter to the tree.
fn is_cut_short(state: &Facts) -> bool {
    let unfinished = |eval: &Eval| {
        eval.group.is_tree()
            && matches!(
                eval.stage,
                Stage::Queued | Stage::Implementing(_) | Stage::Implemented(_) | Stage::Sweeping(_)
            )
    };
    let lacks_ideas = |node: &Node| match node.expansion_at(state.depth).map(|e| &e.ideas) {
        None | Some(Ideas::Asked) => true,
        Some(Ideas::Proposed { untried, .. }) => !untried.is_empty(),
        Some(Ideas::Failed { .. }) => false,
    };
    let mut frontier = state.frontier.iter().filter_map(|id| state.node(*id));
    frontier.any(lacks_ideas) || state.open_evals().iter().any(unfinished)
}
