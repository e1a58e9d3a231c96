//! Ports that ask, before each effect, whether the run is still ours: a process that has lost its run to another host
//! moves no ref, writes no file, starts no sweep and pays for no answer. Reading is let through.

use super::error::StoreError;
use super::lease::Fence;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;
use treebeam_core::event::Leftover;
use treebeam_core::evidence::Artifact;
use treebeam_core::id::{Commit, EvalId, GitTree, Place, RunPath, Sha256};
use treebeam_core::protect::{Change, Protected};
use treebeam_run::port::{
    Agent, AgentError, Applied, Ask, Binaries, CommitNote, CommittedTree, Edits, Executor, Files,
    Job, JobEnd, JobKey, JournalTip, PortError, Reply, Repo, RepoFile, Role, StagedChanges,
    TouchedFiles,
};

/// A port behind the fence of a run.
#[derive(Debug)]
pub struct Fenced<P> {
    port: Arc<P>,
    fence: Fence,
}

impl<P> Fenced<P> {
    /// The same port, for as long as the run is ours.
    #[must_use]
    pub fn new(port: P, fence: Fence) -> Self {
        Self::sharing(Arc::new(port), fence)
    }

    /// The same port, which somebody else knows too.
    #[must_use]
    pub const fn sharing(port: Arc<P>, fence: Fence) -> Self {
        Self { port, fence }
    }

    /// The port, if it may still act.
    fn inside(&self) -> Result<&P, StoreError> {
        self.fence.check().map(|()| self.port.as_ref())
    }
}

impl<R: Repo + Send> Repo for Fenced<R> {
    fn checkout(&self, place: Place, commit: &Commit) -> Result<(), PortError> {
        self.inside()?.checkout(place, commit)
    }
    fn renew(&self, place: Place, commit: &Commit) -> Result<(), PortError> {
        self.inside()?.renew(place, commit)
    }
    fn apply(&self, place: Place, diff: &str) -> Result<Applied, PortError> {
        self.inside()?.apply(place, diff)
    }
    fn changes(&self, place: Place) -> Result<Vec<Change>, PortError> {
        self.port.changes(place)
    }
    fn staged_changes(&self, place: Place) -> Result<StagedChanges, PortError> {
        self.port.staged_changes(place)
    }
    fn staged(&self, place: Place, limit: usize) -> Result<String, PortError> {
        self.port.staged(place, limit)
    }
    fn commit(&self, place: Place, note: &CommitNote) -> Result<CommittedTree, PortError> {
        self.inside()?.commit(place, note)
    }
    fn tree(&self, commit: &Commit) -> Result<GitTree, PortError> {
        self.port.tree(commit)
    }
    fn touched(
        &self,
        place: Place,
        commit: &Commit,
        protected: &Protected,
    ) -> Result<TouchedFiles, PortError> {
        self.port.touched(place, commit, protected)
    }
    fn restore(&self, place: Place, commit: &Commit, paths: &[String]) -> Result<(), PortError> {
        self.inside()?.restore(place, commit, paths)
    }
    fn keep(&self, place: Place, commit: &Commit) -> Result<(), PortError> {
        self.inside()?.keep(place, commit)
    }
    fn has(&self, commit: &Commit) -> Result<bool, PortError> {
        self.port.has(commit)
    }
    fn diff(
        &self,
        from: &Commit,
        to: &Commit,
        binaries: Binaries,
        limit: usize,
    ) -> Result<String, PortError> {
        self.port.diff(from, to, binaries, limit)
    }
    fn diff_stat(&self, from: &Commit, to: &Commit) -> Result<String, PortError> {
        self.port.diff_stat(from, to)
    }
    fn mark_journal(&self, tip: &JournalTip) -> Result<(), PortError> {
        self.inside()?.mark_journal(tip)
    }
    fn files(&self, commit: &Commit) -> Result<Vec<RepoFile>, PortError> {
        self.port.files(commit)
    }
    fn texts(&self, files: &[RepoFile]) -> Result<Vec<Option<String>>, PortError> {
        self.port.texts(files)
    }
    fn discard(&self, leftover: Leftover, attempt: u32) -> Result<(), PortError> {
        self.inside()?.discard(leftover, attempt)
    }
}

impl<F: Files + Send> Files for Fenced<F> {
    fn write(&self, path: &RunPath, bytes: &[u8]) -> Result<(), PortError> {
        self.inside()?.write(path, bytes)
    }
    fn read(&self, path: &RunPath, limit: usize) -> Result<Vec<u8>, PortError> {
        self.port.read(path, limit)
    }
    fn find(&self, path: &RunPath, limit: usize) -> Result<Option<Vec<u8>>, PortError> {
        self.port.find(path, limit)
    }
    fn link(&self, from: &RunPath, to: &RunPath) -> Result<Sha256, PortError> {
        self.inside()?.link(from, to)
    }
    fn remove_submissions(&self, eval: EvalId) -> Result<(), PortError> {
        self.inside()?.remove_submissions(eval)
    }
    fn import(&self, from: &RunPath, name: &str) -> Result<Artifact, PortError> {
        self.inside()?.import(from, name)
    }
    fn settle(&self) -> Result<(), PortError> {
        self.port.settle()
    }
    fn changed(&self, artifacts: &[Artifact]) -> Result<Vec<Artifact>, PortError> {
        self.port.changed(artifacts)
    }
    fn restore(&self, artifacts: &[Artifact]) -> Result<(), PortError> {
        self.inside()?.restore(artifacts)
    }
    fn open_copy(&self, artifact: &Artifact) -> Result<Box<dyn Read>, PortError> {
        self.port.open_copy(artifact)
    }
    fn open(&self, artifact: &Artifact) -> Result<Box<dyn Read>, PortError> {
        self.port.open(artifact)
    }
}

impl<E: Executor + Send> Executor for Fenced<E> {
    fn submit(&self, job: &Job) -> Result<(), PortError> {
        self.inside()?.submit(job)
    }
    fn adopt(&self, jobs: &[Job]) -> Result<Vec<JobKey>, PortError> {
        self.inside()?.adopt(jobs)
    }
    fn wait(&self, patience: Duration) -> Result<Vec<JobEnd>, PortError> {
        self.port.wait(patience)
    }
}

impl<A: Agent + Send> Agent for Fenced<A> {
    fn answers(&self, role: Role) -> bool {
        self.port.answers(role)
    }
    fn edits(&self, role: Role) -> Edits {
        self.port.edits(role)
    }
    fn continues(&self, role: Role) -> bool {
        self.port.continues(role)
    }
    fn ask(&self, ask: &Ask) -> Result<Reply, AgentError> {
        self.inside().map_err(PortError::from)?.ask(ask)
    }
}
