//! Wraps a repository whose cleanup sometimes fails at first, as if files were locked.

use super::draw_number;
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::id::{CodePlace, Commit, GitTree};
use treebeam_core::protect::{PathChange, ProtectedPaths};
use treebeam_run::port::{
    ApplyResult, BinaryDiff, CommitNote, CommittedTree, JournalTip, PortError, Repo, RepoFile,
    StagedChanges, TouchedFiles,
};

/// One in this many worktrees cannot be removed at the first attempt.
const FAILING_CLEANUP_RATIO: u64 = 4;

/// A real repository in which some first attempts to remove a worktree fail.
#[derive(Debug)]
pub struct FlakyCleanup<R> {
    repo: R,
    seed: u64,
}

impl<R> FlakyCleanup<R> {
    /// Wraps a repository; `seed` selects the failing cleanups.
    #[must_use]
    pub const fn new(repo: R, seed: u64) -> Self {
        Self { repo, seed }
    }
}

impl<R: Repo> Repo for FlakyCleanup<R> {
    fn checkout_worktree(&self, place: CodePlace, commit: &Commit) -> Result<(), PortError> {
        self.repo.checkout_worktree(place, commit)
    }
    fn renew_worktree(&self, place: CodePlace, commit: &Commit) -> Result<(), PortError> {
        self.repo.renew_worktree(place, commit)
    }
    fn apply_to_worktree(&self, place: CodePlace, diff: &str) -> Result<ApplyResult, PortError> {
        self.repo.apply_to_worktree(place, diff)
    }
    fn staged_paths(&self, place: CodePlace) -> Result<Vec<PathChange>, PortError> {
        self.repo.staged_paths(place)
    }
    fn staged_changes(&self, place: CodePlace) -> Result<StagedChanges, PortError> {
        self.repo.staged_changes(place)
    }
    fn staged_diff(&self, place: CodePlace, limit: usize) -> Result<String, PortError> {
        self.repo.staged_diff(place, limit)
    }
    fn commit_staged(
        &self,
        place: CodePlace,
        note: &CommitNote,
    ) -> Result<CommittedTree, PortError> {
        self.repo.commit_staged(place, note)
    }
    fn git_tree(&self, commit: &Commit) -> Result<GitTree, PortError> {
        self.repo.git_tree(commit)
    }
    fn find_touched_files(
        &self,
        place: CodePlace,
        commit: &Commit,
        protected: &ProtectedPaths,
    ) -> Result<TouchedFiles, PortError> {
        self.repo.find_touched_files(place, commit, protected)
    }
    fn restore_paths(
        &self,
        place: CodePlace,
        commit: &Commit,
        paths: &[String],
    ) -> Result<(), PortError> {
        self.repo.restore_paths(place, commit, paths)
    }
    fn set_place_ref(&self, place: CodePlace, commit: &Commit) -> Result<(), PortError> {
        self.repo.set_place_ref(place, commit)
    }
    fn commit_exists(&self, commit: &Commit) -> Result<bool, PortError> {
        self.repo.commit_exists(commit)
    }
    fn diff_commits(
        &self,
        from: &Commit,
        to: &Commit,
        binaries: BinaryDiff,
        limit: usize,
    ) -> Result<String, PortError> {
        self.repo.diff_commits(from, to, binaries, limit)
    }
    fn diff_stat(&self, from: &Commit, to: &Commit) -> Result<String, PortError> {
        self.repo.diff_stat(from, to)
    }
    fn mark_journal(&self, tip: &JournalTip) -> Result<(), PortError> {
        self.repo.mark_journal(tip)
    }
    fn list_files(&self, commit: &Commit) -> Result<Vec<RepoFile>, PortError> {
        self.repo.list_files(commit)
    }
    fn read_texts(&self, files: &[RepoFile]) -> Result<Vec<Option<String>>, PortError> {
        self.repo.read_texts(files)
    }
    fn discard_leftover(&self, leftover: Leftover, attempt: u32) -> Result<(), PortError> {
        let unlucky = draw_number(self.seed, &format!("cleanup {}", leftover.place))
            .is_multiple_of(FAILING_CLEANUP_RATIO);
        if unlucky && attempt == 1 && leftover.kind == LeftoverKind::Worktree {
            return Err(PortError::new("a file is in use (the dry world says so)"));
        }
        self.repo.discard_leftover(leftover, attempt)
    }
}
