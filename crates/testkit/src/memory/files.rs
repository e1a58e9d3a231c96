//! Implements the run's files of the world in memory.

use super::MemoryWorld;
use std::io::{Cursor, Read};
use treebeam_core::event::SweepSubject;
use treebeam_core::evidence::Artifact;
use treebeam_core::id::{EvalId, RunPath, Sha256};
use treebeam_core::path;
use treebeam_run::port::{FileStore, PortError};

impl FileStore for MemoryWorld {
    fn write_file(&self, path: &RunPath, bytes: &[u8]) -> Result<(), PortError> {
        self.lock().files.insert(path.to_string(), bytes.to_vec());
        Ok(())
    }

    fn read_file(&self, path: &RunPath, _: usize) -> Result<Vec<u8>, PortError> {
        let disk = self.lock();
        let file = disk.files.get(path.as_str());
        file.cloned().ok_or_else(|| PortError::new(format!("no file {path}")))
    }

    fn find_file(&self, path: &RunPath, _: usize) -> Result<Option<Vec<u8>>, PortError> {
        Ok(self.lock().files.get(path.as_str()).cloned())
    }

    fn link_file(&self, from: &RunPath, to: &RunPath) -> Result<Sha256, PortError> {
        let bytes = self.read_file(from, usize::MAX)?;
        self.write_file(to, &bytes)?;
        Ok(Sha256::hash_bytes(&bytes))
    }

    fn remove_submissions(&self, eval: EvalId) -> Result<(), PortError> {
        let folder = format!("{}/s", path::subject_folder(SweepSubject::Eval(eval)));
        self.lock().files.retain(|path, _| !path.starts_with(&folder));
        Ok(())
    }

    fn import_artifact(&self, from: &RunPath, name: &str) -> Result<Artifact, PortError> {
        let bytes = self.read_file(from, usize::MAX)?;
        let path: RunPath = format!("artifacts/{name}").parse().expect("a path");
        self.write_file(&path, &bytes)?;
        Ok(Artifact { path, sha256: Sha256::hash_bytes(&bytes), source: from.to_string() })
    }

    fn sync_files(&self) -> Result<(), PortError> {
        Ok(())
    }

    fn find_changed_artifacts(&self, artifacts: &[Artifact]) -> Result<Vec<Artifact>, PortError> {
        let mut changed = Vec::new();
        for artifact in artifacts {
            if Sha256::hash_bytes(&self.read_file(&artifact.path, usize::MAX)?) != artifact.sha256 {
                changed.push(artifact.clone());
            }
        }
        Ok(changed)
    }

    fn restore_artifacts(&self, artifacts: &[Artifact]) -> Result<(), PortError> {
        for Artifact { path, source, .. } in self.find_changed_artifacts(artifacts)? {
            let copy = self.lock().files.get(&source).cloned().unwrap_or_default();
            self.write_file(&path, &copy)?;
        }
        Ok(())
    }

    fn open_copy_of(&self, artifact: &Artifact) -> Result<Box<dyn Read>, PortError> {
        let copy = self.lock().files.get(&artifact.source).cloned().unwrap_or_default();
        Ok(Box::new(Cursor::new(copy)))
    }

    fn open_artifact(&self, artifact: &Artifact) -> Result<Box<dyn Read>, PortError> {
        let bytes = self.read_file(&artifact.path, usize::MAX)?;
        Ok(Box::new(Cursor::new(bytes)))
    }
}
