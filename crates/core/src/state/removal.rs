//! What a user's wish to remove something, and its end, change about the state.

use super::State;
use super::apply::Unexpected;
use crate::event::Leftover;
use crate::facts::Removal;
use crate::id::Place;

impl State {
    pub(super) fn removal_asked(&mut self, leftovers: &[Leftover]) -> Result<(), Unexpected> {
        for leftover in leftovers {
            if !self.facts.may_be_removed(*leftover) {
                let why = format!("{leftover} is to be removed, but is needed or never was");
                return Err(Unexpected::new(why));
            }
            self.set_removal(*leftover, Some(Removal::Due));
        }
        Ok(())
    }

    /// What a node had is remembered: it is not missing.
    pub(super) fn discarded(&mut self, leftover: Leftover) -> Result<(), Unexpected> {
        if !self.facts.leftovers.contains_key(&leftover) {
            let why = format!("{leftover} was removed, but not to be removed");
            return Err(Unexpected::new(why));
        }
        self.set_removal(leftover, None);
        if matches!(leftover.place, Place::Node(_)) {
            self.facts.removed.insert(leftover);
        }
        self.facts.history.cleanups += 1;
        Ok(())
    }
}
