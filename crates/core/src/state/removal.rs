//! What a user's wish to remove something, and its end, change about the state.

use super::State;
use super::apply::StateError;
use crate::event::Leftover;
use crate::facts::RemovalState;
use crate::id::CodePlace;

impl State {
    pub(super) fn removal_asked(&mut self, leftovers: &[Leftover]) -> Result<(), StateError> {
        for leftover in leftovers {
            if !self.facts.can_be_removed(*leftover) {
                let why = format!("{leftover} is to be removed, but is needed or never was");
                return Err(StateError::new(why));
            }
            self.set_removal(*leftover, Some(RemovalState::Due));
        }
        Ok(())
    }

    /// What a node had is remembered: it is not missing.
    pub(super) fn leftover_discarded(&mut self, leftover: Leftover) -> Result<(), StateError> {
        if !self.facts.leftovers.contains_key(&leftover) {
            let why = format!("{leftover} was removed, but not to be removed");
            return Err(StateError::new(why));
        }
        self.set_removal(leftover, None);
        if matches!(leftover.place, CodePlace::Node(_)) {
            self.facts.removed.insert(leftover);
        }
        self.facts.history.cleanups += 1;
        Ok(())
    }
}
