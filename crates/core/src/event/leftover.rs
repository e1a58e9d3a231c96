//! What is on disk and no longer needed. How it is removed is not said here.

use crate::id::CodePlace;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Something that is on disk and no longer needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Leftover {
    /// Whose.
    pub place: CodePlace,
    /// What.
    pub kind: LeftoverKind,
}

/// What a leftover is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftoverKind {
    /// A worktree.
    Worktree,
    /// A ref.
    Branch,
    /// What the sweeps of a failed eval wrote.
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
