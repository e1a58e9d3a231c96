//! Events about files: restored artifacts, and digests of what a step wrote. `validate` compares
//! the digests with the disk; no decision reads them, and the state does not hold them.

use super::FileDigest;
use crate::id::{EvalId, RunPath};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Files that a step wrote, with their digests when the step ended. A later record of the same path
/// supersedes an earlier one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesRecorded {
    /// Files, ordered by path.
    pub files: Vec<FileDigest>,
}

/// Artifacts that were changed on disk, and restored from the run's own copies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactsRestored {
    /// Paths of the artifacts.
    pub artifacts: Vec<RunPath>,
    /// Evals whose sweep was running: each fails when it ends, whatever it has measured.
    pub suspects: Vec<EvalId>,
    /// Wall-clock time at which the change was found.
    pub at: Timestamp,
}
