//! Leftovers: worktrees, refs and folders on disk that are not needed. Removed elsewhere.

use crate::id::CodePlace;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Thing on disk that is no longer needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Leftover {
    /// Node or candidate that it belongs to.
    pub place: CodePlace,
    /// Kind of the leftover.
    pub kind: LeftoverKind,
}

/// Kind of a leftover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftoverKind {
    /// A worktree.
    Worktree,
    /// A ref.
    Branch,
    /// Output of a failed eval's sweeps.
    Dir,
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            LeftoverKind::Worktree => write!(f, "worktree `{}`", self.place.worktree_path()),
            LeftoverKind::Branch => write!(f, "ref `{}`", self.place),
            LeftoverKind::Dir => write!(f, "sweep output of `{}`", self.place),
        }
    }
}
