//! Turns a candidate into a node: its ref first, so that its commit is never unreachable, then a fresh worktree.

use crate::brief::ForPromotion;
use crate::port::World;
use treebeam_core::id::Place;
use treebeam_core::plan::Outcome;

pub(super) fn promote(brief: &ForPromotion, world: World<'_>) -> Outcome {
    let place = Place::Node(brief.node);
    let kept = world.repo.keep(place, &brief.commit);
    match kept.and_then(|()| world.repo.checkout(place, &brief.commit)) {
        Ok(()) => Outcome::Promoted(brief.eval),
        Err(error) => Outcome::PromotionFailed { eval: brief.eval, why: error.in_full() },
    }
}
