//! What a job is to do, as a file in its folder. It holds no value of a variable: those are in the environment that the
//! job's process is started with. Where the run lies follows from where the file lies.

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

/// The name of the file.
pub const JOB_SPEC_FILE: &str = "job.json";

/// The only version that there is.
const JOB_SPEC_VERSION: u32 = 1;

/// A job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct JobSpec {
    pub(super) version: u32,
    /// Its name, for people.
    pub(super) job: String,
    pub(super) run: RunId,
    pub(super) subject: SweepSubject,
    pub(super) submission: u32,
    pub(super) commit: Commit,
    pub(super) worktree: RunPath,
    /// The user's own worktree, where the commands run instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) in_place: Option<PathBuf>,
    /// What is run, in this order.
    pub(super) commands: Vec<JobCommand>,
    /// Where a sweep that does not heed the variables writes its results.
    pub(super) results_csv: Option<WorktreePath>,
    /// What the worktree needs that git does not track: where it is, and where it goes.
    pub(super) inputs: Vec<(PathBuf, WorktreePath)>,
    pub(super) sweep_config_limit: Option<u32>,
    /// The variables that the commands get, by name.
    pub(super) variables: Vec<String>,
    pub(super) times: JobTimes,
}

/// One of a job's commands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct JobCommand {
    pub(super) stage: JobStage,
    /// The program and its arguments.
    pub(super) parts: Vec<String>,
    /// Where it runs, below the worktree.
    pub(super) cwd: Option<WorktreePath>,
}

/// How long a job may take, and how long what is asked to end has until it is killed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct JobTimes {
    pub(super) timeout: Option<Duration>,
    pub(super) grace: Duration,
}

impl JobSpec {
    /// A job without commands.
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

    /// Puts the file into the job's folder, whole.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(self)?;
        atomic_file::replace_file(&folder.join(JOB_SPEC_FILE), |file| file.write_all(&text))
    }

    /// Reads the file, and says in which folder and which run it lies.
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
        // `<run>/eval/<subject>/s<n>/job.json`
        let folder = path.parent().ok_or_else(|| wrong("it lies in no folder"))?;
        let run = folder.ancestors().nth(3).ok_or_else(|| wrong("it lies in no run"))?;
        Ok((spec, folder.to_owned(), RunDir::new(run)))
    }
}
