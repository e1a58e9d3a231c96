//! Events about repeated work, and which failures are worth another attempt.

use super::FailureKind;
use crate::id::{Depth, EvalId, NodeId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Work of the open depth, or of the last one, that the user wants repeated. One event per request,
/// so that it is recorded completely or not at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentBack {
    /// Last depth, if it was closed and is reopened for this: nothing was promoted from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reopened: Option<Depth>,
    /// Failed evals that wait for their next attempt, ordered by id.
    pub retried: Vec<EvalId>,
    /// Retried evals whose existing candidate is swept again without calling agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub swept: Vec<EvalId>,
    /// Scored evals that are evaluated again, ordered by id.
    pub rerun: Vec<EvalRerun>,
    /// Evals that had not begun, in whose place other ideas are requested.
    pub set_aside: Vec<EvalId>,
    /// Nodes that new ideas are requested for, in frontier order.
    pub asked: Vec<NodeId>,
    /// Time of the event.
    pub at: Timestamp,
}

/// Scored eval whose idea is evaluated again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalRerun {
    /// Eval that no longer counts.
    pub of: EvalId,
    /// Id of the idea's new eval.
    pub eval: EvalId,
}

impl FailureKind {
    /// Returns true if another attempt may succeed without a change. After every round ended with
    /// no change or a protected path, a coder has no other reply to this idea.
    #[must_use]
    pub const fn is_worth_a_retry(self) -> bool {
        match self {
            Self::Agent
            | Self::Patch
            | Self::Rejected
            | Self::Setup
            | Self::Tests
            | Self::Sweep
            | Self::Timeout
            | Self::Artifacts
            | Self::NoResults
            | Self::Results => true,
            Self::Protected | Self::Inputs | Self::NoChange => false,
        }
    }
}
