//! The user's own files that sweeps are given: nothing is measured where the protected ones are not what they were for the
//! root. They are looked at, never changed: only the user can restore them.

use crate::brief::ForInputs;
use crate::drive::Halt;
use crate::port::{PortError, World};
use treebeam_core::event::Subject;

/// How many files are named.
const NAMED: usize = 5;

/// Lets a sweep begin only where the protected inputs are what they were.
pub(super) fn require(inputs: &ForInputs, subject: Subject, world: World<'_>) -> Result<(), Halt> {
    match changed(inputs, world)? {
        None => Ok(()),
        Some(why) => Err(Halt::InputsChanged { subject, why }),
    }
}

/// Why what a job measured says nothing, in words; `failed` is what it says itself of its failure.
pub(super) fn look_over(
    inputs: &ForInputs,
    failed: Option<&str>,
    world: World<'_>,
) -> Result<Option<String>, PortError> {
    let said = failed.map_or_else(String::new, |said| format!("; the job itself: {said}"));
    let own = "they are your own files, and have to be restored";
    Ok(changed(inputs, world)?.map(|why| format!("{why}; {own}{said}")))
}

fn changed(inputs: &ForInputs, world: World<'_>) -> Result<Option<String>, PortError> {
    let Some(since) = &inputs.since else { return Ok(None) };
    let what = "protected inputs are not what they were when the root was measured";
    let in_words = |files: Vec<String>| {
        let names = named(&files);
        let names = if names.is_empty() { names } else { format!(": {names}") };
        format!("{what}{names}{}", sweeping(inputs))
    };
    Ok(world.inputs.changed(since)?.map(in_words))
}

/// Whose sweeps are under way at the same time.
fn sweeping(inputs: &ForInputs) -> String {
    let evals: Vec<String> = inputs.under_way.iter().map(|eval| format!("e{eval}")).collect();
    match evals.as_slice() {
        [] => String::new(),
        evals => format!("; being swept at the same time: {}", evals.join(", ")),
    }
}

/// The first of these paths.
pub(super) fn named(paths: &[String]) -> String {
    let more = paths.len().saturating_sub(NAMED);
    let names: Vec<String> = paths.iter().take(NAMED).map(|path| format!("`{path}`")).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.join(", ") + &more
}
