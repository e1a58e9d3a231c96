//! Computes the sweeps of the dry world from the candidate's state file. Jobs end in a seeded
//! order, not in that of their submission; nothing ever sleeps.

use super::results::DrySweepShape;
use super::{DryRecipe, STATE_FILE, draw_number};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use treebeam_core::event::FailureKind;
use treebeam_core::path;
use treebeam_core::policy::ScorePolicy;
use treebeam_run::port::{Executor, JobEnd, JobExit, JobKey, PortError, SweepJob};
use treebeam_store::RunDir;
use treebeam_store::record_file::{self, RecordKind};

/// Number of configurations of a sweep without a limit.
const DEFAULT_SWEEP_CONFIGS: u32 = 12;

/// An executor that computes the results of sweeps.
#[derive(Debug)]
pub struct DryExecutor {
    seed: u64,
    run_dir: RunDir,
    /// Columns of the CSVs.
    shape: DrySweepShape,
    /// Jobs whose end has not been reported, by their position in the order of ends.
    jobs: Mutex<BTreeMap<u64, PendingJob>>,
    arrived: Condvar,
}

#[derive(Debug)]
enum PendingJob {
    Waiting(SweepJob),
    Ended(JobEnd),
}

/// Content of the dry world's `eval_result.json`.
#[derive(Debug, Serialize, Deserialize)]
struct DryEvalResult {
    exit_code: i32,
    message: Option<String>,
}

impl DryExecutor {
    /// Creates an executor for one run, whose sweeps have the columns that the run scores.
    #[must_use]
    pub fn new(seed: u64, run_dir: RunDir, policy: &ScorePolicy) -> Self {
        let shape = DrySweepShape::from_policy(policy);
        Self { seed, run_dir, shape, jobs: Mutex::default(), arrived: Condvar::new() }
    }

    fn lock_jobs(&self) -> MutexGuard<'_, BTreeMap<u64, PendingJob>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end_position(&self, key: JobKey) -> u64 {
        draw_number(self.seed, &format!("order {}", key.subject))
    }

    /// Computes a job: new folder, results, and last the file that says how it ended. If that file
    /// survives a power cut, the results do too.
    fn run_sweep(&self, job: &SweepJob) -> io::Result<JobEnd> {
        let folder = path::submission_folder(job.key.subject, job.key.submission);
        fs::create_dir_all(self.run_dir.file_path(&folder))?;
        let recipes = self.read_recipes(job)?;
        let failed = recipes.contains(&DryRecipe::SweepFails);
        if !failed {
            let rows = job.sweep_config_limit.unwrap_or(DEFAULT_SWEEP_CONFIGS);
            let csv = self.shape.render_csv(&recipes, rows)?;
            write_synced(&self.run_dir.file_path(&folder.join(path::RESULTS_CSV)), csv.as_ref())?;
        }
        let message = failed.then(|| "sweep exited 1: the dry world says so".to_owned());
        let result = DryEvalResult { exit_code: i32::from(failed), message };
        let text = serde_json::to_vec(&result)?;
        let (part, whole) = (folder.join("eval_result.part"), folder.join(path::EVAL_RESULT_FILE));
        write_synced(&self.run_dir.file_path(&part), &text)?;
        treebeam_store::sync_dir(&self.run_dir.file_path(&folder))?;
        fs::rename(self.run_dir.file_path(&part), self.run_dir.file_path(&whole))?;
        Ok(build_job_end(job.key, result))
    }

    fn read_recipes(&self, job: &SweepJob) -> io::Result<Vec<DryRecipe>> {
        let worktree = self.run_dir.file_path(&job.key.subject.code_place().worktree_path());
        if !worktree.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "its worktree is gone"));
        }
        match fs::read_to_string(worktree.join(STATE_FILE)) {
            Ok(text) => Ok(text.lines().filter_map(|line| line.parse().ok()).collect()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn find_job_end(&self, key: JobKey) -> Option<JobEnd> {
        let folder = path::submission_folder(key.subject, key.submission);
        let result = self.run_dir.file_path(&folder.join(path::EVAL_RESULT_FILE));
        let text = record_file::read_record(&result, RecordKind::JobResult).ok()?;
        Some(build_job_end(key, serde_json::from_slice(&text).ok()?))
    }
}

impl Executor for DryExecutor {
    fn submit_job(&self, job: &SweepJob) -> Result<(), PortError> {
        self.lock_jobs().insert(self.end_position(job.key), PendingJob::Waiting(job.clone()));
        self.arrived.notify_one();
        Ok(())
    }

    fn adopt_jobs(&self, jobs: &[SweepJob]) -> Result<Vec<JobKey>, PortError> {
        let found: Vec<_> = jobs.iter().filter_map(|job| self.find_job_end(job.key)).collect();
        let known = found.iter().map(|end| end.key).collect();
        self.lock_jobs().extend(
            found.into_iter().map(|end| (self.end_position(end.key), PendingJob::Ended(end))),
        );
        Ok(known)
    }

    fn wait_for_jobs(&self, patience: Duration) -> Result<Vec<JobEnd>, PortError> {
        let jobs = self.lock_jobs();
        let (mut jobs, _) = self
            .arrived
            .wait_timeout_while(jobs, patience, |jobs| jobs.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        let first = jobs.pop_first();
        drop(jobs);
        match first {
            None => Ok(Vec::new()),
            Some((_, PendingJob::Ended(end))) => Ok(vec![end]),
            Some((_, PendingJob::Waiting(job))) => {
                let what = format!("cannot sweep `{}`", job.key.subject);
                let end = self.run_sweep(&job);
                end.map(|end| vec![end]).map_err(|error| PortError::new(what).with_cause(error))
            }
        }
    }
}

/// Writes a file and syncs it.
fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn build_job_end(key: JobKey, result: DryEvalResult) -> JobEnd {
    let folder = path::submission_folder(key.subject, key.submission);
    let exit = match result {
        DryEvalResult { exit_code: 0, .. } => {
            JobExit::Done { results: folder.join(path::RESULTS_CSV) }
        }
        DryEvalResult { exit_code, message } => {
            let message = message.unwrap_or_else(|| format!("sweep exited {exit_code}"));
            JobExit::Failed { kind: FailureKind::Sweep, message }
        }
    };
    JobEnd::new(key, exit)
}
