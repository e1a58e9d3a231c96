//! Implements the run's port to git on the user's repository by calling the git binary. No other
//! crate calls git. The user's checkout, index, stash and current branch are only read, except by
//! [`mod@switch`].
//!
//! # Layout
//! - The repository: [`mod@open`] finds it, [`mod@init`] makes one, [`mod@inspect`] describes it
//!   for the doctor, [`mod@identity`] is the committer, [`mod@paths`] holds path helpers.
//! - Calls: [`mod@call`] runs one git command, [`mod@error_text`] reads its complaints,
//!   [`mod@killed`] repeats a killed one, [`mod@gc`] handles losses to a gc of the user's.
//! - Worktrees: [`mod@worktree`] makes and removes them, with [`mod@admin`], [`mod@workshop`] and
//!   [`mod@lock`] on git's side; [`mod@head`] reads where one is, [`mod@worktree_guard`] marks
//!   those in use, [`mod@input_links`] links inputs, [`mod@leftover`] finds what runs left behind.
//! - Changes: [`mod@apply`], [`mod@commit`], [`mod@diff`]; [`mod@new_files`] finds files that do
//!   not belong into a commit, [`mod@worktree_diff`] takes the diff of a worktree,
//!   [`mod@fingerprint`] detects touched folders, [`mod@tracked`] and [`mod@touched_files`] find
//!   files that differ from the commit, [`mod@index_copy`] copies the index for that.
//! - Objects: [`mod@content`] reads the files of a commit, [`mod@committed`] compares one,
//!   [`mod@objects`] finds missing ones.
//! - Refs: [`mod@refs`], [`mod@journal_ref`], [`mod@packed_refs`], [`mod@stale_locks`].
//! - For the user: [`mod@snapshot`] commits uncommitted changes, [`mod@switch`] and
//!   [`mod@switch_files`] move the checkout, [`mod@export`] makes a branch.

mod admin;
mod apply;
mod call;
mod commit;
mod committed;
mod content;
mod diff;
mod error_text;
mod export;
mod fingerprint;
mod gc;
mod head;
mod identity;
mod index_copy;
mod init;
pub mod input_links;
mod inspect;
mod journal_ref;
mod killed;
mod leftover;
mod lock;
mod new_files;
mod objects;
mod open;
mod packed_refs;
mod paths;
mod refs;
mod snapshot;
mod stale_locks;
mod switch;
mod switch_files;
mod touched_files;
mod tracked;
mod workshop;
mod worktree;
mod worktree_diff;
mod worktree_guard;

pub use diff::DiffColour;
pub use error_text::GitErrorText;
pub use export::{BranchCommit, ExportError};
pub use identity::GitIdentity;
pub use init::{FirstCommit, init_repo};
pub use leftover::{OrphanedWorktree, remove_folder};
pub use new_files::DEFAULT_MAX_NEW_FILE_BYTES;
pub use objects::MissingObjects;
pub use open::{OpenError, UserRepo, open_repo, open_repo_with};
pub use paths::{FileStamp, file_stamp, is_link_to};
pub use refs::journal_ref;
pub use worktree_diff::{GuardedWorktree, MAX_CHANGE_BYTES, WorktreeBefore, WorktreeDiff};
pub use worktree_guard::RunOwnWork;

use call::GitTarget;
use content::ContentCache;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::id::{CodePlace, Commit, GitTree, RunId};
use treebeam_core::protect::{PathChange, ProtectedPaths};
use treebeam_run::port::{
    ApplyResult, BinaryDiff, CommitNote, CommittedTree, JournalTip, PortError, Repo, RepoFile,
    StagedChanges, TouchedFiles,
};
use worktree::Worktree;

/// Worktrees, commits and refs of one run in the user's repository.
#[derive(Debug)]
pub struct GitRepo {
    user: UserRepo,
    run: RunId,
    run_dir: String,
    known_worktrees: Mutex<BTreeMap<CodePlace, Worktree>>,
    content_cache: ContentCache,
    max_new_file_bytes: u64,
}

