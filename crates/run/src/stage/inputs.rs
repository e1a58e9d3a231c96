//! Checks that protected inputs are as they were for the root, before and after each sweep. They
//! are never changed here: only the user can restore them.

use crate::brief::InputsBrief;
use crate::error::RunHalt;
use crate::port::PortError;
use crate::run_ports::RunPorts;
use treebeam_core::event::SweepSubject;

/// Largest number of files that a message names.
const MAX_NAMED_FILES: usize = 5;

/// Returns an error unless the protected inputs are as they were for the root.
pub(super) fn require_unchanged(
    inputs: &InputsBrief,
    subject: SweepSubject,
    world: RunPorts<'_>,
) -> Result<(), RunHalt> {
    match describe_changed_inputs(inputs, world)? {
        None => Ok(()),
        Some(why) => Err(RunHalt::InputsChanged { subject, why }),
    }
}

/// Describes why a job's results do not count; `failed` is the job's own message of its failure.
pub(super) fn explain_void_result(
    inputs: &InputsBrief,
    failed: Option<&str>,
    world: RunPorts<'_>,
) -> Result<Option<String>, PortError> {
    let said = failed.map_or_else(String::new, |said| format!("; the job itself: {said}"));
    let own = "they are your own files, and have to be restored";
    Ok(describe_changed_inputs(inputs, world)?.map(|why| format!("{why}; {own}{said}")))
}

fn describe_changed_inputs(
    inputs: &InputsBrief,
    world: RunPorts<'_>,
) -> Result<Option<String>, PortError> {
    let Some(since) = &inputs.since else { return Ok(None) };
    let what = "protected inputs are not what they were when the root was measured";
    let in_words = |files: Vec<String>| {
        let names = name_first_files(&files);
        let names = if names.is_empty() { names } else { format!(": {names}") };
        format!("{what}{names}{}", describe_other_sweeps(inputs))
    };
    Ok(world.inputs.find_changed_inputs(since)?.map(in_words))
}

/// Lists the evals whose sweeps run at the same time.
fn describe_other_sweeps(inputs: &InputsBrief) -> String {
    let evals: Vec<String> = inputs.under_way.iter().map(|eval| format!("e{eval}")).collect();
    match evals.as_slice() {
        [] => String::new(),
        evals => format!("; being swept at the same time: {}", evals.join(", ")),
    }
}

/// Names the first of these paths.
pub(super) fn name_first_files(paths: &[String]) -> String {
    let more = paths.len().saturating_sub(MAX_NAMED_FILES);
    let names: Vec<String> =
        paths.iter().take(MAX_NAMED_FILES).map(|path| format!("`{path}`")).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.join(", ") + &more
}
