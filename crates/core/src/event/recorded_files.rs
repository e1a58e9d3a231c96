//! Files of the run: the artifacts that were changed and restored, and the digests of what a step
//! has written. `validate` compares the digests with the disk; no decision reads them, and the
//! state does not hold them.

use super::FileDigest;
use crate::id::{EvalId, RunPath};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The files that a step has written, each with its digest when the step ended.
/// A later record of the same path supersedes an earlier one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesRecorded {
    /// The files, in the order of their paths.
    pub files: Vec<FileDigest>,
}

/// Artifacts that were changed on disk, and restored from the run's own copies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactsRestored {
    /// The artifacts.
    pub artifacts: Vec<RunPath>,
    /// The evals whose sweep was under way: each fails when it ends, whatever it has measured.
    pub suspects: Vec<EvalId>,
    /// When the change was found, on the wall.
    pub at: Timestamp,
}