impl GitRepo {
    /// Opens a run in the user's repository, with its run directory, which must exist.
    ///
    /// # Errors
    /// When there is no run directory, or its path is not UTF-8.
    pub fn new(user: UserRepo, run_dir: &Path, run: RunId) -> Result<Self, PortError> {
        let run_dir = paths::real_path(run_dir)?;
        let (known, remembered) = (Mutex::default(), ContentCache::default());
        let max_new_file_bytes = DEFAULT_MAX_NEW_FILE_BYTES;
        Ok(Self {
            user,
            run,
            run_dir,
            known_worktrees: known,
            content_cache: remembered,
            max_new_file_bytes,
        })
    }

    /// Returns the user's repository.
    #[must_use]
    pub fn user_repo(&self) -> &UserRepo {
        &self.user
    }

    /// Returns the target of calls that concern no worktree: the shared git folder and, as working
    /// tree, the run directory, not the user's checkout.
    fn shared_target(&self) -> GitTarget {
        let git_dir = paths::git_path(&self.user.common_dir.to_string_lossy());
        GitTarget { git_dir, work_tree: self.run_dir.clone() }
    }
}

impl Repo for GitRepo {
    fn checkout_worktree(&self, place: CodePlace, commit: &Commit) -> Result<(), PortError> {
        self.make_for_use(place, commit)?;
        self.remember_files(place, commit);
        Ok(())
    }
    fn renew_worktree(&self, place: CodePlace, commit: &Commit) -> Result<(), PortError> {
        if !self.is_known(place) {
            self.make_worktree(place, commit)?;
            self.remember_files(place, commit);
        }
        Ok(())
    }
    fn apply_to_worktree(&self, place: CodePlace, diff: &str) -> Result<ApplyResult, PortError> {
        self.apply_diff(place, diff)
    }
    fn staged_paths(&self, place: CodePlace) -> Result<Vec<PathChange>, PortError> {
        self.index_changes(place)
    }
    fn staged_changes(&self, place: CodePlace) -> Result<StagedChanges, PortError> {
        self.checked_changes(place)
    }
    fn staged_diff(&self, place: CodePlace, limit: usize) -> Result<String, PortError> {
        self.index_diff(place, limit)
    }
    fn commit_staged(
        &self,
        place: CodePlace,
        note: &CommitNote,
    ) -> Result<CommittedTree, PortError> {
        let committed = self.make_commit(place, note)?;
        self.remember_files(place, &committed.commit);
        Ok(committed)
    }
    fn git_tree(&self, commit: &Commit) -> Result<GitTree, PortError> {
        self.tree_of(commit)
    }
    fn find_touched_files(
        &self,
        place: CodePlace,
        commit: &Commit,
        protected: &ProtectedPaths,
    ) -> Result<TouchedFiles, PortError> {
        self.touched_files(place, commit, protected)
    }
    fn restore_paths(
        &self,
        place: CodePlace,
        commit: &Commit,
        paths: &[String],
    ) -> Result<(), PortError> {
        self.restore_files(place, commit, paths)
    }
    fn set_place_ref(&self, place: CodePlace, commit: &Commit) -> Result<(), PortError> {
        self.set_ref(place, commit)
    }
    fn commit_exists(&self, commit: &Commit) -> Result<bool, PortError> {
        self.has_commit(commit)
    }
    fn diff_commits(
        &self,
        from: &Commit,
        to: &Commit,
        binaries: BinaryDiff,
        limit: usize,
    ) -> Result<String, PortError> {
        self.build_patch(from, to, binaries, limit)
    }
    fn diff_stat(&self, from: &Commit, to: &Commit) -> Result<String, PortError> {
        self.build_stat(from, to)
    }
    fn mark_journal(&self, tip: &JournalTip) -> Result<(), PortError> {
        self.set_journal_ref(tip)
    }
    fn list_files(&self, commit: &Commit) -> Result<Vec<RepoFile>, PortError> {
        self.files_of(commit)
    }
    fn read_texts(&self, files: &[RepoFile]) -> Result<Vec<Option<String>>, PortError> {
        self.texts_of(files)
    }
    fn discard_leftover(&self, leftover: Leftover, _attempt: u32) -> Result<(), PortError> {
        match leftover.kind {
            LeftoverKind::Worktree => self.remove_worktree(leftover.place),
            LeftoverKind::Branch => self.delete_ref(leftover.place),
            LeftoverKind::Dir => Ok(()),
        }
    }
}
