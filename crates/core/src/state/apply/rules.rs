//! Other rules hold from now on: closed depths stay as they were decided, the open one is decided by the new rules as a whole.

use super::{State, Unexpected, wrong};
use crate::facts::Stage;
use crate::id::EvalId;
use crate::rules_version::RulesVersion;

impl State {
    pub(super) fn rules_changed(&mut self, rules_version: RulesVersion) -> Result<(), Unexpected> {
        if rules_version <= self.facts.rules_version {
            return wrong("the rules change, but not to later ones");
        }
        self.facts.rules_version = rules_version;
        let scored = |id: &EvalId| {
            let eval = self.facts.open_eval(*id);
            eval.is_some_and(|eval| matches!(eval.stage, Stage::Scored(_)))
        };
        let open = self.facts.open_evals().iter().map(|eval| eval.id);
        for id in open.filter(scored).collect::<Vec<_>>() {
            self.score_anew(id)?;
        }
        Ok(())
    }

    /// Moves a scored eval back to where its results wait to be compared.
    fn score_anew(&mut self, id: EvalId) -> Result<(), Unexpected> {
        let Stage::Scored(measured) = self.stage(id)? else {
            return wrong(format!("eval {id} is scored anew, but has no score"));
        };
        let (work, results) = (measured.work.clone(), measured.results.clone());
        self.enter(id, Stage::Swept(Box::new(work), Box::new(results)))
    }
}
