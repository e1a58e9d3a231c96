//! What answers took, as it stands in the state: by attempt of an eval, by expansion of a node.

use super::{State, Unexpected};
use crate::bill::Bills;
use crate::id::EvalId;

impl State {
    /// Puts down what the answers of an eval's attempt took, in place of what was put down for it when a budget stopped it: an
    /// attempt that goes on counts the same answers again. An attempt that ends later than with its commit asks nobody more.
    pub(super) fn charge(&mut self, id: EvalId, bills: &Bills) -> Result<(), Unexpected> {
        if bills.is_empty() {
            return Ok(());
        }
        let eval = self.eval_mut(id)?;
        let before = usize::try_from(eval.attempt.saturating_sub(1)).unwrap_or(usize::MAX);
        eval.bills.resize(before, Bills::default());
        eval.bills.push(bills.clone());
        Ok(())
    }
}
