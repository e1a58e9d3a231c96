//! The port to protected inputs: the user's own files that are linked into each worktree. A sweep
//! can write to them, so they are checked again after it.

use super::{PortError, SilentUser};
use treebeam_core::id::{RunPath, Sha256};
use treebeam_core::root_checks::RecordedInputs;

/// The port to inputs: files outside of git, linked into each worktree, fixed for candidates.
pub trait InputFiles: Sync {
    /// Lists the inputs after the root's sweep, by its job's folder; `None` if there are none.
    ///
    /// # Errors
    /// When one of them cannot be read.
    fn list_inputs(&self, root_job: &RunPath) -> Result<Option<InputList>, PortError>;

    /// Returns the changed inputs, as far as they are known, or `None` if all are unchanged.
    ///
    /// # Errors
    /// When one of them cannot be read, or the list of them is gone.
    fn find_changed_inputs(&self, since: &RecordedInputs)
    -> Result<Option<Vec<String>>, PortError>;
}

/// The list of inputs as a document, which is kept beside the root's results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputList {
    /// The document.
    pub bytes: Vec<u8>,
    /// Digest of the document.
    pub sha256: Sha256,
}

impl InputFiles for SilentUser {
    fn list_inputs(&self, _: &RunPath) -> Result<Option<InputList>, PortError> {
        Ok(None)
    }
    fn find_changed_inputs(&self, _: &RecordedInputs) -> Result<Option<Vec<String>>, PortError> {
        Ok(None)
    }
}
