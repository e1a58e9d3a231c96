//! What the commands of a job did, as the executor tells it.

use serde::{Deserialize, Serialize};
use std::fmt;
use treebeam_core::event::FailureKind;

/// What a command of a job is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobStage {
    /// Prepares the worktree.
    Setup,
    /// Tests the candidate.
    Tests,
    /// Measures it.
    Sweep,
}

impl JobStage {
    /// The file that its output goes to.
    #[must_use]
    pub const fn log_file(self) -> &'static str {
        match self {
            Self::Setup => "setup.log",
            Self::Tests => "tests.log",
            Self::Sweep => "sweep.log",
        }
    }

    /// What it is when such a command fails.
    #[must_use]
    pub const fn failure_kind(self) -> FailureKind {
        match self {
            Self::Setup => FailureKind::Setup,
            Self::Tests => FailureKind::Tests,
            Self::Sweep => FailureKind::Sweep,
        }
    }
}

impl fmt::Display for JobStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Setup => "the setup",
            Self::Tests => "the test command",
            Self::Sweep => "the sweep",
        })
    }
}

/// A command that ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandRecord {
    /// What for.
    pub stage: JobStage,
    /// What it exited with, if it did.
    pub exit_code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// Whether it was ended because its time was over.
    pub timed_out: bool,
    /// How long it took.
    pub seconds: f64,
}

/// What a job has used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobUsage {
    /// Its time on the wall.
    pub wall_seconds: f64,
    /// Its processor time, where that is known.
    pub cpu_seconds: Option<f64>,
    /// The most that one of its processes had, where that is known.
    pub peak_memory_bytes: Option<u64>,
}
