//! A root that was measured before: its results lie in a file of the user's, which is taken in where the root's sweep
//! would have written its own, and called what it is. Every other job is somebody else's.

use super::outcome::Outcome;
use crate::input;
use crate::store::{self, RunDir, durable};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use treebeam_core::event::{FailureKind, Subject};
use treebeam_core::measure::UserPath;
use treebeam_core::path;
use treebeam_run::port::{Executor, Job, JobEnd, JobExit, JobKey, PortError};

/// Results that are there already.
#[derive(Clone, Debug)]
pub struct GivenBaseline {
    /// Where the run lies.
    pub run: RunDir,
    /// The repository's top, which paths of the user's begin at.
    pub top: PathBuf,
    /// The root's results; none: its sweep is run.
    pub results: Option<UserPath>,
    /// What candidates are compared with as the root's, if not the same.
    pub root: Option<UserPath>,
}

/// An executor that knows how the root's sweep ends.
#[derive(Debug)]
pub struct WithBaseline<E> {
    executor: E,
    given: GivenBaseline,
    /// Ends that were not said.
    ends: Mutex<Vec<JobEnd>>,
}

impl<E: Executor> WithBaseline<E> {
    /// The same executor, with these results for the root.
    #[must_use]
    pub const fn new(executor: E, given: GivenBaseline) -> Self {
        Self { executor, given, ends: Mutex::new(Vec::new()) }
    }

    fn ends(&self) -> MutexGuard<'_, Vec<JobEnd>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GivenBaseline {
    fn end(&self, job: &Job, results: &UserPath) -> JobEnd {
        let exit = match self.take_in(job, results) {
            Ok(exit) => exit,
            Err(message) => JobExit::Failed { kind: FailureKind::Results, message },
        };
        JobEnd { given: Some(results.clone()), ..JobEnd::new(job.key, exit) }
    }

    fn take_in(&self, job: &Job, results: &UserPath) -> Result<JobExit, String> {
        let place = path::submission(job.key.subject, job.key.submission);
        let folder = self.run.path(&place);
        let in_words = |error: io::Error| format!("the baseline cannot be taken in: {error}");
        fs::create_dir_all(&folder).map_err(in_words)?;
        self.copy(results, &folder.join(path::RESULTS_CSV))?;
        if let Some(root) = &self.root {
            self.copy(root, &folder.join(path::ROOT_BASELINE_CSV))?;
        }
        Outcome::given(job, &folder)
            .and_then(|outcome| outcome.publish(&folder))
            .map_err(in_words)?;
        Ok(JobExit::Done { results: place.join(path::RESULTS_CSV) })
    }

    fn copy(&self, from: &UserPath, to: &Path) -> Result<(), String> {
        let from = self.top.join(from.as_str());
        let name = from.display().to_string();
        let mut source = input::open(&from, &name).map_err(|error| error.to_string())?;
        durable::replace(to, |file| store::copy_and_digest(&mut source, file).map(drop))
            .map_err(|error| format!("cannot copy `{name}`: {error}"))
    }
}

impl<E: Executor> Executor for WithBaseline<E> {
    fn submit(&self, job: &Job) -> Result<(), PortError> {
        match (&self.given.results, job.key.subject) {
            (Some(results), Subject::Root) => {
                let end = self.given.end(job, results);
                self.ends().push(end);
                Ok(())
            }
            (None, _) | (_, Subject::Eval(_)) => self.executor.submit(job),
        }
    }

    fn adopt(&self, jobs: &[Job]) -> Result<Vec<JobKey>, PortError> {
        let given = |job: &Job| self.given.results.is_some() && job.key.subject == Subject::Root;
        let others: Vec<Job> = jobs.iter().filter(|job| !given(job)).cloned().collect();
        self.executor.adopt(&others)
    }

    fn wait(&self, patience: Duration) -> Result<Vec<JobEnd>, PortError> {
        let ends = std::mem::take(&mut *self.ends());
        if ends.is_empty() { self.executor.wait(patience) } else { Ok(ends) }
    }
}
