//! What answers took, as it stands in the state: by attempt of an eval, by expansion of a node.

use super::{State, StateError};
use crate::bill::RoleBills;
use crate::id::EvalId;

impl State {
    /// Puts down what the answers of an eval's attempt took, in place of what was put down for it when a budget stopped it: an
    /// attempt that goes on counts the same answers again. An attempt that ends later than with its commit asks nobody more.
    pub(super) fn charge_attempt(
        &mut self,
        id: EvalId,
        bills: &RoleBills,
    ) -> Result<(), StateError> {
        if bills.is_empty() {
            return Ok(());
        }
        let eval = self.eval_mut(id)?;
        let before = usize::try_from(eval.attempt.saturating_sub(1)).unwrap_or(usize::MAX);
        eval.bills.resize(before, RoleBills::default());
        eval.bills.push(bills.clone());
        Ok(())
    }
}
