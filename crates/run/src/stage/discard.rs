//! Removes what is no longer needed. What cannot be removed is no failure of the run: it is tried again later.

use crate::brief::ForDiscard;
use crate::port::World;
use treebeam_core::event::LeftoverKind;
use treebeam_core::id::Place;
use treebeam_core::plan::Outcome;

pub(super) fn discard(brief: &ForDiscard, world: World<'_>) -> Outcome {
    let leftover = brief.leftover;
    let removed = match (leftover.kind, leftover.place) {
        (LeftoverKind::Dir, Place::Candidate(eval)) => world.files.remove_submissions(eval),
        _ => world.repo.discard(leftover, brief.attempt),
    };
    match removed {
        Ok(()) => Outcome::Discarded(leftover),
        Err(error) => Outcome::DiscardFailed { leftover, why: error.in_full() },
    }
}
