//! Removes what a run has left behind while nobody drives it: one thing after the other, each recorded. It goes on with
//! nothing else of the run, and does not ask whether it is time for another try.

use crate::brief;
use crate::drive::RunHalt;
use crate::port::{CheckpointKind, FileStore, Journal, Repo};
use crate::stage::discard;
use jiff::Timestamp;
use treebeam_core::event::{Event, Leftover};
use treebeam_core::plan::{self, StepOutcome};
use treebeam_core::state::State;

/// What removing needs of the world.
#[derive(Clone, Copy)]
pub struct RemovalPorts<'a> {
    /// The user's repository.
    pub repo: &'a dyn Repo,
    /// The run's files.
    pub files: &'a dyn FileStore,
    /// What time it is.
    pub now: Timestamp,
}

/// Records what the user asks for beside what is due anyway, then removes all of it. `watch` sees what came of each.
///
/// # Errors
/// When the record cannot be written. What cannot be removed is deferred, and no error.
pub fn remove_leftovers(
    state: &mut State,
    asked: &[Leftover],
    world: RemovalPorts<'_>,
    journal: &mut dyn Journal,
    watch: &mut dyn FnMut(&StepOutcome),
) -> Result<(), RunHalt> {
    if !asked.is_empty() {
        record_event(state, journal, &Event::RemovalAsked { leftovers: asked.to_vec() })?;
    }
    for leftover in plan::removal::overdue_leftovers(state) {
        let Some(brief) = brief::discard_brief(state, leftover) else { continue };
        let outcome = discard::discard_leftover(&brief, world.repo, world.files)?;
        if let Some(event) = plan::accept_outcome(state, &outcome, world.now) {
            record_event(state, journal, &event)?;
        }
        watch(&outcome);
    }
    Ok(journal.write_checkpoint(state, CheckpointKind::End)?)
}

fn record_event(
    state: &mut State,
    journal: &mut dyn Journal,
    event: &Event,
) -> Result<(), RunHalt> {
    state.apply(event)?;
    Ok(journal.append(std::slice::from_ref(event))?)
}
