//! Digest cache of verified artifacts, and the places in a run that may hold a copy of one. The
//! cache lets an artifact whose file is unchanged on disk pass without being read again.

use super::layout::RunDir;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use treebeam_core::event::SweepSubject;
use treebeam_core::evidence::Artifact;
use treebeam_core::id::{CodePlace, RunPath, Sha256};
use treebeam_core::path;
use treebeam_git::{FileStamp, file_stamp};

/// The artifacts whose digest this process has verified, each with its file's metadata then.
#[derive(Debug)]
pub(super) struct VerifiedArtifacts(Mutex<BTreeMap<RunPath, (Sha256, FileStamp)>>);

impl VerifiedArtifacts {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Returns true if an artifact is what was recorded. Calls `is_recorded`, which reads the file,
    /// only if the file's metadata differs from that of the last verification.
    pub(super) fn is_intact(
        &self,
        full: &Path,
        artifact: &Artifact,
        is_recorded: impl FnOnce() -> bool,
    ) -> bool {
        // Taken before the file is read, so that a change during the read shows the next time.
        let now = regular_file_stamp(full).map(|stamp| (artifact.sha256, stamp));
        if now.is_some() && now.as_ref() == self.lock_digests().get(&artifact.path) {
            return true;
        }
        let holds = is_recorded();
        if let Some(now) = now.filter(|_| holds) {
            self.lock_digests().insert(artifact.path.clone(), now);
        }
        holds
    }

    fn lock_digests(&self) -> MutexGuard<'_, BTreeMap<RunPath, (Sha256, FileStamp)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn regular_file_stamp(full: &Path) -> Option<FileStamp> {
    let found = fs::symlink_metadata(full).ok()?;
    found.is_file().then(|| file_stamp(&found))
}

/// Returns the paths in the run that may hold the content of an artifact: the file that it was
/// copied from, and the results of each submission of its sweep.
pub(super) fn find_copies(run: &RunDir, artifact: &Artifact) -> Vec<RunPath> {
    let subject = artifact_subject(artifact);
    let home = path::subject_folder(subject);
    let mut copies: Vec<RunPath> = artifact.source.parse().into_iter().collect();
    copies.push(home.join("experiment").join(path::RESULTS_CSV));
    let entries = fs::read_dir(run.file_path(&home)).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut numbers: Vec<u32> =
        names.filter_map(|name| name.strip_prefix('s')?.parse().ok()).collect();
    numbers.sort_unstable();
    for number in numbers {
        let submission = path::submission_folder(subject, number);
        let results = [path::RESULTS_CSV, path::ROOT_BASELINE_CSV];
        copies.extend(results.map(|name| submission.join(name)));
    }
    copies
}

/// Returns the subject whose sweep produced an artifact, taken from its name: `e0007-a2.csv`.
fn artifact_subject(artifact: &Artifact) -> SweepSubject {
    let name = artifact.path.as_str().rsplit('/').next().unwrap_or_default();
    let stem = name.split(['-', '.']).next().unwrap_or_default();
    match stem.parse() {
        Ok(CodePlace::Candidate(id)) => SweepSubject::Eval(id),
        Ok(CodePlace::Node(_)) | Err(_) => SweepSubject::Root,
    }
}
