//! Describes a job in a file in its folder. It contains no values of variables: those are in the
//! environment of the job's process. The run directory follows from the path of the file.

use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use treebeam_core::event::SweepSubject;
use treebeam_core::id::{Commit, RunId, RunPath};
use treebeam_core::measure::WorktreePath;
use treebeam_store::record_file::{self, RecordKind};
use treebeam_store::{RunDir, atomic_file};

pub(super) use treebeam_run::port::JobStage;

/// Name of the job's file.
pub const JOB_SPEC_FILE: &str = "job.json";

/// Version of the format, the only one so far.
const JOB_SPEC_VERSION: u32 = 1;

/// A job's description, the content of `job.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct JobSpec {
    pub(super) version: u32,
    /// Name of the job, for people.
    pub(super) job: String,
    pub(super) run: RunId,
    pub(super) subject: SweepSubject,
    pub(super) submission: u32,
    pub(super) commit: Commit,
    pub(super) worktree: RunPath,
    /// User's own worktree, in which the commands run instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) in_place: Option<PathBuf>,
    /// Commands, in order.
    pub(super) commands: Vec<JobCommand>,
    /// Path of the results of a sweep that ignores the variables for its output.
    pub(super) results_csv: Option<WorktreePath>,
    /// Untracked inputs: path in the repository, and path of the link in the worktree.
    pub(super) inputs: Vec<(PathBuf, WorktreePath)>,
    pub(super) sweep_config_limit: Option<u32>,
    /// Names of the variables that the commands get.
    pub(super) variables: Vec<String>,
    pub(super) times: JobTimes,
}

/// A command of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct JobCommand {
    pub(super) stage: JobStage,
    /// Program and arguments.
    pub(super) parts: Vec<String>,
    /// Working directory, relative to the worktree.
    pub(super) cwd: Option<WorktreePath>,
}

/// Time limit of a job, and time between the request to end and the kill.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct JobTimes {
    pub(super) timeout: Option<Duration>,
    pub(super) grace: Duration,
}

impl JobSpec {
    /// Creates a job without commands.
    pub(super) fn new(run: RunId, subject: SweepSubject, submission: u32, commit: Commit) -> Self {
        Self {
            version: JOB_SPEC_VERSION,
            job: format!("tree-{run}-{subject}-sweep-s{submission}"),
            run,
            subject,
            submission,
            commit,
            worktree: subject.code_place().worktree_path(),
            in_place: None,
            commands: Vec::new(),
            results_csv: None,
            inputs: Vec::new(),
            sweep_config_limit: None,
            variables: Vec::new(),
            times: JobTimes { timeout: None, grace: Duration::ZERO },
        }
    }

    /// Writes the file into the job's folder, atomically.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(self)?;
        atomic_file::replace_file(&folder.join(JOB_SPEC_FILE), |file| file.write_all(&text))
    }

    /// Reads the file; returns it with its folder and its run directory.
    pub(super) fn read(path: &Path) -> io::Result<(Self, PathBuf, RunDir)> {
        let path = std::path::absolute(path)?;
        let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        if path.file_name() != Some(OsStr::new(JOB_SPEC_FILE)) {
            return Err(wrong("a job is named by its file `job.json`"));
        }
        let spec: Self =
            serde_json::from_slice(&record_file::read_record(&path, RecordKind::JobOrder)?)?;
        if spec.version != JOB_SPEC_VERSION {
            return Err(wrong("it is of another version of treebeam"));
        }
        // The path is `<run>/eval/<subject>/s<n>/job.json`.
        let folder = path.parent().ok_or_else(|| wrong("it lies in no folder"))?;
        let run = folder.ancestors().nth(3).ok_or_else(|| wrong("it lies in no run"))?;
        Ok((spec, folder.to_owned(), RunDir::new(run)))
    }
}
