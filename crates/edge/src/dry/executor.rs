//! The dry executor: a sweep is computed from the candidate's state file. Jobs end in a seeded order, not in the order in
//! which they came; nothing ever sleeps.

use super::results::Shape;
use super::{Recipe, STATE_FILE, draw};
use crate::store::record_file::{self, RecordKind};
use crate::store::{self, RunDir};
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
use treebeam_run::port::{Executor, Job, JobEnd, JobExit, JobKey, PortError};

/// How many configurations a sweep without a limit has.
const CONFIGURATIONS: u32 = 12;

/// Computes sweeps.
#[derive(Debug)]
pub struct DryExecutor {
    seed: u64,
    run_dir: RunDir,
    /// What its CSVs look like.
    shape: Shape,
    /// Jobs that have not been said to have ended, by the order in which they will.
    jobs: Mutex<BTreeMap<u64, Pending>>,
    arrived: Condvar,
}

#[derive(Debug)]
enum Pending {
    Waiting(Job),
    Ended(JobEnd),
}

/// What `eval_result.json` says.
#[derive(Debug, Serialize, Deserialize)]
struct EvalResult {
    exit_code: i32,
    message: Option<String>,
}

impl DryExecutor {
    /// An executor for one run, whose sweeps have the columns that the run scores.
    #[must_use]
    pub fn new(seed: u64, run_dir: RunDir, policy: &ScorePolicy) -> Self {
        let shape = Shape::of(policy);
        Self { seed, run_dir, shape, jobs: Mutex::default(), arrived: Condvar::new() }
    }

    fn jobs(&self) -> MutexGuard<'_, BTreeMap<u64, Pending>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self, key: JobKey) -> u64 {
        draw(self.seed, &format!("order {}", key.subject))
    }

    /// Does a job: fresh folder, results, and last the file that says that it ended. Whoever finds that after a power cut finds
    /// the results too.
    fn sweep(&self, job: &Job) -> io::Result<JobEnd> {
        let folder = path::submission(job.key.subject, job.key.submission);
        fs::create_dir_all(self.run_dir.path(&folder))?;
        let recipes = self.recipes(job)?;
        let failed = recipes.contains(&Recipe::SweepFails);
        if !failed {
            let rows = job.sweep_config_limit.unwrap_or(CONFIGURATIONS);
            let csv = self.shape.csv(&recipes, rows)?;
            put(&self.run_dir.path(&folder.join(path::RESULTS_CSV)), csv.as_ref())?;
        }
        let message = failed.then(|| "sweep exited 1: the dry world says so".to_owned());
        let result = EvalResult { exit_code: i32::from(failed), message };
        let text = serde_json::to_vec(&result)?;
        let (part, whole) = (folder.join("eval_result.part"), folder.join(path::EVAL_RESULT));
        put(&self.run_dir.path(&part), &text)?;
        store::sync_dir(&self.run_dir.path(&folder))?;
        fs::rename(self.run_dir.path(&part), self.run_dir.path(&whole))?;
        Ok(ended(job.key, result))
    }

    fn recipes(&self, job: &Job) -> io::Result<Vec<Recipe>> {
        let worktree = self.run_dir.path(&job.key.subject.place().worktree());
        if !worktree.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "its worktree is gone"));
        }
        match fs::read_to_string(worktree.join(STATE_FILE)) {
            Ok(text) => Ok(text.lines().filter_map(|line| line.parse().ok()).collect()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn find(&self, key: JobKey) -> Option<JobEnd> {
        let folder = path::submission(key.subject, key.submission);
        let result = self.run_dir.path(&folder.join(path::EVAL_RESULT));
        let text = record_file::read(&result, RecordKind::JobResult).ok()?;
        Some(ended(key, serde_json::from_slice(&text).ok()?))
    }
}

impl Executor for DryExecutor {
    fn submit(&self, job: &Job) -> Result<(), PortError> {
        self.jobs().insert(self.turn(job.key), Pending::Waiting(job.clone()));
        self.arrived.notify_one();
        Ok(())
    }

    fn adopt(&self, jobs: &[Job]) -> Result<Vec<JobKey>, PortError> {
        let found: Vec<_> = jobs.iter().filter_map(|job| self.find(job.key)).collect();
        let known = found.iter().map(|end| end.key).collect();
        self.jobs().extend(found.into_iter().map(|end| (self.turn(end.key), Pending::Ended(end))));
        Ok(known)
    }

    fn wait(&self, patience: Duration) -> Result<Vec<JobEnd>, PortError> {
        let jobs = self.jobs();
        let (mut jobs, _) = self
            .arrived
            .wait_timeout_while(jobs, patience, |jobs| jobs.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        let first = jobs.pop_first();
        drop(jobs);
        match first {
            None => Ok(Vec::new()),
            Some((_, Pending::Ended(end))) => Ok(vec![end]),
            Some((_, Pending::Waiting(job))) => {
                let what = format!("cannot sweep `{}`", job.key.subject);
                let end = self.sweep(&job);
                end.map(|end| vec![end]).map_err(|error| PortError::new(what).caused_by(error))
            }
        }
    }
}

/// Writes a file that is on disk then.
fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn ended(key: JobKey, result: EvalResult) -> JobEnd {
    let folder = path::submission(key.subject, key.submission);
    let exit = match result {
        EvalResult { exit_code: 0, .. } => {
            JobExit::Done { results: folder.join(path::RESULTS_CSV) }
        }
        EvalResult { exit_code, message } => {
            let message = message.unwrap_or_else(|| format!("sweep exited {exit_code}"));
            JobExit::Failed { kind: FailureKind::Sweep, message }
        }
    };
    JobEnd::new(key, exit)
}
