//! Work that is done again: what the record says of it, and which failures are worth another attempt.

use super::FailureKind;
use crate::id::{Depth, EvalId, NodeId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What the user wanted done again at the open depth, or at the last one. One event for one wish: it is on record whole, or not at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentBack {
    /// The last depth, where it was closed and is open again for this: nothing was promoted from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reopened: Option<Depth>,
    /// Failed evals that wait for their next attempt, in the order of their ids.
    pub retried: Vec<EvalId>,
    /// Those of them whose candidate is swept again as it is: nobody is asked for another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub swept: Vec<EvalId>,
    /// Scored evals that are evaluated again, in the order of their ids.
    pub rerun: Vec<EvalRerun>,
    /// Evals that had not begun, and whose nodes are asked for other ideas in their place.
    pub set_aside: Vec<EvalId>,
    /// The nodes that are asked again, in frontier order.
    pub asked: Vec<NodeId>,
    /// When.
    pub at: Timestamp,
}

/// An idea that is evaluated again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalRerun {
    /// The eval that counts no more.
    pub of: EvalId,
    /// The id that the same idea gets.
    pub eval: EvalId,
}

impl FailureKind {
    /// Whether another attempt may end otherwise by itself. A coder who was told in every round that nothing changes, or
    /// what may not change, has no other answer to this idea.
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
