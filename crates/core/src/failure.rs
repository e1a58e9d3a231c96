//! Failure of an eval: the stage it failed at, the kind of failure and a message.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Stage of an eval at which it can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvalStage {
    /// Implementation, from the idea to a commit.
    Implement,
    /// Tests and sweep.
    Sweep,
    /// Comparison of the results.
    Score,
}

impl fmt::Display for EvalStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Implement => "implement",
            Self::Sweep => "sweep",
            Self::Score => "score",
        })
    }
}

/// Stage and reason of an eval's failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalFailure {
    /// Stage at which the eval failed.
    pub stage: EvalStage,
    /// Kind of the failure.
    pub kind: FailureKind,
    /// Description of the failure for people.
    pub message: String,
}

/// Kind of an eval's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The agent gave no usable reply.
    Agent,
    /// No patch of the coder applied.
    Patch,
    /// The reviewer rejected every round.
    Rejected,
    /// The change touches a protected path.
    Protected,
    /// Protected inputs differ from those that the root was measured with. With several sweeps
    /// running, the cause is unknown.
    Inputs,
    /// Artifacts of the run changed during the sweep, due to any of the sweeps that were running.
    Artifacts,
    /// The commit has no changes.
    NoChange,
    /// The worktree could not be set up.
    Setup,
    /// The tests failed.
    Tests,
    /// The sweep failed.
    Sweep,
    /// Replies and commands together exceeded the time limit.
    Timeout,
    /// The sweep left no results.
    NoResults,
    /// The results cannot be read as a sweep.
    Results,
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Agent => "agent",
            Self::Patch => "patch",
            Self::Rejected => "rejected",
            Self::Protected => "protected",
            Self::Inputs => "inputs",
            Self::Artifacts => "artifacts",
            Self::NoChange => "no_change",
            Self::Setup => "setup",
            Self::Tests => "tests",
            Self::Sweep => "sweep",
            Self::Timeout => "timeout",
            Self::NoResults => "no_results",
            Self::Results => "results",
        })
    }
}
