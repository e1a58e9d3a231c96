//! Change of the rules: closed depths stay decided, the new rules decide the whole open depth.

use super::{State, StateError, state_error};
use crate::facts::Stage;
use crate::id::EvalId;
use crate::rules_version::RulesVersion;

impl State {
    pub(super) fn rules_changed(&mut self, rules_version: RulesVersion) -> Result<(), StateError> {
        if rules_version <= self.facts.rules_version {
            return state_error("the rules change, but not to later ones");
        }
        self.facts.rules_version = rules_version;
        let scored = |id: &EvalId| {
            let eval = self.facts.unpacked_eval(*id);
            eval.is_some_and(|eval| matches!(eval.stage, Stage::Scored(_)))
        };
        let open = self.facts.open_evals().iter().map(|eval| eval.id);
        for id in open.filter(scored).collect::<Vec<_>>() {
            self.rescore_eval(id)?;
        }
        Ok(())
    }

    /// Moves a scored eval back to the stage in which its results wait to be scored.
    fn rescore_eval(&mut self, id: EvalId) -> Result<(), StateError> {
        let Stage::Scored(measured) = self.eval_stage(id)? else {
            return state_error(format!("eval {id} is scored anew, but has no score"));
        };
        let (work, results) = (measured.work.clone(), measured.results.clone());
        self.enter_stage(id, Stage::Swept(Box::new(work), Box::new(results)))
    }
}
