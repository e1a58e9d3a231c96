//! Writes and reads `eval_result.json`, which says how a job ended. The file is written completely
//! and created once: a second result is refused. A reader counts it only once the job's process has
//! ended.

use super::spec::{JobSpec, JobStage};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use treebeam_core::event::FailureKind;
use treebeam_core::id::{Commit, RunPath, Sha256};
use treebeam_core::path;
use treebeam_run::port::{self, JobEnd, JobExit, JobKey, JobUsage, SweepJob};
use treebeam_store::atomic_file;
use treebeam_store::record_file::{self, RecordKind};

/// The largest results that are taken.
pub(super) const MAX_RESULTS_CSV_BYTES: u64 = 1 << 30;

/// Maximum size of the file, in bytes.
const MAX_JOB_RESULT_BYTES: u64 = 1 << 20;

/// Schema name in the file.
const JOB_RESULT_SCHEMA: &str = "treebeam.eval_result/1";

/// The content of `eval_result.json`: how a job ended.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct JobResult {
    schema: String,
    job: String,
    commit: Commit,
    /// Failure of the job; `None` if it succeeded.
    pub(super) failure: Option<JobFailure>,
    /// Commands that ran, in order.
    pub(super) stages: Vec<StageRecord>,
    pub(super) results: Option<ResultsFile>,
    pub(super) usage: JobUsage,
}

/// The reason why a job failed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct JobFailure {
    /// Stage of the failed command; `None` if no command was reached.
    pub(super) stage: Option<JobStage>,
    pub(super) kind: FailureKind,
    pub(super) message: String,
}

/// A command that ran, with the end of its output.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StageRecord {
    #[serde(flatten)]
    pub(super) ran: port::CommandRecord,
    /// End of the command's output, as text.
    pub(super) tail: String,
}

/// Path and digest of a sweep's results.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ResultsFile {
    /// File name in the job's folder.
    pub(super) path: String,
    pub(super) sha256: Sha256,
    pub(super) bytes: u64,
}

impl JobResult {
    pub(super) fn new(
        spec: &JobSpec,
        stages: Vec<StageRecord>,
        ended: Result<ResultsFile, JobFailure>,
        usage: JobUsage,
    ) -> Self {
        let (results, failure) = match ended {
            Ok(results) => (Some(results), None),
            Err(failure) => (None, Some(failure)),
        };
        let (job, commit) = (spec.job.clone(), spec.commit.clone());
        let schema = JOB_RESULT_SCHEMA.to_owned();
        Self { schema, job, commit, failure, stages, results, usage }
    }

    /// Builds the root's result from a user's baseline that was copied to this folder.
    pub(super) fn from_user_baseline(job: &SweepJob, folder: &Path) -> io::Result<Self> {
        let file = folder.join(path::RESULTS_CSV);
        let (sha256, bytes) =
            (treebeam_store::digest_file(&file)?, fs::symlink_metadata(&file)?.len());
        let results = ResultsFile { path: path::RESULTS_CSV.to_owned(), sha256, bytes };
        Ok(Self {
            schema: JOB_RESULT_SCHEMA.to_owned(),
            job: format!("{}-given-s{}", job.key.subject, job.key.submission),
            commit: job.commit.clone(),
            failure: None,
            stages: Vec::new(),
            results: Some(results),
            usage: JobUsage { wall_seconds: 0.0, cpu_seconds: None, peak_memory_bytes: None },
        })
    }

    /// Publishes the result in the job's folder and syncs the folder. Returns false if there is a
    /// result already, which is kept.
    pub(super) fn publish(&self, folder: &Path) -> io::Result<bool> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        atomic_file::sync_dir(folder)?;
        match atomic_file::create_file(&folder.join(path::EVAL_RESULT_FILE), |file| {
            file.write_all(&text)
        }) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            put => put.and_then(|()| atomic_file::sync_dir(folder)).map(|()| true),
        }
    }

    /// Reads the result of an ended job; `None` if there is no valid one.
    pub(super) fn read(folder: &Path) -> io::Result<Option<Self>> {
        let file = folder.join(path::EVAL_RESULT_FILE);
        if !is_file_within(&file, MAX_JOB_RESULT_BYTES) || !is_folder(folder) {
            return Ok(None);
        }
        let text = record_file::read_record(&file, RecordKind::JobResult)?;
        Ok(serde_json::from_slice(&text).ok())
    }

    /// Converts the result for the run, with those logs and results that are regular files.
    pub(super) fn into_job_end(self, key: JobKey, folder: &Path) -> JobEnd {
        let run_path = path::submission_folder(key.subject, key.submission);
        let logs =
            path::LOG_FILES.iter().filter(|name| is_file_within(&folder.join(name), u64::MAX));
        let logs: Vec<RunPath> = logs.map(|name| run_path.join(name)).collect();
        let is_there = is_file_within(&folder.join(path::RESULTS_CSV), MAX_RESULTS_CSV_BYTES);
        let results_sha256 = self.results.as_ref().map(|results| results.sha256);
        let exit = match self.failure {
            Some(JobFailure { kind, message, .. }) => JobExit::Failed { kind, message },
            None if is_there => JobExit::Done { results: run_path.join(path::RESULTS_CSV) },
            None => JobExit::Failed {
                kind: FailureKind::NoResults,
                message: "the sweep succeeded, but its results are gone".to_owned(),
            },
        };
        let ran = self.stages.into_iter().map(|stage| stage.ran).collect();
        let used = Some(self.usage);
        JobEnd { logs, commands: ran, usage: used, results_sha256, ..JobEnd::new(key, exit) }
    }
}

/// Returns true if the path is a regular file of at most this size.
pub(super) fn is_file_within(path: &Path, most: u64) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() <= most)
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}
