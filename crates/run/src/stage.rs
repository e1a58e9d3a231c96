//! Runs the stages, one file per step: each turns its brief into an outcome through the ports.

pub(crate) mod discard;
mod idea;
mod implement;
mod imports;
mod inputs;
mod promote;
mod score;
mod sweep;

use crate::brief::{CollectBrief, StepBrief};
use crate::error::RunHalt;
use crate::port::JobEnd;
use crate::run_ports::RunPorts;
use crate::step_files::{StepDigests, StepEnd, with_noting};
use treebeam_core::plan::StepOutcome;

/// Runs one step, and syncs its files. Returns `None` for a step whose outcome arrives later.
pub(crate) fn perform_step(
    brief: &StepBrief,
    world: RunPorts<'_>,
) -> Result<Option<StepEnd>, RunHalt> {
    let digests = StepDigests::default();
    let outcome = with_noting(world, &digests, |world| run_stage(brief, world))?;
    world.files.sync_files()?;
    Ok(outcome.map(|outcome| digests.into_step_end(outcome)))
}

/// Collects the results of an ended job; `None` if the sweep has to be run again.
pub(crate) fn collect_job(
    end: &JobEnd,
    brief: &CollectBrief,
    world: RunPorts<'_>,
) -> Result<Option<StepEnd>, RunHalt> {
    let digests = StepDigests::default();
    let outcome = with_noting(world, &digests, |world| sweep::collect_sweep(end, brief, world))?;
    Ok(outcome.map(|outcome| digests.into_step_end(outcome)))
}

fn run_stage(brief: &StepBrief, world: RunPorts<'_>) -> Result<Option<StepOutcome>, RunHalt> {
    Ok(match brief {
        StepBrief::Propose(brief) => Some(idea::propose_ideas(brief, world)?),
        StepBrief::Implement(brief) => Some(implement::implement_idea(brief, world)?),
        StepBrief::Sweep(brief) => {
            sweep::submit_sweep(brief, world)?;
            None
        }
        StepBrief::Score(brief) => Some(score::score_candidate(brief, world)?),
        StepBrief::Promote(brief) => Some(promote::promote_candidate(brief, world)?),
        StepBrief::Discard(brief) => {
            Some(discard::discard_leftover(brief, world.repo, world.files)?)
        }
    })
}
