//! What sweeps are given of the user's own files: the inputs, linked into each worktree. A sweep can write to them, so they
//! are looked at again.

use super::{PortError, SilentUser};
use treebeam_core::id::{RunPath, Sha256};
use treebeam_core::root_checks::RecordedInputs;

/// The protected inputs: files that git does not track, that each worktree is given, and that no candidate may change.
pub trait InputFiles: Sync {
    /// Lists what the inputs are once the root's sweep, whose job lies in this folder, has ended; nothing where there are
    /// none.
    ///
    /// # Errors
    /// When one of them cannot be read.
    fn list_inputs(&self, root_job: &RunPath) -> Result<Option<InputList>, PortError>;

    /// Nothing where they are what they were. Otherwise those that are not, as far as that is known.
    ///
    /// # Errors
    /// When one of them cannot be read, or the list of them is gone.
    fn find_changed_inputs(&self, since: &RecordedInputs)
    -> Result<Option<Vec<String>>, PortError>;
}

/// The inputs as a document, which is kept beside the root's results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputList {
    /// The document.
    pub bytes: Vec<u8>,
    /// Its digest.
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
