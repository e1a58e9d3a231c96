//! One file per step: each takes its brief and the ports, and says what came of it. None of them sees the state.

pub(crate) mod discard;
mod idea;
mod implement;
mod inputs;
mod promote;
mod score;
pub(crate) mod sweep;

use crate::brief::Brief;
use crate::drive::Halt;
use crate::port::World;
use treebeam_core::plan::Outcome;

/// Does one step; the files that it wrote are on disk before its outcome is known. Nothing comes of a step whose outcome
/// arrives later.
pub(crate) fn perform(brief: &Brief, world: World<'_>) -> Result<Option<Outcome>, Halt> {
    let outcome = match brief {
        Brief::Propose(brief) => Some(idea::propose(brief, world)?),
        Brief::Implement(brief) => Some(implement::implement(brief, world)?),
        Brief::Sweep(brief) => {
            sweep::submit(brief, world)?;
            None
        }
        Brief::Score(brief) => Some(score::score(brief, world)?),
        Brief::Promote(brief) => Some(promote::promote(brief, world)?),
        Brief::Discard(brief) => Some(discard::discard(brief, world.repo, world.files)?),
    };
    world.files.settle()?;
    Ok(outcome)
}
