//! Removes what a run has left behind while nobody drives it: one thing after the other, each recorded. It goes on with
//! nothing else of the run, and does not ask whether it is time for another try.

use crate::brief;
use crate::drive::Halt;
use crate::port::{Checkpoint, Files, Journal, Repo};
use crate::stage::discard;
use jiff::Timestamp;
use treebeam_core::event::{Event, Leftover};
use treebeam_core::plan::{self, Outcome};
use treebeam_core::state::State;

/// What removing needs of the world.
#[derive(Clone, Copy)]
pub struct Clearing<'a> {
    /// The user's repository.
    pub repo: &'a dyn Repo,
    /// The run's files.
    pub files: &'a dyn Files,
    /// What time it is.
    pub now: Timestamp,
}

/// Records what the user asks for beside what is due anyway, then removes all of it. `watch` sees what came of each.
///
/// # Errors
/// When the record cannot be written. What cannot be removed is deferred, and no error.
pub fn clear(
    state: &mut State,
    asked: &[Leftover],
    world: Clearing<'_>,
    journal: &mut dyn Journal,
    watch: &mut dyn FnMut(&Outcome),
) -> Result<(), Halt> {
    if !asked.is_empty() {
        record(state, journal, &Event::RemovalAsked { leftovers: asked.to_vec() })?;
    }
    for leftover in plan::removal::overdue(state) {
        let Some(brief) = brief::for_discard(state, leftover) else { continue };
        let outcome = discard::discard(&brief, world.repo, world.files)?;
        if let Some(event) = plan::accept(state, &outcome, world.now) {
            record(state, journal, &event)?;
        }
        watch(&outcome);
    }
    Ok(journal.checkpoint(state, Checkpoint::End)?)
}

fn record(state: &mut State, journal: &mut dyn Journal, event: &Event) -> Result<(), Halt> {
    state.apply(event)?;
    Ok(journal.append(std::slice::from_ref(event))?)
}
