//! The `local` executor: tests and sweeps as processes of this machine that go on without whoever started them.
//!
//! # Layout
//! [`local`] is the runner's side: it starts jobs, finds those of a runner before, and says how
//! each ended. [`job`] is the process of one job: it alone owns deadline, capture, kill and result.
//! They share files in the submission's folder and nothing else: `spec` is what is to be done,
//! `claim` is who does it, `limit` is how long that may take, `job_result` is what became of it.
//! `stage` runs one command, `results` looks for the CSV, `inputs` links what git does not track,
//! for agents too, [`protected`] sees whether anybody has changed what of that no candidate may, by
//! a `listing`. [`user_baseline`] has results that are there already. [`InPlaceExecutor`] lets jobs
//! run in the user's own worktree. `leftover_jobs` ends jobs whose run is to go.

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

/// How long what is asked to end has until it is killed, where nobody says otherwise.
pub const DEFAULT_JOB_GRACE: Duration = Duration::from_secs(5);

/// The variables that commands get: what any program may know, and what the user names, as far as they are found.
#[must_use]
pub fn collect_variables(
    passed: &[VariableName],
    find: impl Fn(&str) -> Option<OsString>,
) -> Vec<(OsString, OsString)> {
    let names = PASSED_VARIABLES.into_iter().chain(passed.iter().map(VariableName::as_str));
    names.filter_map(|name| Some((name.into(), find(name)?))).collect()
}

/// What all that a job starts is known by: its folder, which is no other job's.
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
