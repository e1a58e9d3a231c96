//! Lookup of an eval's stage and start time, for the events that follow.

use super::state_error;
use crate::facts::Stage;
use crate::id::EvalId;
use crate::state::{State, StateError};
use jiff::Timestamp;

impl State {
    pub(super) fn eval_stage(&self, id: EvalId) -> Result<&Stage, StateError> {
        let eval = self.facts.unpacked_eval(id).map(|eval| &eval.stage);
        eval.ok_or_else(|| StateError::new(format!("there is no eval {id} that is not over")))
    }

    pub(super) fn implementing_since(&self, id: EvalId) -> Result<Timestamp, StateError> {
        match self.eval_stage(id)? {
            Stage::Implementing(since) => Ok(*since),
            Stage::Queued
            | Stage::Implemented(_)
            | Stage::Sweeping(_)
            | Stage::Swept(..)
            | Stage::Scored(_)
            | Stage::Decided(..)
            | Stage::Failed { .. }
            | Stage::Unfinished { .. }
            | Stage::Superseded(..)
            | Stage::SetAside => state_error(format!("eval {id} was not being implemented")),
        }
    }

    pub(super) fn eval_started_at(&self, id: EvalId) -> Result<Option<Timestamp>, StateError> {
        Ok(match self.eval_stage(id)? {
            Stage::Implementing(since) => Some(*since),
            Stage::Implemented(work) | Stage::Sweeping(work) | Stage::Swept(work, _) => {
                Some(work.started_at)
            }
            Stage::Scored(measured)
                if self.facts.unpacked_eval(id).is_some_and(|eval| self.yields_to_twin(eval)) =>
            {
                Some(measured.work.started_at)
            }
            Stage::Queued
            | Stage::Scored(_)
            | Stage::Decided(..)
            | Stage::Failed { .. }
            | Stage::Unfinished { .. }
            | Stage::Superseded(..)
            | Stage::SetAside => None,
        })
    }
}
