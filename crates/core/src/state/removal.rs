//! Removals in the state: the user's request to remove something, and its completion.

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

    /// Records a removal. What a node had is remembered, so that it does not count as missing.
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
