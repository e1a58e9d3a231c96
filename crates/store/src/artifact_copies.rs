//! Artifacts that were changed on disk: which of them need not be read to know that they were not,
//! and where else in the run their content lies.

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

/// The artifacts whose digest this process has verified, each with what the system said of its file
/// then.
#[derive(Debug)]
pub(super) struct VerifiedArtifacts(Mutex<BTreeMap<RunPath, (Sha256, FileStamp)>>);

impl VerifiedArtifacts {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Whether an artifact is what was recorded. Its digest is asked for only where the system says
    /// something else of the file than when it was last verified.
    pub(super) fn is_intact(
        &self,
        full: &Path,
        artifact: &Artifact,
        is_recorded: impl FnOnce() -> bool,
    ) -> bool {
        // Taken before the file is read: a change while it is read shows the next time.
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

/// Where in the run the content of an artifact may lie: the file that it was copied from, and what
/// each submission of its sweep has left.
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

/// The subject whose sweep an artifact is of, by its name: `e0007-a2.csv`.
fn artifact_subject(artifact: &Artifact) -> SweepSubject {
    let name = artifact.path.as_str().rsplit('/').next().unwrap_or_default();
    let stem = name.split(['-', '.']).next().unwrap_or_default();
    match stem.parse() {
        Ok(CodePlace::Candidate(id)) => SweepSubject::Eval(id),
        Ok(CodePlace::Node(_)) | Err(_) => SweepSubject::Root,
    }
}
