//! One file per step: each takes its brief and the ports, and says what came of it. None of them sees the state.

pub(crate) mod discard;
mod idea;
mod implement;
mod imports;
mod inputs;
mod promote;
mod score;
mod sweep;

use crate::brief::{Brief, ForCollecting};
use crate::drive::Halt;
use crate::port::{JobEnd, World};
use crate::step_files::{StepDigests, noting};
use treebeam_core::event::FileDigest;
use treebeam_core::evidence::Artifact;
use treebeam_core::plan::Outcome;

/// The outcome of a step.
#[derive(Clone, Debug)]
pub(crate) struct StepEnd {
    pub(crate) outcome: Outcome,
    /// The digests of the files that it has written.
    pub(crate) files: Vec<FileDigest>,
    /// The artifacts that it found changed.
    pub(crate) changed_artifacts: Vec<Artifact>,
}

/// Does one step; the files that it wrote are on disk before its outcome is known. Nothing comes of a step whose outcome
/// arrives later.
pub(crate) fn perform(brief: &Brief, world: World<'_>) -> Result<Option<StepEnd>, Halt> {
    let digests = StepDigests::default();
    let outcome = noting(world, &digests, |world| outcome_of(brief, world))?;
    world.files.settle()?;
    Ok(outcome.map(|outcome| digests.into_end(outcome)))
}

/// Takes in what an ended job left behind; nothing where the sweep has to be run again.
pub(crate) fn collect(
    end: &JobEnd,
    brief: &ForCollecting,
    world: World<'_>,
) -> Result<Option<StepEnd>, Halt> {
    let digests = StepDigests::default();
    let outcome = noting(world, &digests, |world| sweep::collect(end, brief, world))?;
    Ok(outcome.map(|outcome| digests.into_end(outcome)))
}

fn outcome_of(brief: &Brief, world: World<'_>) -> Result<Option<Outcome>, Halt> {
    Ok(match brief {
        Brief::Propose(brief) => Some(idea::propose(brief, world)?),
        Brief::Implement(brief) => Some(implement::implement(brief, world)?),
        Brief::Sweep(brief) => {
            sweep::submit(brief, world)?;
            None
        }
        Brief::Score(brief) => Some(score::score(brief, world)?),
        Brief::Promote(brief) => Some(promote::promote(brief, world)?),
        Brief::Discard(brief) => Some(discard::discard(brief, world.repo, world.files)?),
    })
}
