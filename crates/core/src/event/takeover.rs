//! Takeover of a run: the process that had it, and why it could be taken.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Process that ran a run, as it reported itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunnerProcess {
    /// Id of the process.
    pub pid: u32,
    /// Name of its machine.
    pub hostname: String,
    /// Time since which it had the run.
    pub created_at: Timestamp,
    /// Time of its last heartbeat.
    pub last_heartbeat_at: Timestamp,
}

/// Reason why a run could be taken from its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TakeoverReason {
    /// The process ran on this machine and is dead.
    OwnerDead,
    /// The process ran elsewhere and sent no heartbeat for too long.
    HeartbeatStale,
    /// The process ran elsewhere and the user forced the takeover.
    Forced,
}

impl fmt::Display for TakeoverReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OwnerDead => "which is dead",
            Self::HeartbeatStale => "which was silent for too long",
            Self::Forced => "by force",
        })
    }
}
