//! Subject of a sweep: the root or a candidate.

use crate::id::{CodePlace, EvalId, NodeId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Code state that a sweep measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SweepSubject {
    /// The root.
    Root,
    /// The candidate of an eval.
    Eval(EvalId),
}

impl SweepSubject {
    /// Returns the place of the subject's worktree.
    #[must_use]
    pub const fn code_place(self) -> CodePlace {
        match self {
            Self::Root => CodePlace::Node(NodeId::ROOT),
            Self::Eval(eval) => CodePlace::Candidate(eval),
        }
    }
}

impl fmt::Display for SweepSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("root"),
            Self::Eval(eval) => write!(f, "e{eval}"),
        }
    }
}
