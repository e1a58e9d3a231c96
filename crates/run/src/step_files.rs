//! Notes the digests of the files that one step writes, and of the answers that its agents keep.
//! Digests are computed during writing; only files of others are read again.

use crate::port::{
    Agent, AgentError, AgentReply, AgentRequest, AgentRole, EditMode, FileStore, PortError,
};
use crate::run_ports::RunPorts;
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Mutex, MutexGuard, PoisonError};
use treebeam_core::event::FileDigest;
use treebeam_core::evidence::Artifact;
use treebeam_core::id::{EvalId, RunPath, Sha256};
use treebeam_core::plan::StepOutcome;

/// The end of a step.
#[derive(Clone, Debug)]
pub(crate) struct StepEnd {
    pub(crate) outcome: StepOutcome,
    /// Digests of the files that the step has written.
    pub(crate) files: Vec<FileDigest>,
    /// Artifacts that the step found changed.
    pub(crate) changed_artifacts: Vec<Artifact>,
}

/// The effects of a step on the files of the run so far.
#[derive(Debug, Default)]
pub(crate) struct StepDigests(Mutex<NotedFiles>);

/// The digests of the files that were written, and the artifacts that were found changed, by path.
#[derive(Debug, Default)]
struct NotedFiles {
    digests: BTreeMap<RunPath, Sha256>,
    changed_artifacts: BTreeMap<RunPath, Artifact>,
}

impl StepDigests {
    fn lock_notes(&self) -> MutexGuard<'_, NotedFiles> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_digest(&self, path: RunPath, sha256: Sha256) {
        self.lock_notes().digests.insert(path, sha256);
    }

    /// Builds the end of the step, with the files that it has written and the artifacts that it
    /// found changed, in the order of their paths.
    pub(crate) fn into_step_end(self, outcome: StepOutcome) -> StepEnd {
        let noted = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let digests = noted.digests.into_iter();
        let files = digests.map(|(path, sha256)| FileDigest { path, sha256 }).collect();
        let changed_artifacts = noted.changed_artifacts.into_values().collect();
        StepEnd { outcome, files, changed_artifacts }
    }
}

/// Runs a step's work with ports that note what it writes.
pub(crate) fn with_noting<T>(
    world: RunPorts<'_>,
    digests: &StepDigests,
    work: impl FnOnce(RunPorts<'_>) -> T,
) -> T {
    let files = NotingFiles { files: world.files, digests };
    let agent = NotingAgent { agent: world.agent, digests };
    work(RunPorts { files: &files, agent: &agent, ..world })
}

/// The run's files, with a note of each that is written.
struct NotingFiles<'a> {
    files: &'a dyn FileStore,
    digests: &'a StepDigests,
}

impl FileStore for NotingFiles<'_> {
    fn write_file(&self, path: &RunPath, bytes: &[u8]) -> Result<(), PortError> {
        self.files.write_file(path, bytes)?;
        self.digests.add_digest(path.clone(), Sha256::hash_bytes(bytes));
        Ok(())
    }

    fn read_file(&self, path: &RunPath, limit: usize) -> Result<Vec<u8>, PortError> {
        self.files.read_file(path, limit)
    }

    fn find_file(&self, path: &RunPath, limit: usize) -> Result<Option<Vec<u8>>, PortError> {
        self.files.find_file(path, limit)
    }

    fn link_file(&self, from: &RunPath, to: &RunPath) -> Result<Sha256, PortError> {
        let sha256 = self.files.link_file(from, to)?;
        self.digests.add_digest(to.clone(), sha256);
        Ok(sha256)
    }

    fn remove_submissions(&self, eval: EvalId) -> Result<(), PortError> {
        self.files.remove_submissions(eval)
    }

    fn import_artifact(&self, from: &RunPath, name: &str) -> Result<Artifact, PortError> {
        self.files.import_artifact(from, name)
    }

    fn sync_files(&self) -> Result<(), PortError> {
        self.files.sync_files()
    }

    fn find_changed_artifacts(&self, artifacts: &[Artifact]) -> Result<Vec<Artifact>, PortError> {
        let changed = self.files.find_changed_artifacts(artifacts)?;
        let by_path = changed.iter().map(|artifact| (artifact.path.clone(), artifact.clone()));
        self.digests.lock_notes().changed_artifacts.extend(by_path);
        Ok(changed)
    }

    fn restore_artifacts(&self, artifacts: &[Artifact]) -> Result<(), PortError> {
        self.files.restore_artifacts(artifacts)
    }

    fn open_copy_of(&self, artifact: &Artifact) -> Result<Box<dyn Read>, PortError> {
        self.files.open_copy_of(artifact)
    }

    fn open_artifact(&self, artifact: &Artifact) -> Result<Box<dyn Read>, PortError> {
        self.files.open_artifact(artifact)
    }
}

/// The agents, with a note of each answer that is kept.
struct NotingAgent<'a> {
    agent: &'a dyn Agent,
    digests: &'a StepDigests,
}

impl Agent for NotingAgent<'_> {
    fn can_answer(&self, role: AgentRole) -> bool {
        self.agent.can_answer(role)
    }

    fn edit_mode(&self, role: AgentRole) -> EditMode {
        self.agent.edit_mode(role)
    }

    fn can_continue(&self, role: AgentRole) -> bool {
        self.agent.can_continue(role)
    }

    fn ask(&self, ask: &AgentRequest) -> Result<AgentReply, AgentError> {
        let reply = self.agent.ask(ask)?;
        if let Some(FileDigest { path, sha256 }) = &reply.kept_as {
            self.digests.add_digest(path.clone(), *sha256);
        }
        Ok(reply)
    }
}
