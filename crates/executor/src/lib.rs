//! The `local` executor: runs tests and sweeps as local processes that outlive their runner.
//!
//! # Layout
//! - Runner: [`local`] starts jobs, adopts those of an earlier runner, and reports how each ended;
//!   [`mod@leftover_jobs`] ends jobs of a run that is removed.
//! - Job process: [`job`] alone owns deadline, capture, kill and result; [`mod@stage`] runs one
//!   command, [`mod@results`] takes the CSV.
//! - Shared files in the submission's folder: [`mod@spec`] describes the job, [`mod@claim`] is its
//!   lock, [`mod@limit`] its time limit, [`mod@job_result`] its result.
//! - Inputs: [`protected`] detects changed inputs by a [`mod@listing`].
//! - Other executors: [`user_baseline`] supplies existing results of the root, [`mod@in_place`]
//!   runs jobs in the user's own worktree.

mod claim;
mod in_place;
pub mod job;
mod job_result;
mod leftover_jobs;
mod limit;
mod listing;
pub mod local;
pub mod protected;
mod results;
mod spec;
mod stage;
#[cfg(unix)]
#[path = "unix.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;
pub mod user_baseline;

pub use in_place::InPlaceExecutor;
pub use job::JobError;
pub use leftover_jobs::{LeftoverJob, find_leftover_jobs, withdraw_jobs};
pub use local::{LocalExecutor, LocalExecutorConfig};
pub use protected::ProtectedInputs;
pub use spec::JOB_SPEC_FILE;
pub use user_baseline::{UserBaseline, UserBaselineExecutor};

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;
use treebeam_core::measure::VariableName;
use treebeam_process::PASSED_VARIABLES;
use treebeam_process::TreeMarker;

/// Time between the request to end and the kill of a job, unless configured otherwise.
pub const DEFAULT_JOB_GRACE: Duration = Duration::from_secs(5);

/// Returns the variables that commands get: the generally passed ones and those that the user
/// names, if they are set.
#[must_use]
pub fn collect_variables(
    passed: &[VariableName],
    find: impl Fn(&str) -> Option<OsString>,
) -> Vec<(OsString, OsString)> {
    let names = PASSED_VARIABLES.into_iter().chain(passed.iter().map(VariableName::as_str));
    names.filter_map(|name| Some((name.into(), find(name)?))).collect()
}

/// Returns the marker of all processes of a job: its folder, which no other job shares.
fn job_marker(folder: &Path) -> TreeMarker {
    TreeMarker::new(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_or_named_is_passed_on() {
        let all = ["PATH", "OPENAI_API_KEY", "CUDA", "HOME", "LD_PRELOAD"];
        let find = |name: &str| all.contains(&name).then(|| OsString::from("x"));
        let named =
            ["CUDA", "MISSING"].map(|name| VariableName::try_from(name.to_owned()).unwrap());
        let found: Vec<OsString> =
            collect_variables(&named, find).into_iter().map(|(name, _)| name).collect();
        assert_eq!(found, ["PATH", "HOME", "CUDA"]);
    }
}
