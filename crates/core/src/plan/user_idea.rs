//! Placement of a user's idea: which node it is tried on, and when. Pure, so that the command that
//! checks first and the loop that decides agree.

use super::{close, tried_before};
use crate::event::StopReason;
use crate::facts::{Facts, Node, RunPhase};
use crate::group::IdeaSource;
use crate::id::{CodePlace, NodeId, Sha256};
use crate::state::State;

/// Placement of a user's idea in the current state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdeaFit {
    /// Can be tried on this node now.
    On(NodeId),
    /// Has to wait: ideas are still being generated, or no depth is open.
    Later,
    /// Can never be tried, for this reason.
    Never(String),
}

/// Decides the placement of a user's idea for this node, or for the first of the frontier.
///
/// The idea waits until every node of the open depth, and the control group, has its own ideas, so
/// that their ids do not depend on when it came.
#[must_use]
pub fn fit_user_idea(state: &State, wanted: Option<NodeId>, fingerprint: &Sha256) -> IdeaFit {
    match refusal_reason(state, wanted, fingerprint) {
        Some(why) => IdeaFit::Never(why),
        None if state.phase != RunPhase::Searching || state.is_awaiting_ideas() => IdeaFit::Later,
        None => target_node(state, wanted).map_or(IdeaFit::Later, IdeaFit::On),
    }
}

fn target_node(facts: &Facts, wanted: Option<NodeId>) -> Option<NodeId> {
    wanted.or_else(|| facts.frontier.first().copied())
}

fn refusal_reason(state: &State, wanted: Option<NodeId>, fingerprint: &Sha256) -> Option<String> {
    match state.phase {
        RunPhase::Stopped { reason, .. } => return Some(run_over_message(reason)),
        RunPhase::Searching if close::stop_before_depth(state).is_some() => {
            return close::stop_before_depth(state).map(run_over_message);
        }
        RunPhase::Measuring | RunPhase::Promoting { .. } | RunPhase::Searching => {}
    }
    if let Some(reached) = &state.reached_budget {
        return Some(format!(
            "the budget has no room for it ({})",
            StopReason::from(reached.budget)
        ));
    }
    if state.remaining_evals() == 0 {
        return Some("the budget of evals has no room for it".to_owned());
    }
    if let Some(node) = wanted.filter(|node| state.node(*node).is_none()) {
        return Some(format!("there is no node `{}`", CodePlace::Node(node)));
    }
    if matches!(state.phase, RunPhase::Promoting { .. }) {
        // Between two depths the next frontier is not known yet.
        return None;
    }
    let node = target_node(state, wanted)?;
    if !state.frontier.contains(&node) {
        return Some(format!("`{}` is not in the frontier", CodePlace::Node(node)));
    }
    repeat_reason(state, node, fingerprint)
}

fn run_over_message(reason: StopReason) -> String {
    format!("the run is over ({reason})")
}

fn repeat_reason(state: &State, node: NodeId, fingerprint: &Sha256) -> Option<String> {
    let tried = tried_before(state, IdeaSource::Node(node));
    let (eval, _) = tried.into_iter().find(|(_, tried)| tried == fingerprint)?;
    Some(format!("it repeats the idea of `{}`", CodePlace::Candidate(eval)))
}

/// Returns the number of the next idea that the user adds to a node, counted from 1.
#[must_use]
pub fn next_user_idea_number(node: &Node) -> u32 {
    let added = node.expansions.iter().map(|expansion| expansion.added.len()).sum::<usize>();
    u32::try_from(added).unwrap_or(u32::MAX - 1) + 1
}
