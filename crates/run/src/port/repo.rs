//! The port to the user's repository: worktrees, commits and refs of a run.

use super::{JournalTip, PortError};
use jiff::Timestamp;
use treebeam_core::event::Leftover;
use treebeam_core::id::{CodePlace, Commit, GitTree};
use treebeam_core::protect::{PathChange, ProtectedPaths};

/// The user's repository: worktrees, commits and refs of this run, never the user's own checkout.
pub trait Repo: Sync {
    /// Makes a fresh worktree at `place`, in the state of `commit`, in place of whatever a cut-off attempt left there.
    ///
    /// # Errors
    /// When git cannot.
    fn checkout_worktree(&self, place: CodePlace, commit: &Commit) -> Result<(), PortError>;

    /// Makes the worktree at `place` anew, unless this process has made it: of what a process before wrote, a power cut may
    /// have left empty files.
    ///
    /// # Errors
    /// When git cannot.
    fn renew_worktree(&self, place: CodePlace, commit: &Commit) -> Result<(), PortError>;

    /// Applies a unified diff to the worktree and its index. One that does not apply changes nothing.
    ///
    /// # Errors
    /// When git itself fails; a diff that does not apply is no error.
    fn apply_to_worktree(&self, place: CodePlace, diff: &str) -> Result<ApplyResult, PortError>;

    /// What the index of the worktree changes against its commit.
    ///
    /// # Errors
    /// When git cannot tell.
    fn staged_paths(&self, place: CodePlace) -> Result<Vec<PathChange>, PortError>;

    /// What the index of the worktree changes against its commit, with what of that does not belong into a commit.
    ///
    /// # Errors
    /// When git cannot tell.
    fn staged_changes(&self, place: CodePlace) -> Result<StagedChanges, PortError> {
        Ok(StagedChanges { changes: self.staged_paths(place)?, unwanted: Vec::new() })
    }

    /// What the index of the worktree changes, as a unified diff, cut at `limit` bytes: for people and agents to read.
    ///
    /// # Errors
    /// When git cannot tell.
    fn staged_diff(&self, place: CodePlace, limit: usize) -> Result<String, PortError>;

    /// Commits the index and lets the place's ref point at the commit. A ref that already has this parent, tree and message stays.
    ///
    /// # Errors
    /// When git cannot.
    fn commit_staged(
        &self,
        place: CodePlace,
        note: &CommitNote,
    ) -> Result<CommittedTree, PortError>;

    /// The git tree of a commit: its files, whoever made it and when.
    ///
    /// # Errors
    /// When git cannot tell.
    fn git_tree(&self, commit: &Commit) -> Result<GitTree, PortError>;

    /// Which files of a commit the worktree no longer has as the commit has them, whatever became of the worktree.
    ///
    /// # Errors
    /// When git cannot tell.
    fn find_touched_files(
        &self,
        place: CodePlace,
        commit: &Commit,
        protected: &ProtectedPaths,
    ) -> Result<TouchedFiles, PortError>;

    /// Writes files of a commit into the worktree, in place of what is there.
    ///
    /// # Errors
    /// When git cannot.
    fn restore_paths(
        &self,
        place: CodePlace,
        commit: &Commit,
        paths: &[String],
    ) -> Result<(), PortError>;

    /// Lets the place's ref point at `commit`.
    ///
    /// # Errors
    /// When git cannot.
    fn set_place_ref(&self, place: CodePlace, commit: &Commit) -> Result<(), PortError>;

    /// Whether there still is such a commit: one that no ref points at may be gone.
    ///
    /// # Errors
    /// When git cannot tell.
    fn commit_exists(&self, commit: &Commit) -> Result<bool, PortError>;

    /// The change from one commit to another, as a unified diff, cut at `limit` bytes.
    ///
    /// # Errors
    /// When git cannot tell.
    fn diff_commits(
        &self,
        from: &Commit,
        to: &Commit,
        binaries: BinaryDiff,
        limit: usize,
    ) -> Result<String, PortError>;

    /// The change from one commit to another, as `git diff --stat` shows it.
    ///
    /// # Errors
    /// When git cannot tell.
    fn diff_stat(&self, from: &Commit, to: &Commit) -> Result<String, PortError>;

    /// Lets the repository name this line as one that the run's journal has. A world without git keeps nothing.
    ///
    /// # Errors
    /// When git cannot.
    fn mark_journal(&self, _tip: &JournalTip) -> Result<(), PortError> {
        Ok(())
    }

    /// The regular files of a commit, in the order of their paths. Of very many only the first.
    ///
    /// # Errors
    /// When git cannot tell.
    fn list_files(&self, commit: &Commit) -> Result<Vec<RepoFile>, PortError>;

    /// The texts of these files, in the same order; nothing where one is no text.
    ///
    /// # Errors
    /// When git cannot tell.
    fn read_texts(&self, files: &[RepoFile]) -> Result<Vec<Option<String>>, PortError>;

    /// Removes a worktree or a ref, at which attempt, counted from 1. One that is not there is removed already.
    ///
    /// # Errors
    /// When it is still there afterwards.
    fn discard_leftover(&self, leftover: Leftover, attempt: u32) -> Result<(), PortError>;
}

/// A change that may become a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedChanges {
    /// The paths that change.
    pub changes: Vec<PathChange>,
    /// Why some of the new files do not belong into a commit, one line for each of them.
    pub unwanted: Vec<String>,
}

/// Tracked files of a worktree that are not what the commit has, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TouchedFiles {
    /// Those that are protected.
    pub protected: Vec<String>,
    /// All others.
    pub other: Vec<String>,
}

impl TouchedFiles {
    /// Whether each tracked file is what the commit has.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.protected.is_empty() && self.other.is_empty()
    }
}

/// A file of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoFile {
    /// Its path, `/` between its parts.
    pub path: String,
    /// How long it is.
    pub bytes: u64,
    /// Git's name for what is in it.
    pub object: String,
}

/// What a diff has of files that are no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryDiff {
    /// All of it, coded: to be applied.
    InFull,
    /// That they differ: to be read.
    Named,
}

/// What became of a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyResult {
    /// It is in the worktree and in the index.
    Cleanly,
    /// Nothing changed; git's own words.
    Refused(String),
}

/// A commit that was made, with the files that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedTree {
    /// The commit.
    pub commit: Commit,
    /// Its files.
    pub tree: GitTree,
}

/// What a commit says.
#[derive(Clone, Debug)]
pub struct CommitNote {
    /// The first line.
    pub title: String,
    /// `Key: value` lines at the end.
    pub trailers: Vec<(&'static str, String)>,
    /// Author's and committer's date.
    pub at: Timestamp,
}
