//! Audit of twins: the same git tree has the results of the oldest, and one place in a beam.

use super::{AuditFinding, FileReference, RESTORE_ADVICE, artifact_references};
use crate::event::SweepSubject;
use crate::facts::{Candidate, Eval, Facts, RootBaseline, Stage};
use crate::id::{EvalId, GitTree, NodeId};
use crate::rank::RankedCandidate;
use std::collections::BTreeSet;

/// Checks that an eval with another's results has the same git tree and comes after it.
pub(super) fn twin_finding(facts: &Facts, eval: &Eval) -> Option<AuditFinding> {
    let original = eval.candidate()?.same_code_as?;
    (!is_twin(facts, eval, original)).then(|| {
        let what = format!("it is not the same code as {original}, whose results it has");
        AuditFinding::new(what, format!("eval {}", eval.id), RESTORE_ADVICE)
    })
}

fn is_twin(facts: &Facts, eval: &Eval, original: SweepSubject) -> bool {
    // Until its depth closes, the original itself may yield to an older one.
    let is_closed = matches!(eval.stage, Stage::Decided(..));
    let (tree, results) = match original {
        SweepSubject::Root => {
            let root = facts.node(NodeId::ROOT).and_then(|root| facts.baseline_of(root));
            (root_tree(facts).cloned(), root)
        }
        SweepSubject::Eval(id) => {
            let older = facts.eval(id).filter(|older| id < eval.id && older.group == eval.group);
            let results = older.as_ref().and_then(|older| older.results());
            (older.and_then(|older| older.candidate()).and_then(|work| work.tree), results)
        }
    };
    let same_tree = tree.is_some() && eval.candidate().and_then(|work| work.tree) == tree;
    same_tree && (!is_closed || results == eval.results())
}

/// Returns the results of sweeps that were replaced by those of an older twin.
pub(super) fn replaced_references(facts: &Facts) -> impl Iterator<Item = FileReference> {
    let replaced = facts.history.replaced_sweeps.iter();
    replaced.flat_map(|(eval, results)| artifact_references(results, &format!("eval {eval}")))
}

/// Git trees of the root and of the nodes of all depths so far.
pub(super) struct KeptTrees(BTreeSet<GitTree>);

impl KeptTrees {
    pub(super) fn new(facts: &Facts) -> Self {
        Self(root_tree(facts).cloned().into_iter().collect())
    }

    /// Returns true if no node has the candidate's git tree yet.
    pub(super) fn is_new_tree(&self, contender: &RankedCandidate) -> bool {
        contender.tree.as_ref().is_none_or(|tree| !self.0.contains(tree))
    }

    pub(super) fn add_beam(&mut self, facts: &Facts, beam: &[EvalId]) {
        let work = |id: &EvalId| facts.eval(*id).and_then(|eval| eval.candidate());
        self.0.extend(beam.iter().filter_map(work).filter_map(|Candidate { tree, .. }| tree));
    }
}

fn root_tree(facts: &Facts) -> Option<&GitTree> {
    match &facts.baseline {
        RootBaseline::Measured { tree, .. } => tree.as_ref(),
        RootBaseline::Unmeasured | RootBaseline::Refused { .. } => None,
    }
}
