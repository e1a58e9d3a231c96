//! One file per step: each takes its brief and the ports, and says what came of it. None of them sees the state.

pub(crate) mod discard;
mod idea;
mod implement;
mod promote;
mod score;
pub(crate) mod sweep;

use crate::brief::Brief;
use crate::drive::Halt;
use crate::port::World;
use treebeam_core::plan::Outcome;

/// Does one step. Nothing comes of a step whose outcome arrives later.
pub(crate) fn perform(brief: &Brief, world: World<'_>) -> Result<Option<Outcome>, Halt> {
    match brief {
        Brief::Propose(brief) => idea::propose(brief, world).map(Some),
        Brief::Implement(brief) => implement::implement(brief, world).map(Some),
        Brief::Sweep(job) => sweep::submit(job, world).map(|()| None),
        Brief::Score(brief) => score::score(brief, world).map(Some),
        Brief::Promote(brief) => promote::promote(brief, world).map(Some),
        Brief::Discard(brief) => discard::discard(brief, world.repo, world.files).map(Some),
    }
}
