//! A repository whose cleanup now and then fails at the first attempt, as it does where files are locked.

use super::draw;
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::id::{Commit, GitTree, Place};
use treebeam_core::protect::{Change, Protected};
use treebeam_run::port::{
    Applied, Binaries, CommitNote, CommittedTree, JournalTip, PortError, Repo, RepoFile,
    StagedChanges, TouchedFiles,
};

/// One in this many worktrees cannot be removed at first.
const ONE_IN: u64 = 4;

/// The real repository, but for some first attempts to remove a worktree.
#[derive(Debug)]
pub struct FlakyCleanup<R> {
    repo: R,
    seed: u64,
}

impl<R> FlakyCleanup<R> {
    /// The same repository with failing cleanups.
    #[must_use]
    pub const fn new(repo: R, seed: u64) -> Self {
        Self { repo, seed }
    }
}

impl<R: Repo> Repo for FlakyCleanup<R> {
    fn checkout(&self, place: Place, commit: &Commit) -> Result<(), PortError> {
        self.repo.checkout(place, commit)
    }
    fn renew(&self, place: Place, commit: &Commit) -> Result<(), PortError> {
        self.repo.renew(place, commit)
    }
    fn apply(&self, place: Place, diff: &str) -> Result<Applied, PortError> {
        self.repo.apply(place, diff)
    }
    fn changes(&self, place: Place) -> Result<Vec<Change>, PortError> {
        self.repo.changes(place)
    }
    fn staged_changes(&self, place: Place) -> Result<StagedChanges, PortError> {
        self.repo.staged_changes(place)
    }
    fn staged(&self, place: Place, limit: usize) -> Result<String, PortError> {
        self.repo.staged(place, limit)
    }
    fn commit(&self, place: Place, note: &CommitNote) -> Result<CommittedTree, PortError> {
        self.repo.commit(place, note)
    }
    fn tree(&self, commit: &Commit) -> Result<GitTree, PortError> {
        self.repo.tree(commit)
    }
    fn touched(
        &self,
        place: Place,
        commit: &Commit,
        protected: &Protected,
    ) -> Result<TouchedFiles, PortError> {
        self.repo.touched(place, commit, protected)
    }
    fn restore(&self, place: Place, commit: &Commit, paths: &[String]) -> Result<(), PortError> {
        self.repo.restore(place, commit, paths)
    }
    fn keep(&self, place: Place, commit: &Commit) -> Result<(), PortError> {
        self.repo.keep(place, commit)
    }
    fn has(&self, commit: &Commit) -> Result<bool, PortError> {
        self.repo.has(commit)
    }
    fn diff(
        &self,
        from: &Commit,
        to: &Commit,
        binaries: Binaries,
        limit: usize,
    ) -> Result<String, PortError> {
        self.repo.diff(from, to, binaries, limit)
    }
    fn diff_stat(&self, from: &Commit, to: &Commit) -> Result<String, PortError> {
        self.repo.diff_stat(from, to)
    }
    fn mark_journal(&self, tip: &JournalTip) -> Result<(), PortError> {
        self.repo.mark_journal(tip)
    }
    fn files(&self, commit: &Commit) -> Result<Vec<RepoFile>, PortError> {
        self.repo.files(commit)
    }
    fn texts(&self, files: &[RepoFile]) -> Result<Vec<Option<String>>, PortError> {
        self.repo.texts(files)
    }
    fn discard(&self, leftover: Leftover, attempt: u32) -> Result<(), PortError> {
        let unlucky =
            draw(self.seed, &format!("cleanup {}", leftover.place)).is_multiple_of(ONE_IN);
        if unlucky && attempt == 1 && leftover.kind == LeftoverKind::Worktree {
            return Err(PortError::new("a file is in use (the dry world says so)"));
        }
        self.repo.discard(leftover, attempt)
    }
}
