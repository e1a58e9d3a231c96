//! Scores in the state: from results of the candidate's own sweep, or of an older twin's.

use super::{State, StateError, removal_unless_kept, state_error};
use crate::event::{LeftoverKind, SweepSubject};
use crate::evidence::CandidateScore;
use crate::facts::{ScoredCandidate, Stage};
use crate::id::EvalId;
use jiff::Timestamp;

impl State {
    pub(super) fn candidate_scored(
        &mut self,
        id: EvalId,
        scored: &CandidateScore,
        same_code_as: Option<SweepSubject>,
        at: Timestamp,
    ) -> Result<(), StateError> {
        let (mut work, own, is_first) = match self.eval_stage(id)? {
            Stage::Swept(work, results) => ((**work).clone(), Some((**results).clone()), true),
            Stage::Implemented(work) => ((**work).clone(), None, true),
            Stage::Scored(measured) => (measured.work.clone(), None, false),
            Stage::Queued
            | Stage::Implementing(_)
            | Stage::Sweeping(_)
            | Stage::Decided(..)
            | Stage::Failed { .. }
            | Stage::Unfinished { .. }
            | Stage::Superseded(..)
            | Stage::SetAside => {
                return state_error(format!("eval {id} was scored, but not swept"));
            }
        };
        let results = match same_code_as {
            None => own,
            Some(original) => {
                let eval = self.eval_mut(id)?.clone();
                self.results_for_twin(&eval, original)
            }
        };
        let Some(results) = results else {
            return state_error(format!(
                "eval {id} was scored, but neither it nor a twin was swept"
            ));
        };
        self.keep_replaced_results(id)?;
        work.same_code_as = same_code_as;
        let measured = ScoredCandidate { work, results, scored: scored.clone(), at };
        self.enter_stage(id, Stage::Scored(Box::new(measured)))?;
        if is_first {
            let removal = removal_unless_kept(self.facts.limits.keep_rejected_worktrees);
            self.add_leftover(id, LeftoverKind::Worktree, removal);
        }
        Ok(())
    }

    /// Records the results of an eval's own sweep before they are replaced by those of a twin.
    pub(super) fn keep_replaced_results(&mut self, id: EvalId) -> Result<(), StateError> {
        let Stage::Scored(measured) = self.eval_stage(id)? else { return Ok(()) };
        if measured.work.same_code_as.is_none() {
            let results = measured.results.clone();
            self.facts.history.replaced_sweeps.insert(id, results);
        }
        Ok(())
    }
}
