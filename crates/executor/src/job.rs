//! The process of one job: it runs the commands, ends all that they started, looks for the results, and publishes what
//! became of it, once. It writes in its own folder and in the candidate's worktree, and knows nothing of the run's state.

use super::claim::{self, JobClaim};
use super::job_result::{JobFailure, JobResult, ResultsFile, StageRecord};
use super::limit::JobLimit;
use super::results::{ResultsPlaces, remove_entry};
use super::spec::{JobSpec, JobStage};
use super::stage::{self, StageRunner};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use treebeam_core::event::FailureKind;
use treebeam_core::path;
use treebeam_git::input_links;
use treebeam_process::ChildCount;
use treebeam_run::port::JobUsage;

/// Why a job has no result of this process. That its commands fail is a result.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// It cannot be read.
    #[error("`{path}` is no job")]
    Spec {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Another process does it.
    #[error("another process does the job `{job}`")]
    Claimed {
        /// Its name.
        job: String,
    },
    /// It has a result.
    #[error("the job `{job}` has a result already")]
    Ended {
        /// Its name.
        job: String,
    },
    /// It was told to end.
    #[error("the job `{job}` was withdrawn")]
    Withdrawn {
        /// Its name.
        job: String,
    },
    /// The disk or the system refused something.
    #[error("the job `{job}` cannot be done")]
    Io {
        /// Its name.
        job: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// A job that this process is to do, and nobody else.
#[derive(Debug)]
pub struct ClaimedJob {
    spec: JobSpec,
    folder: PathBuf,
    run: treebeam_store::RunDir,
    /// Held until the end.
    _claim: fs::File,
}

impl ClaimedJob {
    /// Takes the job whose file this is.
    ///
    /// # Errors
    /// When it cannot be read, another process does it, or it has a result.
    pub fn claim(path: &Path) -> Result<Self, JobError> {
        let wrong = |source| JobError::Spec { path: path.to_owned(), source };
        let (spec, folder, run) = JobSpec::read(path).map_err(wrong)?;
        let job = spec.job.clone();
        let claim = match claim::inherit_claim(&folder) {
            Err(source) => return Err(JobError::Io { job, source }),
            Ok(JobClaim::HeldElsewhere) => return Err(JobError::Claimed { job }),
            Ok(JobClaim::Acquired(claim)) => claim,
        };
        if fs::symlink_metadata(folder.join(path::EVAL_RESULT_FILE)).is_ok() {
            return Err(JobError::Ended { job });
        }
        Ok(Self { spec, folder, run, _claim: claim })
    }

    /// Ends all that this job has started, and may still be there. For a process that is asked to end.
    pub fn termination_handler(&self) -> impl FnMut() + Send + 'static {
        let (mark, grace) = (super::job_marker(&self.folder), self.spec.times.grace);
        move || {
            treebeam_process::end_all();
            // What is left is found by whoever runs the job again.
            let _ = treebeam_process::end_marked(&mark, grace);
        }
    }

    /// Does it, from its commands to its result.
    ///
    /// # Errors
    /// When the result could not be published, or nobody wants one any more.
    pub fn perform(self) -> Result<(), JobError> {
        let begun = Instant::now();
        let limit = JobLimit::new(&self.folder, begun, self.spec.times.timeout);
        let (stages, ended) = self.run_commands(&limit);
        if limit.is_withdrawn() {
            return Err(JobError::Withdrawn { job: self.spec.job.clone() });
        }
        let forged = self.remove_forged_files();
        let ended = match (ended, forged) {
            (Ok(_), Some(failure)) => Err(failure),
            (ended, _) => ended,
        };
        let usage = build_usage(begun.elapsed(), treebeam_process::usage_of_children());
        let outcome = JobResult::new(&self.spec, stages, ended, usage);
        let job = self.spec.job.clone();
        match outcome.publish(&self.folder) {
            Ok(true) => Ok(()),
            Ok(false) => Err(JobError::Ended { job }),
            Err(source) => Err(JobError::Io { job, source }),
        }
    }

    fn run_commands(
        &self,
        limit: &JobLimit<'_>,
    ) -> (Vec<StageRecord>, Result<ResultsFile, JobFailure>) {
        let (spec, folder, run) = (&self.spec, &*self.folder, &self.run);
        let site = StageRunner { spec, folder, run, limit };
        let worktree = site.worktree();
        let places =
            ResultsPlaces { folder, worktree: &worktree, results_csv: spec.results_csv.as_ref() };
        let mut stages = Vec::new();
        let early = |message| JobFailure { stage: None, kind: FailureKind::Setup, message };
        let linked =
            spec.inputs.iter().try_for_each(|input| input_links::link_input(input, &worktree));
        if let Err(message) = linked {
            return (stages, Err(early(message)));
        }
        for command in &spec.commands {
            if command.stage == JobStage::Sweep
                && let Err(error) = places.remove_old()
            {
                return (stages, Err(early(format!("old results cannot be removed: {error}"))));
            }
            let (ran, judged) = site.run_command(command);
            stages.extend(ran);
            if let Err(failure) = judged {
                return (stages, Err(failure));
            }
        }
        let taken = places.take_results();
        let taken =
            taken.map_err(|(kind, message)| stage::stage_failure(JobStage::Sweep, kind, message));
        (stages, taken)
    }

    /// What is the job's own in the folder that a sweep may write to is not the sweep's to make or to replace.
    fn remove_forged_files(&self) -> Option<JobFailure> {
        for log in path::LOG_FILES.map(|log| self.folder.join(log)) {
            if fs::symlink_metadata(&log).is_ok_and(|found| !found.is_file()) {
                // What is no regular file is no log to whoever looks for them.
                let _ = remove_entry(&log);
            }
        }
        let result = self.folder.join(path::EVAL_RESULT_FILE);
        fs::symlink_metadata(&result).ok()?;
        // Where it cannot be removed, there is no place for the real one either, and that is told.
        let _ = remove_entry(&result);
        let name = path::EVAL_RESULT_FILE;
        let message = format!("a command wrote `{name}`, which is not its to write");
        Some(JobFailure { stage: None, kind: FailureKind::Sweep, message })
    }
}

fn build_usage(wall: Duration, usage: Option<treebeam_process::ProcessUsage>) -> JobUsage {
    JobUsage {
        wall_seconds: wall.as_secs_f64(),
        cpu_seconds: usage.map(|usage| usage.cpu.as_secs_f64()),
        peak_memory_bytes: usage.map(|usage| usage.peak_memory),
    }
}

/// Makes this process one that outlives whoever started it, and that all its descendants come back to.
///
/// # Errors
/// When the system does not let it.
pub fn become_job_process() -> io::Result<()> {
    // One that leads its group already was started by a person, who may want to end it with the terminal.
    let _ = treebeam_process::lead_session();
    treebeam_process::become_reaper(ChildCount::One)
}
