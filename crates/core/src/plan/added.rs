//! Where an idea of the user's goes, and when: pure, so that who asks first (a command) and who decides (the loop) agree.

use super::{close, tried_before};
use crate::event::Stop;
use crate::facts::{Facts, Node, Phase};
use crate::group::IdeaSource;
use crate::id::{NodeId, Place, Sha256};
use crate::state::State;

/// What becomes of an idea of the user's, as things stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It can be tried on this node now.
    On(NodeId),
    /// Its turn has not come: ideas are still asked for, or there is no open depth.
    Later,
    /// It will never be tried, and this is why.
    Never(String),
}

/// What becomes of an idea of the user's for this node, or for the first of the frontier.
///
/// It waits until every node of the open depth, and the control group, has its own ideas, so that their ids do not depend on
/// when it came.
#[must_use]
pub fn fit(state: &State, wanted: Option<NodeId>, fingerprint: &Sha256) -> Fit {
    match refusal(state, wanted, fingerprint) {
        Some(why) => Fit::Never(why),
        None if state.phase != Phase::Searching || state.waits_for_ideas() => Fit::Later,
        None => target(state, wanted).map_or(Fit::Later, Fit::On),
    }
}

fn target(facts: &Facts, wanted: Option<NodeId>) -> Option<NodeId> {
    wanted.or_else(|| facts.frontier.first().copied())
}

fn refusal(state: &State, wanted: Option<NodeId>, fingerprint: &Sha256) -> Option<String> {
    match state.phase {
        Phase::Stopped { reason, .. } => return Some(over(reason)),
        Phase::Searching if close::stop(state).is_some() => return close::stop(state).map(over),
        Phase::Measuring | Phase::Promoting { .. } | Phase::Searching => {}
    }
    if let Some(reached) = &state.reached {
        return Some(format!("the budget has no room for it ({})", Stop::from(reached.budget)));
    }
    if state.room() == 0 {
        return Some("the budget of evals has no room for it".to_owned());
    }
    if let Some(node) = wanted.filter(|node| state.node(*node).is_none()) {
        return Some(format!("there is no node `{}`", Place::Node(node)));
    }
    if matches!(state.phase, Phase::Promoting { .. }) {
        // Between two depths nobody knows the next frontier.
        return None;
    }
    let node = target(state, wanted)?;
    if !state.frontier.contains(&node) {
        return Some(format!("`{}` is not in the frontier", Place::Node(node)));
    }
    repeated(state, node, fingerprint)
}

fn over(reason: Stop) -> String {
    format!("the run is over ({reason})")
}

fn repeated(state: &State, node: NodeId, fingerprint: &Sha256) -> Option<String> {
    let tried = tried_before(state, IdeaSource::Node(node));
    let (eval, _) = tried.into_iter().find(|(_, tried)| tried == fingerprint)?;
    Some(format!("it repeats the idea of `{}`", Place::Candidate(eval)))
}

/// The number of the next idea that the user adds to a node, counted from 1.
#[must_use]
pub fn next_number(node: &Node) -> u32 {
    let added = node.expansions.iter().map(|expansion| expansion.added.len()).sum::<usize>();
    u32::try_from(added).unwrap_or(u32::MAX - 1) + 1
}
