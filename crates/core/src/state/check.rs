//! Whether facts that were read can be those of a run: what the rest of the code relies on.

use super::Unexpected;
use crate::facts::{Eval, Facts, Node, Phase, Stage};
use crate::id::{EvalId, NodeId};

const GAPS: &str = "ids of nodes or evals have gaps";

fn wrong<T>(why: &str) -> Result<T, Unexpected> {
    Err(Unexpected::new(why))
}

impl Facts {
    /// Whether the facts can be those of a run: what the rest of the code relies on.
    pub(super) fn check(&self) -> Result<(), Unexpected> {
        let nodes = (0..).zip(&self.nodes).all(|(n, node)| node.id == NodeId::new(n));
        if self.nodes.is_empty() || !nodes {
            return wrong(GAPS);
        }
        for (number, eval) in (1..).zip(self.evals.iter()) {
            self.check_eval(number, &eval)?;
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

    fn check_eval(&self, number: u32, eval: &Eval) -> Result<(), Unexpected> {
        if eval.id != EvalId::new(number) {
            return wrong(GAPS);
        }
        if self.node(eval.parent).is_none() {
            return wrong("an eval has no parent node");
        }
        let in_tree = eval.parent != NodeId::ROOT || matches!(eval.stage, Stage::Decided(..));
        if !eval.group.is_tree() && in_tree {
            return wrong("an eval of the control group is a part of the tree");
        }
        if let Stage::Superseded(_, by) = eval.stage
            && (by <= eval.id || by >= self.next_eval())
        {
            return wrong("an eval was evaluated again, but not after it");
        }
        Ok(())
    }
}
