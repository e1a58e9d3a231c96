//! Lists, sets and deletes the run's refs, `refs/heads/tree/<run>/…`. It writes no others.

use super::GitRepo;
use std::path::{Path, PathBuf};
use treebeam_core::id::{CodePlace, Commit, RunId};
use treebeam_run::port::PortError;

/// Returns the name of the ref that names the last line of this run's journal.
#[must_use]
pub fn journal_ref(run: &RunId) -> String {
    format!("refs/treebeam/{run}")
}

/// Returns true if the repository keeps refs in reftables, where only git can read and write
/// `HEAD`.
pub(super) fn has_reftable(common_dir: &Path) -> bool {
    common_dir.join("reftable").is_dir()
}

impl GitRepo {
    /// Returns the refs of this run as names below `refs/heads/` with commits, sorted by name.
    ///
    /// # Errors
    /// When git fails.
    pub fn list_refs(&self) -> Result<Vec<(String, Commit)>, PortError> {
        self.list_refs_below(&format!("refs/heads/tree/{}/", self.run))
    }

    /// Returns a branch whose name prevents a new run of this name from having refs.
    ///
    /// # Errors
    /// When git fails.
    pub fn find_blocking_branch(&self) -> Result<Option<String>, PortError> {
        let own = format!("tree/{}", self.run);
        let below = format!("{own}/");
        let blocks = |name: &String| name == "tree" || *name == own || name.starts_with(&below);
        let mut names = self.list_refs_below("refs/heads/tree")?.into_iter().map(|(name, _)| name);
        Ok(names.find(blocks))
    }

    pub(super) fn list_refs_below(&self, folder: &str) -> Result<Vec<(String, Commit)>, PortError> {
        let format = "--format=%(refname:lstrip=2) %(objectname)";
        let call =
            self.user.git.sealed_call(&self.shared_target(), &["for-each-ref", format, folder]);
        let text = call.with_subject(&self.run).keep_stdout(64 << 20).run_checked()?.full_text()?;
        let read = |line: &str| {
            let (name, commit) = line.split_once(' ')?;
            Some((name.to_owned(), commit.parse().ok()?))
        };
        Ok(text.lines().filter_map(read).collect())
    }

    pub(super) fn set_ref(&self, place: CodePlace, commit: &Commit) -> Result<(), PortError> {
        let reference = self.full_ref_name(place);
        let arguments = ["update-ref", "--no-deref", &reference, commit.as_str()];
        let call = self.user.git.sealed_call(&self.shared_target(), &arguments).with_subject(place);
        call.with_locks([self.ref_lock(&reference)]).run_checked().map(drop)
    }

    /// Deletes a ref, unless that branch is checked out anywhere: its `HEAD` would lose its commit.
    pub(super) fn delete_ref(&self, place: CodePlace) -> Result<(), PortError> {
        let reference = self.full_ref_name(place);
        if self.user.is_checked_out(&reference, &self.shared_target())? {
            let branch = place.ref_name(&self.run);
            return Err(PortError::new(format!("the branch `{branch}` is checked out"))
                .with_hint("switch to another branch; it is tried again"));
        }
        let arguments = ["update-ref", "--no-deref", "-d", &reference];
        let call = self.user.git.sealed_call(&self.shared_target(), &arguments).with_subject(place);
        self.user
            .packed_refs
            .run_with_lock(&self.user.common_dir, call.with_locks([self.ref_lock(&reference)]))
    }

    /// Returns the path of the lock file that git takes for a ref stored as a file.
    pub(super) fn ref_lock(&self, reference: &str) -> PathBuf {
        self.user.common_dir.join(format!("{reference}.lock"))
    }

    pub(super) fn full_ref_name(&self, place: CodePlace) -> String {
        format!("refs/heads/{}", place.ref_name(&self.run))
    }
}
