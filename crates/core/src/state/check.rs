//! Consistency check of facts that were loaded: the invariants that the rest of the code relies on.

use super::StateError;
use crate::facts::{Eval, Facts, Node, RunPhase, Stage};
use crate::id::{EvalId, NodeId};

const ID_GAPS_MESSAGE: &str = "ids of nodes or evals have gaps";

fn state_error<T>(why: &str) -> Result<T, StateError> {
    Err(StateError::new(why))
}

impl Facts {
    /// Checks the invariants of a run's facts that the rest of the code relies on.
    pub(super) fn check_consistency(&self) -> Result<(), StateError> {
        let nodes = (0..).zip(&self.nodes).all(|(n, node)| node.id == NodeId::new(n));
        if self.nodes.is_empty() || !nodes {
            return state_error(ID_GAPS_MESSAGE);
        }
        for (number, eval) in (1..).zip(self.evals.iter()) {
            self.check_eval(number, &eval)?;
        }
        let rising = |node: &Node| node.parent().is_none_or(|parent| parent < node.id);
        if !self.nodes.iter().all(rising) || self.frontier.iter().any(|id| self.node(*id).is_none())
        {
            return state_error("a node's parent or the frontier does not exist");
        }
        let promoting = usize::from(matches!(self.phase, RunPhase::Promoting { .. }));
        if self.closed.len().checked_sub(promoting) != usize::try_from(self.depth.0).ok() {
            return state_error("the depth is not the one after the closed ones");
        }
        if self.first_open_eval_id() > self.next_eval_id() {
            return state_error("a closed depth has evals that do not exist");
        }
        Ok(())
    }

    fn check_eval(&self, number: u32, eval: &Eval) -> Result<(), StateError> {
        if eval.id != EvalId::new(number) {
            return state_error(ID_GAPS_MESSAGE);
        }
        if self.node(eval.parent).is_none() {
            return state_error("an eval has no parent node");
        }
        let in_tree = eval.parent != NodeId::ROOT || matches!(eval.stage, Stage::Decided(..));
        if !eval.group.is_tree() && in_tree {
            return state_error("an eval of the control group is a part of the tree");
        }
        if let Stage::Superseded(_, by) = eval.stage
            && (by <= eval.id || by >= self.next_eval_id())
        {
            return state_error("an eval was evaluated again, but not after it");
        }
        Ok(())
    }
}
