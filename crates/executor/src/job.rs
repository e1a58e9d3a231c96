//! Runs one job in its own process: the commands, their cleanup, and the published result. It ends
//! everything that the commands started, takes the results, and publishes once how the job ended.
//! It writes in the job's folder and in the candidate's worktree, and knows nothing of the run's
//! state.

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

/// Reason why this process publishes no result of a job. Failing commands are a result.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The job's file cannot be read.
    #[error("`{path}` is no job")]
    Spec {
        /// Path of the job's file.
        path: PathBuf,
        /// Error of reading or parsing it.
        #[source]
        source: io::Error,
    },
    /// Another process runs the job.
    #[error("another process does the job `{job}`")]
    Claimed {
        /// Name of the job.
        job: String,
    },
    /// The job has a result already.
    #[error("the job `{job}` has a result already")]
    Ended {
        /// Name of the job.
        job: String,
    },
    /// The job was withdrawn.
    #[error("the job `{job}` was withdrawn")]
    Withdrawn {
        /// Name of the job.
        job: String,
    },
    /// The disk or the system refused an operation.
    #[error("the job `{job}` cannot be done")]
    Io {
        /// Name of the job.
        job: String,
        /// Underlying error.
        #[source]
        source: io::Error,
    },
}

/// A job that this process has claimed.
#[derive(Debug)]
pub struct ClaimedJob {
    spec: JobSpec,
    folder: PathBuf,
    run: treebeam_store::RunDir,
    /// Lock of the job, held until the end.
    _claim: fs::File,
}

impl ClaimedJob {
    /// Claims the job described by the file at `path`.
    ///
    /// # Errors
    /// When the file cannot be read, another process runs the job, or it has a result.
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

    /// Returns a handler for a request to terminate, which ends every process of this job.
    pub fn termination_handler(&self) -> impl FnMut() + Send + 'static {
        let (mark, grace) = (super::job_marker(&self.folder), self.spec.times.grace);
        move || {
            treebeam_process::end_all();
            // A later run of the job finds the processes that are left.
            let _ = treebeam_process::end_marked(&mark, grace);
        }
    }

    /// Runs the job, from its commands to its published result.
    ///
    /// # Errors
    /// When the result could not be published, or the job was withdrawn.
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

    /// Removes a result that a command wrote in the job's place, and logs that are no regular
    /// files. The sweep may write to the folder, but these files are the job's own.
    fn remove_forged_files(&self) -> Option<JobFailure> {
        for log in path::LOG_FILES.map(|log| self.folder.join(log)) {
            if fs::symlink_metadata(&log).is_ok_and(|found| !found.is_file()) {
                // Readers treat a log that is no regular file as missing.
                let _ = remove_entry(&log);
            }
        }
        let result = self.folder.join(path::EVAL_RESULT_FILE);
        fs::symlink_metadata(&result).ok()?;
        // If it cannot be removed, publishing the real result fails, and reports that.
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

/// Makes this process outlive its parent, and the reaper of all its descendants.
///
/// # Errors
/// When the system refuses.
pub fn become_job_process() -> io::Result<()> {
    // A process that already leads its group was started by a person, who may end it with the
    // terminal.
    let _ = treebeam_process::lead_session();
    treebeam_process::become_reaper(ChildCount::One)
}
