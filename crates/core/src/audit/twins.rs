//! Whether candidates with the same git tree are recorded as twins: with the results of the oldest, and one place in a beam.

use super::{Finding, REPLAYABLE, Reference, of_artifact};
use crate::event::Subject;
use crate::facts::{Baseline, Eval, Facts, Stage, Work};
use crate::id::{EvalId, GitTree, NodeId};
use crate::rank::Contender;
use std::collections::BTreeSet;

/// An eval that has the results of another must have its git tree, and come after it.
pub(super) fn finding(facts: &Facts, eval: &Eval) -> Option<Finding> {
    let original = eval.work()?.same_code_as?;
    (!is_twin(facts, eval, original)).then(|| {
        let what = format!("it is not the same code as {original}, whose results it has");
        Finding::new(what, format!("eval {}", eval.id), REPLAYABLE)
    })
}

fn is_twin(facts: &Facts, eval: &Eval, original: Subject) -> bool {
    // Until its depth closes the original itself may yield to an older one.
    let is_closed = matches!(eval.stage, Stage::Decided(..));
    let (tree, results) = match original {
        Subject::Root => {
            let root = facts.node(NodeId::ROOT).and_then(|root| facts.baseline_of(root));
            (root_tree(facts).cloned(), root)
        }
        Subject::Eval(id) => {
            let older = facts.eval(id).filter(|older| id < eval.id && older.group == eval.group);
            let results = older.as_ref().and_then(|older| older.results());
            (older.and_then(|older| older.work()).and_then(|work| work.tree), results)
        }
    };
    let same_tree = tree.is_some() && eval.work().and_then(|work| work.tree) == tree;
    same_tree && (!is_closed || results == eval.results())
}

/// The results of sweeps that those of an older twin stand in for.
pub(super) fn replaced(facts: &Facts) -> impl Iterator<Item = Reference> {
    let replaced = facts.history.replaced_sweeps.iter();
    replaced.flat_map(|(eval, results)| of_artifact(results, &format!("eval {eval}")))
}

/// The git trees of the root and of the nodes of the depths so far.
pub(super) struct KeptTrees(BTreeSet<GitTree>);

impl KeptTrees {
    pub(super) fn new(facts: &Facts) -> Self {
        Self(root_tree(facts).cloned().into_iter().collect())
    }

    /// Whether there is no node yet with the files of a contender.
    pub(super) fn has_room(&self, contender: &Contender) -> bool {
        contender.tree.as_ref().is_none_or(|tree| !self.0.contains(tree))
    }

    pub(super) fn keep(&mut self, facts: &Facts, beam: &[EvalId]) {
        let work = |id: &EvalId| facts.eval(*id).and_then(|eval| eval.work());
        self.0.extend(beam.iter().filter_map(work).filter_map(|Work { tree, .. }| tree));
    }
}

fn root_tree(facts: &Facts) -> Option<&GitTree> {
    match &facts.baseline {
        Baseline::Measured { tree, .. } => tree.as_ref(),
        Baseline::Unmeasured | Baseline::Refused { .. } => None,
    }
}
