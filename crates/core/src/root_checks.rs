//! Checks of candidates against the state that the root's own sweep left: tracked files and inputs.
//! Records only.

use crate::id::Sha256;
use serde::{Deserialize, Serialize};

/// Checks of candidates' sweeps that follow from the root's own sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootChecks {
    /// Tracked files that the root's own sweep changed: those of candidates may change them too,
    /// and the files are restored.
    pub rewritten: Vec<String>,
    /// Inputs that the recorded digest covers.
    pub inputs: InputScope,
}

/// Set of inputs that must stay as they were when the root was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputScope {
    /// Inputs that a glob of `protect` matches, as in older runs.
    Protected,
    /// Everything in `inputs`, except caches and what the root's own sweep wrote.
    All,
}

/// Recorded state of the inputs at the time the root was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedInputs {
    /// Digest of all inputs in scope.
    pub sha256: Sha256,
    /// Set of inputs that the digest covers.
    pub scope: InputScope,
}
