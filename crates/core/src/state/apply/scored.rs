//! What a comparison changes: by the results of the candidate's own sweep, or by those of an older twin with the same git tree.

use super::{State, Unexpected, wanted, wrong};
use crate::event::{LeftoverKind, Subject};
use crate::evidence::Scored;
use crate::facts::{Measured, Stage};
use crate::id::EvalId;
use jiff::Timestamp;

impl State {
    pub(super) fn candidate_scored(
        &mut self,
        id: EvalId,
        scored: &Scored,
        same_code_as: Option<Subject>,
        at: Timestamp,
    ) -> Result<(), Unexpected> {
        let (mut work, own, is_first) = match self.stage(id)? {
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
                return wrong(format!("eval {id} was scored, but not swept"));
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
            return wrong(format!("eval {id} was scored, but neither it nor a twin was swept"));
        };
        self.keep_replaced(id)?;
        work.same_code_as = same_code_as;
        let measured = Measured { work, results, scored: scored.clone(), at };
        self.enter(id, Stage::Scored(Box::new(measured)))?;
        if is_first {
            let removal = wanted(self.facts.reach.keep_rejected_worktrees);
            self.leave_behind(id, LeftoverKind::Worktree, removal);
        }
        Ok(())
    }

    /// Remembers the results of an own sweep that count no more, where a compared eval has any.
    pub(super) fn keep_replaced(&mut self, id: EvalId) -> Result<(), Unexpected> {
        let Stage::Scored(measured) = self.stage(id)? else { return Ok(()) };
        if measured.work.same_code_as.is_none() {
            let results = measured.results.clone();
            self.facts.history.replaced_sweeps.insert(id, results);
        }
        Ok(())
    }
}
