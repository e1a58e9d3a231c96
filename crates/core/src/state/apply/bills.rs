//! Bills in the state: by attempt of an eval. Those of expansions are set with their ideas.

use super::{State, StateError};
use crate::bill::RoleBills;
use crate::id::EvalId;

impl State {
    /// Sets the bills of an eval's current attempt, replacing those from when a budget stopped it:
    /// an attempt that continues counts the same replies again. After its commit an attempt calls
    /// no more agents.
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
