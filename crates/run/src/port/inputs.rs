//! What sweeps are given of the user's own files: the inputs, linked into each worktree. A sweep can write to them, so the
//! protected ones are looked at again.

use super::{PortError, Undisturbed};
use treebeam_core::id::Sha256;

/// The protected inputs: files that git does not track, that each worktree is given, and that no candidate may change.
pub trait Inputs: Sync {
    /// What they are now, all of them in one digest; nothing where there are none.
    ///
    /// # Errors
    /// When one of them cannot be read.
    fn fingerprint(&self) -> Result<Option<Sha256>, PortError>;

    /// Nothing where they are what they were when their fingerprint was this. Otherwise those that are not, as far as that
    /// is known.
    ///
    /// # Errors
    /// When one of them cannot be read.
    fn changed(&self, since: &Sha256) -> Result<Option<Vec<String>>, PortError>;
}

impl Inputs for Undisturbed {
    fn fingerprint(&self) -> Result<Option<Sha256>, PortError> {
        Ok(None)
    }
    fn changed(&self, _: &Sha256) -> Result<Option<Vec<String>>, PortError> {
        Ok(None)
    }
}
