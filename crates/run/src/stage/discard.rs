//! Removes worktrees, refs and files that are no longer needed. A failed removal is no failure of
//! the run: it is tried again later.

use crate::brief::DiscardBrief;
use crate::error::RunHalt;
use crate::port::{FileStore, Repo};
use treebeam_core::event::LeftoverKind;
use treebeam_core::id::CodePlace;
use treebeam_core::plan::StepOutcome;

pub(crate) fn discard_leftover(
    brief: &DiscardBrief,
    repo: &dyn Repo,
    files: &dyn FileStore,
) -> Result<StepOutcome, RunHalt> {
    let leftover = brief.leftover;
    let removed = match (leftover.kind, leftover.place) {
        (LeftoverKind::Dir, CodePlace::Candidate(eval)) => files.remove_submissions(eval),
        _ => repo.discard_leftover(leftover, brief.attempt),
    };
    match removed {
        Ok(()) => Ok(StepOutcome::Discarded(leftover)),
        Err(error) if error.is_interruption() => Err(error.into()),
        Err(error) => Ok(StepOutcome::DiscardFailed { leftover, why: error.full_text() }),
    }
}
