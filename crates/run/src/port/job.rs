//! The records of a job's commands and of its resources, as the executor reports them.

use serde::{Deserialize, Serialize};
use std::fmt;
use treebeam_core::event::FailureKind;

/// The purpose of a command of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobStage {
    /// Prepares the worktree.
    Setup,
    /// Tests the candidate.
    Tests,
    /// Measures the candidate.
    Sweep,
}

impl JobStage {
    /// Returns the name of the file with the command's output.
    #[must_use]
    pub const fn log_file(self) -> &'static str {
        match self {
            Self::Setup => "setup.log",
            Self::Tests => "tests.log",
            Self::Sweep => "sweep.log",
        }
    }

    /// Returns the kind of failure of an eval when such a command fails.
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

/// A command of a job that ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandRecord {
    /// Purpose of the command.
    pub stage: JobStage,
    /// Exit code, if it exited.
    pub exit_code: Option<i32>,
    /// Signal that ended the command, if one did.
    pub signal: Option<i32>,
    /// True if the command was ended at its time limit.
    pub timed_out: bool,
    /// Duration in seconds.
    pub seconds: f64,
}

/// Resources that a job used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobUsage {
    /// Wall-clock time.
    pub wall_seconds: f64,
    /// Processor time, where that is known.
    pub cpu_seconds: Option<f64>,
    /// Largest memory of one of its processes, where that is known.
    pub peak_memory_bytes: Option<u64>,
}
