//! Maintenance of the state's index of evals by stage. Ended evals are not indexed by stage.

use super::StateIndex;
use super::twins::twin_key;
use crate::facts::{Eval, Stage};

impl StateIndex {
    pub(super) fn insert_eval(&mut self, eval: &Eval) {
        self.twins.extend(twin_key(eval));
        match eval.stage {
            Stage::Queued => {
                self.queued.entry(eval.idea_source()).or_default().insert(eval.id);
            }
            Stage::Implementing(_) => drop(self.implementing.insert(eval.id)),
            Stage::Implemented(_) => drop(self.implemented.insert(eval.id)),
            Stage::Sweeping(_) => drop(self.sweeping.insert(eval.id)),
            Stage::Swept(..) => drop(self.swept.insert(eval.id)),
            Stage::Scored(_)
            | Stage::Decided(..)
            | Stage::Failed { .. }
            | Stage::Unfinished { .. }
            | Stage::Superseded(..)
            | Stage::SetAside => {}
        }
    }

    pub(super) fn remove_eval(&mut self, eval: &Eval) {
        if let Some(key) = twin_key(eval) {
            self.twins.remove(&key);
        }
        match eval.stage {
            Stage::Queued => {
                if let Some(waiting) = self.queued.get_mut(&eval.idea_source()) {
                    waiting.remove(&eval.id);
                    if waiting.is_empty() {
                        self.queued.remove(&eval.idea_source());
                    }
                }
            }
            Stage::Implementing(_) => drop(self.implementing.remove(&eval.id)),
            Stage::Implemented(_) => drop(self.implemented.remove(&eval.id)),
            Stage::Sweeping(_) => drop(self.sweeping.remove(&eval.id)),
            Stage::Swept(..) => drop(self.swept.remove(&eval.id)),
            Stage::Scored(_)
            | Stage::Decided(..)
            | Stage::Failed { .. }
            | Stage::Unfinished { .. }
            | Stage::Superseded(..)
            | Stage::SetAside => {}
        }
    }
}
