//! Twins: candidates with the same git tree, which share the results of one sweep. Commands, number
//! of configurations and inputs are fixed for a run, so one sweep measures all of them. The oldest
//! that was measured is the original, and the others take its results.
//!
//! An original always has a lower id. A twin with a higher id may have been swept before the lower
//! one was known; it takes the original's results before its depth closes, so that the record does
//! not depend on the order of finishing. Tree and control group are separate, and a rerun on
//! request is always swept.

use super::State;
use crate::event::SweepSubject;
use crate::evidence::Artifact;
use crate::facts::{Candidate, CandidateFate, Eval, RootBaseline, Stage};
use crate::group::EvalGroup;
use crate::id::{EvalId, GitTree, NodeId};
use std::borrow::Cow;

/// Key that orders candidates by group and git tree.
pub(super) type TwinKey = (EvalGroup, [u8; 20], EvalId);

/// Returns the key of an eval, if it has a git tree that counts.
pub(super) fn twin_key(eval: &Eval) -> Option<TwinKey> {
    Some((eval.group, candidate_tree(eval)?.leading_bytes(), eval.id))
}

impl State {
    /// Returns the subject whose results replace an eval's own sweep: the root, or the oldest
    /// measured eval with the same git tree.
    #[must_use]
    pub fn original_of(&self, eval: &Eval) -> Option<SweepSubject> {
        let original = if self.has_root_tree(eval) {
            SweepSubject::Root
        } else {
            SweepSubject::Eval(self.older_twins(eval).find(|twin| is_measured(twin))?.id)
        };
        (!self.is_rerun(eval.id)).then_some(original)
    }

    /// Returns true if an eval is not swept now, because an older twin is measured or will be.
    #[must_use]
    pub fn is_waiting_for_twin(&self, id: EvalId) -> bool {
        let has_twin = |eval| self.has_root_tree(eval) || self.older_twins(eval).next().is_some();
        self.unpacked_eval(id).is_some_and(has_twin) && !self.is_rerun(id)
    }

    /// Returns the evals that wait to be swept, but can be scored by their original's results.
    pub(crate) fn evals_measured_by_twin(&self) -> impl Iterator<Item = EvalId> {
        self.implemented_evals().iter().copied().filter(|id| {
            self.unpacked_eval(*id).is_some_and(|eval| self.original_of(eval).is_some())
        })
    }

    /// Returns the scored evals of the open depth whose results are not those of their original.
    pub(crate) fn evals_yielding_to_twin(&self) -> impl Iterator<Item = EvalId> {
        let yields = |eval: &&Eval| self.yields_to_twin(eval);
        self.open_evals().iter().filter(yields).map(|eval| eval.id)
    }

    pub(super) fn yields_to_twin(&self, eval: &Eval) -> bool {
        let Stage::Scored(measured) = &eval.stage else { return false };
        let original = self.original_of(eval);
        original.is_some() && original != measured.work.same_code_as
    }

    /// Returns the results of an original, if they may replace this eval's sweep.
    #[must_use]
    pub fn results_for_twin(&self, eval: &Eval, original: SweepSubject) -> Option<Artifact> {
        match original {
            SweepSubject::Root => {
                let root = self.node(NodeId::ROOT).filter(|_| self.has_root_tree(eval))?;
                self.baseline_of(root)
            }
            SweepSubject::Eval(id) => {
                let mut older = self.older_twins(eval).filter(|twin| is_measured(twin));
                older.find(|twin| twin.id == id)?.results()
            }
        }
    }

    /// Returns true if the root or a node has this git tree: another one would be a duplicate.
    pub(crate) fn is_tree_kept(&self, tree: &GitTree) -> bool {
        let key = tree.leading_bytes();
        let range =
            (EvalGroup::Tree, key, EvalId::FIRST)..(EvalGroup::Tree, key, EvalId::new(u32::MAX));
        let mut twins = self.index.twins.range(range).filter_map(|(.., id)| self.eval(*id));
        let kept = |eval: &Eval| {
            matches!(
                eval.stage,
                Stage::Decided(_, _, CandidateFate::Chosen | CandidateFate::Promoted(_))
            )
        };
        self.root_tree() == Some(tree) || twins.any(|eval| kept(&eval))
    }

    fn has_root_tree(&self, eval: &Eval) -> bool {
        candidate_tree(eval).is_some_and(|tree| self.root_tree() == Some(tree))
    }

    fn root_tree(&self) -> Option<&GitTree> {
        match &self.baseline {
            RootBaseline::Measured { tree, .. } => tree.as_ref(),
            RootBaseline::Unmeasured | RootBaseline::Refused { .. } => None,
        }
    }

    /// Returns the evals with the same git tree and a lower id that have not failed, oldest first.
    fn older_twins(&self, eval: &Eval) -> impl Iterator<Item = Cow<'_, Eval>> {
        let key = twin_key(eval);
        let range = key.map(|(group, tree, id)| (group, tree, EvalId::FIRST)..(group, tree, id));
        let older = range.into_iter().flat_map(|range| self.index.twins.range(range));
        older.filter_map(|(.., id)| self.eval(*id))
    }

    /// Returns true if an eval of the open depth is a rerun of a superseded one.
    fn is_rerun(&self, id: EvalId) -> bool {
        let supersedes = |eval: &Eval| matches!(eval.stage, Stage::Superseded(_, by) if by == id);
        self.open_evals().iter().any(supersedes)
    }
}

fn is_measured(eval: &Eval) -> bool {
    matches!(eval.stage, Stage::Scored(_) | Stage::Decided(..))
}

/// Returns the git tree of a candidate that has results or will have some, or else `None`.
fn candidate_tree(eval: &Eval) -> Option<&GitTree> {
    let work: &Candidate = match &eval.stage {
        Stage::Implemented(work) | Stage::Sweeping(work) | Stage::Swept(work, _) => work,
        Stage::Scored(measured) | Stage::Decided(measured, ..) => &measured.work,
        Stage::Queued
        | Stage::Implementing(_)
        | Stage::Failed { .. }
        | Stage::Unfinished { .. }
        | Stage::Superseded(..)
        | Stage::SetAside => return None,
    };
    work.tree.as_ref()
}
