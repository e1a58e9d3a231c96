//! Turns a candidate into a node: its ref first, so that its commit is never unreachable, then a fresh worktree.

use crate::brief::ForPromotion;
use crate::drive::Halt;
use crate::port::World;
use treebeam_core::id::Place;
use treebeam_core::plan::Outcome;

pub(super) fn promote(brief: &ForPromotion, world: World<'_>) -> Result<Outcome, Halt> {
    let place = Place::Node(brief.node);
    let kept = world.repo.keep(place, &brief.commit);
    match kept.and_then(|()| world.repo.checkout(place, &brief.commit)) {
        Ok(()) => Ok(Outcome::Promoted(brief.eval)),
        Err(error) if error.is_interruption() => Err(error.into()),
        Err(error) => Ok(Outcome::PromotionFailed { eval: brief.eval, why: error.in_full() }),
    }
}
