//! Ports that check before each effect that this process still has the run. A process that has lost
//! its run to another host moves no ref, writes no file, starts no sweep and pays for no answer.
//! Reads are not checked.

use super::error::StoreError;
use super::lease::LeaseFence;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;
use treebeam_core::event::Leftover;
use treebeam_core::evidence::Artifact;
use treebeam_core::id::{CodePlace, Commit, EvalId, GitTree, RunPath, Sha256};
use treebeam_core::protect::{PathChange, ProtectedPaths};
use treebeam_run::port::{
    Agent, AgentError, AgentReply, AgentRequest, AgentRole, ApplyResult, BinaryDiff, CommitNote,
    CommittedTree, EditMode, Executor, FileStore, JobEnd, JobKey, JournalTip, PortError, Repo,
    RepoFile, StagedChanges, SweepJob, TouchedFiles,
};

/// A port whose effects require that this process still has the run.
#[derive(Debug)]
pub struct FencedPort<P> {
    port: Arc<P>,
    fence: LeaseFence,
}

impl<P> FencedPort<P> {
    /// Wraps a port, with the fence that is checked before each effect.
    #[must_use]
    pub fn new(port: P, fence: LeaseFence) -> Self {
        Self::with_shared(Arc::new(port), fence)
    }

    /// Wraps a port that other code uses too.
    #[must_use]
    pub const fn with_shared(port: Arc<P>, fence: LeaseFence) -> Self {
        Self { port, fence }
    }

    /// Returns the port, or an error if the run is lost.
    fn checked_port(&self) -> Result<&P, StoreError> {
        self.fence.check_ownership().map(|()| self.port.as_ref())
    }
}

impl<R: Repo + Send> Repo for FencedPort<R> {
    fn checkout_worktree(&self, place: CodePlace, commit: &Commit) -> Result<(), PortError> {
        self.checked_port()?.checkout_worktree(place, commit)
    }
    fn renew_worktree(&self, place: CodePlace, commit: &Commit) -> Result<(), PortError> {
        self.checked_port()?.renew_worktree(place, commit)
    }
    fn apply_to_worktree(&self, place: CodePlace, diff: &str) -> Result<ApplyResult, PortError> {
        self.checked_port()?.apply_to_worktree(place, diff)
    }
    fn staged_paths(&self, place: CodePlace) -> Result<Vec<PathChange>, PortError> {
        self.port.staged_paths(place)
    }
    fn staged_changes(&self, place: CodePlace) -> Result<StagedChanges, PortError> {
        self.port.staged_changes(place)
    }
    fn staged_diff(&self, place: CodePlace, limit: usize) -> Result<String, PortError> {
        self.port.staged_diff(place, limit)
    }
    fn commit_staged(
        &self,
        place: CodePlace,
        note: &CommitNote,
    ) -> Result<CommittedTree, PortError> {
        self.checked_port()?.commit_staged(place, note)
    }
    fn git_tree(&self, commit: &Commit) -> Result<GitTree, PortError> {
        self.port.git_tree(commit)
    }
    fn find_touched_files(
        &self,
        place: CodePlace,
        commit: &Commit,
        protected: &ProtectedPaths,
    ) -> Result<TouchedFiles, PortError> {
        self.port.find_touched_files(place, commit, protected)
    }
    fn restore_paths(
        &self,
        place: CodePlace,
        commit: &Commit,
        paths: &[String],
    ) -> Result<(), PortError> {
        self.checked_port()?.restore_paths(place, commit, paths)
    }
    fn set_place_ref(&self, place: CodePlace, commit: &Commit) -> Result<(), PortError> {
        self.checked_port()?.set_place_ref(place, commit)
    }
    fn commit_exists(&self, commit: &Commit) -> Result<bool, PortError> {
        self.port.commit_exists(commit)
    }
    fn diff_commits(
        &self,
        from: &Commit,
        to: &Commit,
        binaries: BinaryDiff,
        limit: usize,
    ) -> Result<String, PortError> {
        self.port.diff_commits(from, to, binaries, limit)
    }
    fn diff_stat(&self, from: &Commit, to: &Commit) -> Result<String, PortError> {
        self.port.diff_stat(from, to)
    }
    fn mark_journal(&self, tip: &JournalTip) -> Result<(), PortError> {
        self.checked_port()?.mark_journal(tip)
    }
    fn list_files(&self, commit: &Commit) -> Result<Vec<RepoFile>, PortError> {
        self.port.list_files(commit)
    }
    fn read_texts(&self, files: &[RepoFile]) -> Result<Vec<Option<String>>, PortError> {
        self.port.read_texts(files)
    }
    fn discard_leftover(&self, leftover: Leftover, attempt: u32) -> Result<(), PortError> {
        self.checked_port()?.discard_leftover(leftover, attempt)
    }
}

impl<F: FileStore + Send> FileStore for FencedPort<F> {
    fn write_file(&self, path: &RunPath, bytes: &[u8]) -> Result<(), PortError> {
        self.checked_port()?.write_file(path, bytes)
    }
    fn read_file(&self, path: &RunPath, limit: usize) -> Result<Vec<u8>, PortError> {
        self.port.read_file(path, limit)
    }
    fn find_file(&self, path: &RunPath, limit: usize) -> Result<Option<Vec<u8>>, PortError> {
        self.port.find_file(path, limit)
    }
    fn link_file(&self, from: &RunPath, to: &RunPath) -> Result<Sha256, PortError> {
        self.checked_port()?.link_file(from, to)
    }
    fn remove_submissions(&self, eval: EvalId) -> Result<(), PortError> {
        self.checked_port()?.remove_submissions(eval)
    }
    fn import_artifact(&self, from: &RunPath, name: &str) -> Result<Artifact, PortError> {
        self.checked_port()?.import_artifact(from, name)
    }
    fn sync_files(&self) -> Result<(), PortError> {
        self.port.sync_files()
    }
    fn find_changed_artifacts(&self, artifacts: &[Artifact]) -> Result<Vec<Artifact>, PortError> {
        self.port.find_changed_artifacts(artifacts)
    }
    fn restore_artifacts(&self, artifacts: &[Artifact]) -> Result<(), PortError> {
        self.checked_port()?.restore_artifacts(artifacts)
    }
    fn open_copy_of(&self, artifact: &Artifact) -> Result<Box<dyn Read>, PortError> {
        self.port.open_copy_of(artifact)
    }
    fn open_artifact(&self, artifact: &Artifact) -> Result<Box<dyn Read>, PortError> {
        self.port.open_artifact(artifact)
    }
}

impl<E: Executor + Send> Executor for FencedPort<E> {
    fn submit_job(&self, job: &SweepJob) -> Result<(), PortError> {
        self.checked_port()?.submit_job(job)
    }
    fn adopt_jobs(&self, jobs: &[SweepJob]) -> Result<Vec<JobKey>, PortError> {
        self.checked_port()?.adopt_jobs(jobs)
    }
    fn wait_for_jobs(&self, patience: Duration) -> Result<Vec<JobEnd>, PortError> {
        self.port.wait_for_jobs(patience)
    }
}

impl<A: Agent + Send> Agent for FencedPort<A> {
    fn can_answer(&self, role: AgentRole) -> bool {
        self.port.can_answer(role)
    }
    fn edit_mode(&self, role: AgentRole) -> EditMode {
        self.port.edit_mode(role)
    }
    fn can_continue(&self, role: AgentRole) -> bool {
        self.port.can_continue(role)
    }
    fn ask(&self, ask: &AgentRequest) -> Result<AgentReply, AgentError> {
        self.checked_port().map_err(PortError::from)?.ask(ask)
    }
}
