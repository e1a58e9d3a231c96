//! The run's files of the world in memory.

use super::MemoryWorld;
use std::io::{Cursor, Read};
use treebeam_core::event::Subject;
use treebeam_core::evidence::Artifact;
use treebeam_core::id::{EvalId, RunPath, Sha256};
use treebeam_core::path;
use treebeam_run::port::{Files, PortError};

impl Files for MemoryWorld {
    fn write(&self, path: &RunPath, bytes: &[u8]) -> Result<(), PortError> {
        self.lock().files.insert(path.to_string(), bytes.to_vec());
        Ok(())
    }

    fn read(&self, path: &RunPath, _: usize) -> Result<Vec<u8>, PortError> {
        let disk = self.lock();
        let file = disk.files.get(path.as_str());
        file.cloned().ok_or_else(|| PortError::new(format!("no file {path}")))
    }

    fn find(&self, path: &RunPath, _: usize) -> Result<Option<Vec<u8>>, PortError> {
        Ok(self.lock().files.get(path.as_str()).cloned())
    }

    fn link(&self, from: &RunPath, to: &RunPath) -> Result<Sha256, PortError> {
        let bytes = self.read(from, usize::MAX)?;
        self.write(to, &bytes)?;
        Ok(Sha256::of(&bytes))
    }

    fn remove_submissions(&self, eval: EvalId) -> Result<(), PortError> {
        let folder = format!("{}/s", path::of_subject(Subject::Eval(eval)));
        self.lock().files.retain(|path, _| !path.starts_with(&folder));
        Ok(())
    }

    fn import(&self, from: &RunPath, name: &str) -> Result<Artifact, PortError> {
        let bytes = self.read(from, usize::MAX)?;
        let path: RunPath = format!("artifacts/{name}").parse().expect("a path");
        self.write(&path, &bytes)?;
        Ok(Artifact { path, sha256: Sha256::of(&bytes), source: from.to_string() })
    }

    fn settle(&self) -> Result<(), PortError> {
        Ok(())
    }

    fn changed(&self, artifacts: &[Artifact]) -> Result<Vec<Artifact>, PortError> {
        let mut changed = Vec::new();
        for artifact in artifacts {
            if Sha256::of(&self.read(&artifact.path, usize::MAX)?) != artifact.sha256 {
                changed.push(artifact.clone());
            }
        }
        Ok(changed)
    }

    fn restore(&self, artifacts: &[Artifact]) -> Result<(), PortError> {
        for Artifact { path, source, .. } in self.changed(artifacts)? {
            let copy = self.lock().files.get(&source).cloned().unwrap_or_default();
            self.write(&path, &copy)?;
        }
        Ok(())
    }

    fn open_copy(&self, artifact: &Artifact) -> Result<Box<dyn Read>, PortError> {
        let copy = self.lock().files.get(&artifact.source).cloned().unwrap_or_default();
        Ok(Box::new(Cursor::new(copy)))
    }

    fn open(&self, artifact: &Artifact) -> Result<Box<dyn Read>, PortError> {
        let bytes = self.read(&artifact.path, usize::MAX)?;
        Ok(Box::new(Cursor::new(bytes)))
    }
}
