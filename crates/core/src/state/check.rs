//! Whether facts that were read can be those of a run: what the rest of the code relies on.

use super::Unexpected;
use crate::facts::{Eval, Facts, Node, Phase, Stage};
use crate::id::{EvalId, NodeId};

fn wrong<T>(why: &str) -> Result<T, Unexpected> {
    Err(Unexpected::new(why))
}

impl Facts {
    /// Whether the facts can be those of a run: what the rest of the code relies on.
    pub(super) fn check(&self) -> Result<(), Unexpected> {
        let nodes = (0..).zip(&self.nodes).all(|(n, node)| node.id == NodeId::new(n));
        let evals = (1..).zip(&self.evals).all(|(n, eval)| eval.id == EvalId::new(n));
        if self.nodes.is_empty() || !nodes || !evals {
            return wrong("ids of nodes or evals have gaps");
        }
        if self.evals.iter().any(|eval| self.node(eval.parent).is_none()) {
            return wrong("an eval has no parent node");
        }
        let astray = |eval: &Eval| {
            !eval.group.is_tree()
                && (eval.parent != NodeId::ROOT || matches!(eval.stage, Stage::Decided(..)))
        };
        if self.evals.iter().any(astray) {
            return wrong("an eval of the control group is a part of the tree");
        }
        let orphan = |eval: &Eval| matches!(eval.stage, Stage::Superseded(_, by) if by <= eval.id || self.eval(by).is_none());
        if self.evals.iter().any(orphan) {
            return wrong("an eval was evaluated again, but not after it");
        }
        let rising = |node: &Node| node.parent().is_none_or(|parent| parent < node.id);
        if !self.nodes.iter().all(rising) || self.frontier.iter().any(|id| self.node(*id).is_none())
        {
            return wrong("a node's parent or the frontier does not exist");
        }
        let promoting = usize::from(matches!(self.phase, Phase::Promoting { .. }));
        if self.closed.len().checked_sub(promoting) != usize::try_from(self.depth.0).ok() {
            return wrong("the depth is not the one after the closed ones");
        }
        if self.first_open_eval() > self.next_eval() {
            return wrong("a closed depth has evals that do not exist");
        }
        Ok(())
    }
}
