//! Who ran a run before, and why it could be taken from that process.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A process that ran a run, as it said itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunnerProcess {
    /// The process.
    pub pid: u32,
    /// The machine.
    pub hostname: String,
    /// Since when.
    pub created_at: Timestamp,
    /// When it last said that it is alive.
    pub last_heartbeat_at: Timestamp,
}

/// Why a run could be taken from the process that had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TakeoverReason {
    /// It ran on this machine, and is dead.
    OwnerDead,
    /// It ran elsewhere, and was silent for too long.
    HeartbeatStale,
    /// It ran elsewhere, and the user said so.
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
