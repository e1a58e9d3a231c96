//! How far candidates are held to the state that the root's own sweep left: tracked files and inputs. It only records.

use crate::id::Sha256;
use serde::{Deserialize, Serialize};

/// Checks that candidates' sweeps get, as they follow from the root's own sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootChecks {
    /// Tracked files that the root's own sweep left changed: those of candidates may do so too, and the files are restored.
    pub rewritten: Vec<String>,
    /// Which inputs the recorded digest is of.
    pub inputs: InputScope,
}

/// Which inputs must stay as they were when the root was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputScope {
    /// Those that a glob of `protect` matches, as older runs have it.
    Protected,
    /// All that lay in `inputs`, but for caches and what the root's own sweep wrote.
    All,
}

/// The inputs as they were when the root was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedInputs {
    /// The digest of all of them.
    pub sha256: Sha256,
    /// Which they are.
    pub scope: InputScope,
}
