//! The digests of the files that one step writes: its own, and the answers that its agents keep.
//! Each is computed as the file is written; files are read again only where the step did not write
//! them itself.

use crate::port::{Agent, AgentError, Ask, Edits, Files, PortError, Reply, Role, World};
use crate::stage::StepEnd;
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Mutex, MutexGuard, PoisonError};
use treebeam_core::event::FileDigest;
use treebeam_core::evidence::Artifact;
use treebeam_core::id::{EvalId, RunPath, Sha256};
use treebeam_core::plan::Outcome;

/// What a step has done to the files of the run so far.
#[derive(Debug, Default)]
pub(crate) struct StepDigests(Mutex<Noted>);

/// The digests of the files that were written, and the artifacts that were found changed, by path.
#[derive(Debug, Default)]
struct Noted {
    digests: BTreeMap<RunPath, Sha256>,
    changed_artifacts: BTreeMap<RunPath, Artifact>,
}

impl StepDigests {
    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, path: RunPath, sha256: Sha256) {
        self.noted().digests.insert(path, sha256);
    }

    /// The end of the step, with the files that it has written and the artifacts that it found
    /// changed, in the order of their paths.
    pub(crate) fn into_end(self, outcome: Outcome) -> StepEnd {
        let noted = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let digests = noted.digests.into_iter();
        let files = digests.map(|(path, sha256)| FileDigest { path, sha256 }).collect();
        let changed_artifacts = noted.changed_artifacts.into_values().collect();
        StepEnd { outcome, files, changed_artifacts }
    }
}

/// Does a step's work in a world that notes what it writes.
pub(crate) fn noting<T>(
    world: World<'_>,
    digests: &StepDigests,
    work: impl FnOnce(World<'_>) -> T,
) -> T {
    let files = NotingFiles { files: world.files, digests };
    let agent = NotingAgent { agent: world.agent, digests };
    work(World { files: &files, agent: &agent, ..world })
}

/// The run's files, with a note of each that is written.
struct NotingFiles<'a> {
    files: &'a dyn Files,
    digests: &'a StepDigests,
}

impl Files for NotingFiles<'_> {
    fn write(&self, path: &RunPath, bytes: &[u8]) -> Result<(), PortError> {
        self.files.write(path, bytes)?;
        self.digests.note(path.clone(), Sha256::of(bytes));
        Ok(())
    }

    fn read(&self, path: &RunPath, limit: usize) -> Result<Vec<u8>, PortError> {
        self.files.read(path, limit)
    }

    fn find(&self, path: &RunPath, limit: usize) -> Result<Option<Vec<u8>>, PortError> {
        self.files.find(path, limit)
    }

    fn link(&self, from: &RunPath, to: &RunPath) -> Result<Sha256, PortError> {
        let sha256 = self.files.link(from, to)?;
        self.digests.note(to.clone(), sha256);
        Ok(sha256)
    }

    fn remove_submissions(&self, eval: EvalId) -> Result<(), PortError> {
        self.files.remove_submissions(eval)
    }

    fn import(&self, from: &RunPath, name: &str) -> Result<Artifact, PortError> {
        self.files.import(from, name)
    }

    fn settle(&self) -> Result<(), PortError> {
        self.files.settle()
    }

    fn changed(&self, artifacts: &[Artifact]) -> Result<Vec<Artifact>, PortError> {
        let changed = self.files.changed(artifacts)?;
        let by_path = changed.iter().map(|artifact| (artifact.path.clone(), artifact.clone()));
        self.digests.noted().changed_artifacts.extend(by_path);
        Ok(changed)
    }

    fn restore(&self, artifacts: &[Artifact]) -> Result<(), PortError> {
        self.files.restore(artifacts)
    }

    fn open_copy(&self, artifact: &Artifact) -> Result<Box<dyn Read>, PortError> {
        self.files.open_copy(artifact)
    }

    fn open(&self, artifact: &Artifact) -> Result<Box<dyn Read>, PortError> {
        self.files.open(artifact)
    }
}

/// The agents, with a note of each answer that is kept.
struct NotingAgent<'a> {
    agent: &'a dyn Agent,
    digests: &'a StepDigests,
}

impl Agent for NotingAgent<'_> {
    fn answers(&self, role: Role) -> bool {
        self.agent.answers(role)
    }

    fn edits(&self, role: Role) -> Edits {
        self.agent.edits(role)
    }

    fn continues(&self, role: Role) -> bool {
        self.agent.continues(role)
    }

    fn ask(&self, ask: &Ask) -> Result<Reply, AgentError> {
        let reply = self.agent.ask(ask)?;
        if let Some(FileDigest { path, sha256 }) = &reply.kept_as {
            self.digests.note(path.clone(), *sha256);
        }
        Ok(reply)
    }
}
