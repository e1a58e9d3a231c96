//! Turns a candidate into a node: sets a ref, so that its commit is kept, then makes a worktree.

use crate::brief::PromotionBrief;
use crate::error::RunHalt;
use crate::run_ports::RunPorts;
use treebeam_core::id::CodePlace;
use treebeam_core::plan::StepOutcome;

pub(super) fn promote_candidate(
    brief: &PromotionBrief,
    world: RunPorts<'_>,
) -> Result<StepOutcome, RunHalt> {
    let place = CodePlace::Node(brief.node);
    let kept = world.repo.set_place_ref(place, &brief.commit);
    match kept.and_then(|()| world.repo.checkout_worktree(place, &brief.commit)) {
        Ok(()) => Ok(StepOutcome::Promoted(brief.eval)),
        Err(error) if error.is_interruption() => Err(error.into()),
        Err(error) => Ok(StepOutcome::PromotionFailed { eval: brief.eval, why: error.full_text() }),
    }
}
