//! Supplies existing results of the user's as the result of the root's sweep. The user's file is
//! copied to where the root's sweep would have written, and recorded as what it is. All other jobs
//! are passed on to another executor.

use super::job_result::JobResult;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use treebeam_core::event::{FailureKind, SweepSubject};
use treebeam_core::measure::UserPath;
use treebeam_core::path;
use treebeam_run::port::{Executor, JobEnd, JobExit, JobKey, PortError, SweepJob};
use treebeam_store::input;
use treebeam_store::{RunDir, atomic_file};

/// Existing results of the root.
#[derive(Clone, Debug)]
pub struct UserBaseline {
    /// Directory of the run.
    pub run: RunDir,
    /// Top folder of the repository, to which the user's paths are relative.
    pub top: PathBuf,
    /// Results of the root; `None` if its sweep is to be run.
    pub results: Option<UserPath>,
    /// Results that candidates are compared with as the root's, if not `results`.
    pub root: Option<UserPath>,
}

/// An executor that takes the root's results from the user.
#[derive(Debug)]
pub struct UserBaselineExecutor<E> {
    executor: E,
    baseline: UserBaseline,
    /// Ends of jobs that have not been reported.
    ends: Mutex<Vec<JobEnd>>,
}

impl<E: Executor> UserBaselineExecutor<E> {
    /// Wraps an executor, with these results for the root.
    #[must_use]
    pub const fn new(executor: E, given: UserBaseline) -> Self {
        Self { executor, baseline: given, ends: Mutex::new(Vec::new()) }
    }

    fn lock_ends(&self) -> MutexGuard<'_, Vec<JobEnd>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UserBaseline {
    fn build_job_end(&self, job: &SweepJob, results: &UserPath) -> JobEnd {
        let exit = match self.copy_into_job(job, results) {
            Ok(exit) => exit,
            Err(message) => JobExit::Failed { kind: FailureKind::Results, message },
        };
        JobEnd { user_baseline: Some(results.clone()), ..JobEnd::new(job.key, exit) }
    }

    fn copy_into_job(&self, job: &SweepJob, results: &UserPath) -> Result<JobExit, String> {
        let place = path::submission_folder(job.key.subject, job.key.submission);
        let folder = self.run.file_path(&place);
        let in_words = |error: io::Error| format!("the baseline cannot be taken in: {error}");
        fs::create_dir_all(&folder).map_err(in_words)?;
        self.copy_results(results, &folder.join(path::RESULTS_CSV))?;
        if let Some(root) = &self.root {
            self.copy_results(root, &folder.join(path::ROOT_BASELINE_CSV))?;
        }
        JobResult::from_user_baseline(job, &folder)
            .and_then(|outcome| outcome.publish(&folder))
            .map_err(in_words)?;
        Ok(JobExit::Done { results: place.join(path::RESULTS_CSV) })
    }

    fn copy_results(&self, from: &UserPath, to: &Path) -> Result<(), String> {
        let from = self.top.join(from.as_str());
        let name = from.display().to_string();
        let mut source = input::open_input(&from, &name).map_err(|error| error.to_string())?;
        atomic_file::replace_file(to, |file| {
            treebeam_store::copy_and_digest(&mut source, file).map(drop)
        })
        .map_err(|error| format!("cannot copy `{name}`: {error}"))
    }
}

impl<E: Executor> Executor for UserBaselineExecutor<E> {
    fn submit_job(&self, job: &SweepJob) -> Result<(), PortError> {
        match (&self.baseline.results, job.key.subject) {
            (Some(results), SweepSubject::Root) => {
                let end = self.baseline.build_job_end(job, results);
                self.lock_ends().push(end);
                Ok(())
            }
            (None, _) | (_, SweepSubject::Eval(_)) => self.executor.submit_job(job),
        }
    }

    fn adopt_jobs(&self, jobs: &[SweepJob]) -> Result<Vec<JobKey>, PortError> {
        let given = |job: &SweepJob| {
            self.baseline.results.is_some() && job.key.subject == SweepSubject::Root
        };
        let others: Vec<SweepJob> = jobs.iter().filter(|job| !given(job)).cloned().collect();
        self.executor.adopt_jobs(&others)
    }

    fn wait_for_jobs(&self, patience: Duration) -> Result<Vec<JobEnd>, PortError> {
        let ends = std::mem::take(&mut *self.lock_ends());
        if ends.is_empty() { self.executor.wait_for_jobs(patience) } else { Ok(ends) }
    }
}
