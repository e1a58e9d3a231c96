//! The port to the user's repository: worktrees, commits and refs of a run.

use super::{JournalTip, PortError};
use jiff::Timestamp;
use treebeam_core::event::Leftover;
use treebeam_core::id::{CodePlace, Commit, GitTree};
use treebeam_core::protect::{PathChange, ProtectedPaths};

/// The user's repository: worktrees, commits and refs of this run, never the user's own checkout.
pub trait Repo: Sync {
    /// Makes a fresh worktree at `place` with the files of `commit`, replacing leftovers.
    ///
    /// # Errors
    /// When git fails.
    fn checkout_worktree(&self, place: CodePlace, commit: &Commit) -> Result<(), PortError>;

    /// Makes the worktree at `place` anew, unless this process has made it: a power cut may have
    /// left empty files in a worktree of an earlier process.
    ///
    /// # Errors
    /// When git fails.
    fn renew_worktree(&self, place: CodePlace, commit: &Commit) -> Result<(), PortError>;

    /// Applies a unified diff to the worktree and its index, or changes nothing.
    ///
    /// # Errors
    /// When git itself fails; a diff that does not apply is no error.
    fn apply_to_worktree(&self, place: CodePlace, diff: &str) -> Result<ApplyResult, PortError>;

    /// Returns the paths that the index of the worktree changes against its commit.
    ///
    /// # Errors
    /// When git fails.
    fn staged_paths(&self, place: CodePlace) -> Result<Vec<PathChange>, PortError>;

    /// Returns the paths that the index of the worktree changes against its commit, with the
    /// reasons why some of the new files do not belong into a commit.
    ///
    /// # Errors
    /// When git fails.
    fn staged_changes(&self, place: CodePlace) -> Result<StagedChanges, PortError> {
        Ok(StagedChanges { changes: self.staged_paths(place)?, unwanted: Vec::new() })
    }

    /// Returns the staged changes as a diff to be read, cut at `limit` bytes.
    ///
    /// # Errors
    /// When git fails.
    fn staged_diff(&self, place: CodePlace, limit: usize) -> Result<String, PortError>;

    /// Commits the index and points the place's ref at the commit. A ref that already has this
    /// parent, tree and message stays.
    ///
    /// # Errors
    /// When git fails.
    fn commit_staged(
        &self,
        place: CodePlace,
        note: &CommitNote,
    ) -> Result<CommittedTree, PortError>;

    /// Returns the git tree of a commit, which depends on its files alone, not on author or date.
    ///
    /// # Errors
    /// When git fails.
    fn git_tree(&self, commit: &Commit) -> Result<GitTree, PortError>;

    /// Compares the worktree, in any condition, with a commit, and returns the files that differ.
    ///
    /// # Errors
    /// When git fails.
    fn find_touched_files(
        &self,
        place: CodePlace,
        commit: &Commit,
        protected: &ProtectedPaths,
    ) -> Result<TouchedFiles, PortError>;

    /// Writes files of a commit into the worktree, replacing the present ones.
    ///
    /// # Errors
    /// When git fails.
    fn restore_paths(
        &self,
        place: CodePlace,
        commit: &Commit,
        paths: &[String],
    ) -> Result<(), PortError>;

    /// Points the place's ref at `commit`.
    ///
    /// # Errors
    /// When git fails.
    fn set_place_ref(&self, place: CodePlace, commit: &Commit) -> Result<(), PortError>;

    /// Returns true if the commit still exists: git may have removed one without a ref.
    ///
    /// # Errors
    /// When git fails.
    fn commit_exists(&self, commit: &Commit) -> Result<bool, PortError>;

    /// Returns the change from one commit to another as a unified diff, cut at `limit` bytes.
    ///
    /// # Errors
    /// When git fails.
    fn diff_commits(
        &self,
        from: &Commit,
        to: &Commit,
        binaries: BinaryDiff,
        limit: usize,
    ) -> Result<String, PortError>;

    /// Returns the change from one commit to another, as `git diff --stat` shows it.
    ///
    /// # Errors
    /// When git fails.
    fn diff_stat(&self, from: &Commit, to: &Commit) -> Result<String, PortError>;

    /// Stores a line of the run's journal in the repository, if it is a real one.
    ///
    /// # Errors
    /// When git fails.
    fn mark_journal(&self, _tip: &JournalTip) -> Result<(), PortError> {
        Ok(())
    }

    /// Returns the regular files of a commit, by path; only the first ones if there are very many.
    ///
    /// # Errors
    /// When git fails.
    fn list_files(&self, commit: &Commit) -> Result<Vec<RepoFile>, PortError>;

    /// Returns the texts of these files, in the same order; `None` for a file that is no text.
    ///
    /// # Errors
    /// When git fails.
    fn read_texts(&self, files: &[RepoFile]) -> Result<Vec<Option<String>>, PortError>;

    /// Removes a worktree or a ref, if it is there; `attempt` counts the tries from 1.
    ///
    /// # Errors
    /// When it is still there afterwards.
    fn discard_leftover(&self, leftover: Leftover, attempt: u32) -> Result<(), PortError>;
}

/// A staged change that may become a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedChanges {
    /// The paths that change.
    pub changes: Vec<PathChange>,
    /// Reasons why some of the new files do not belong into a commit, one line for each.
    pub unwanted: Vec<String>,
}

/// Tracked files of a worktree that differ from the commit, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TouchedFiles {
    /// The protected ones.
    pub protected: Vec<String>,
    /// All others.
    pub other: Vec<String>,
}

impl TouchedFiles {
    /// Returns true if each tracked file is as committed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.protected.is_empty() && self.other.is_empty()
    }
}

/// A file of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoFile {
    /// Path, with `/` between its parts.
    pub path: String,
    /// Length in bytes.
    pub bytes: u64,
    /// Git's object id of the content.
    pub object: String,
}

/// The form in which a diff shows files that are no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryDiff {
    /// The full content, encoded: to be applied.
    InFull,
    /// Only that they differ: to be read.
    Named,
}

/// The result of applying a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyResult {
    /// The diff is in the worktree and in the index.
    Cleanly,
    /// Nothing changed; the text is git's message.
    Refused(String),
}

/// A commit that was made, with its git tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedTree {
    /// The commit.
    pub commit: Commit,
    /// Git tree of the commit.
    pub tree: GitTree,
}

/// The message and date of a commit.
#[derive(Clone, Debug)]
pub struct CommitNote {
    /// First line of the message.
    pub title: String,
    /// `Key: value` lines at the end.
    pub trailers: Vec<(&'static str, String)>,
    /// Date of author and committer.
    pub at: Timestamp,
}
