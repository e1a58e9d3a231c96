//! Removes the leftovers of a run that is not driven: one after the other, each recorded. It starts
//! nothing else of the run, and does not wait for the due time of another try.

use crate::brief;
use crate::error::RunHalt;
use crate::port::{CheckpointKind, FileStore, Journal, Repo};
use crate::stage::discard;
use jiff::Timestamp;
use treebeam_core::event::{Event, Leftover};
use treebeam_core::plan::{self, StepOutcome};
use treebeam_core::state::State;

/// The ports that removing needs.
#[derive(Clone, Copy)]
pub struct RemovalPorts<'a> {
    /// The user's repository.
    pub repo: &'a dyn Repo,
    /// The run's files.
    pub files: &'a dyn FileStore,
    /// Current time.
    pub now: Timestamp,
}

/// Records the requested removals, then removes these leftovers and all overdue ones. `watch` is
/// called with each outcome.
///
/// # Errors
/// When the record cannot be written. A failed removal is deferred, and no error.
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
