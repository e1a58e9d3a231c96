//! Removes what is no longer needed. What cannot be removed is no failure of the run: it is tried again later.

use crate::brief::ForDiscard;
use crate::drive::Halt;
use crate::port::{Files, Repo};
use treebeam_core::event::LeftoverKind;
use treebeam_core::id::Place;
use treebeam_core::plan::Outcome;

pub(crate) fn discard(
    brief: &ForDiscard,
    repo: &dyn Repo,
    files: &dyn Files,
) -> Result<Outcome, Halt> {
    let leftover = brief.leftover;
    let removed = match (leftover.kind, leftover.place) {
        (LeftoverKind::Dir, Place::Candidate(eval)) => files.remove_submissions(eval),
        _ => repo.discard(leftover, brief.attempt),
    };
    match removed {
        Ok(()) => Ok(Outcome::Discarded(leftover)),
        Err(error) if error.is_interruption() => Err(error.into()),
        Err(error) => Ok(Outcome::DiscardFailed { leftover, why: error.in_full() }),
    }
}
