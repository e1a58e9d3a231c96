//! The process of one job: it runs the commands, ends all that they started, looks for the results, and publishes what
//! became of it, once. It writes in its own folder and in the candidate's worktree, and knows nothing of the run's state.

use super::claim::{self, Claim};
use super::inputs;
use super::limit::Limit;
use super::outcome::{JobFailure, Outcome, Ran, Results};
use super::results::{Places, remove};
use super::spec::{Spec, Stage};
use super::stage::{self, Site};
use crate::process::{self, AtATime};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use treebeam_core::event::FailureKind;
use treebeam_core::path;
use treebeam_run::port::Used;

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
pub struct Job {
    spec: Spec,
    folder: PathBuf,
    run: crate::store::RunDir,
    /// Held until the end.
    _claim: fs::File,
}

impl Job {
    /// Takes the job whose file this is.
    ///
    /// # Errors
    /// When it cannot be read, another process does it, or it has a result.
    pub fn take(path: &Path) -> Result<Self, JobError> {
        let wrong = |source| JobError::Spec { path: path.to_owned(), source };
        let (spec, folder, run) = Spec::read(path).map_err(wrong)?;
        let job = spec.job.clone();
        let claim = match claim::inherit(&folder) {
            Err(source) => return Err(JobError::Io { job, source }),
            Ok(Claim::Anothers) => return Err(JobError::Claimed { job }),
            Ok(Claim::Ours(claim)) => claim,
        };
        if fs::symlink_metadata(folder.join(path::EVAL_RESULT)).is_ok() {
            return Err(JobError::Ended { job });
        }
        Ok(Self { spec, folder, run, _claim: claim })
    }

    /// Ends all that this job has started, and may still be there. For a process that is asked to end.
    pub fn ending(&self) -> impl FnMut() + Send + 'static {
        let (mark, grace) = (super::mark(&self.folder), self.spec.times.grace);
        move || {
            process::end_all();
            // What is left is found by whoever runs the job again.
            let _ = process::end_marked(&mark, grace);
        }
    }

    /// Does it, from its commands to its result.
    ///
    /// # Errors
    /// When the result could not be published, or nobody wants one any more.
    pub fn perform(self) -> Result<(), JobError> {
        let begun = Instant::now();
        let limit = Limit::new(&self.folder, begun, self.spec.times.timeout);
        let (stages, ended) = self.run(&limit);
        if limit.is_withdrawn() {
            return Err(JobError::Withdrawn { job: self.spec.job.clone() });
        }
        let forged = self.put_in_order();
        let ended = match (ended, forged) {
            (Ok(_), Some(failure)) => Err(failure),
            (ended, _) => ended,
        };
        let usage = used(begun.elapsed(), process::usage_of_children());
        let outcome = Outcome::new(&self.spec, stages, ended, usage);
        let job = self.spec.job.clone();
        match outcome.publish(&self.folder) {
            Ok(true) => Ok(()),
            Ok(false) => Err(JobError::Ended { job }),
            Err(source) => Err(JobError::Io { job, source }),
        }
    }

    fn run(&self, limit: &Limit<'_>) -> (Vec<Ran>, Result<Results, JobFailure>) {
        let (spec, folder, run) = (&self.spec, &*self.folder, &self.run);
        let site = Site { spec, folder, run, limit };
        let worktree = site.worktree();
        let places = Places { folder, worktree: &worktree, results_csv: spec.results_csv.as_ref() };
        let mut stages = Vec::new();
        let early = |message| JobFailure { stage: None, kind: FailureKind::Setup, message };
        let linked = spec.inputs.iter().try_for_each(|input| inputs::link(input, &worktree));
        if let Err(message) = linked {
            return (stages, Err(early(message)));
        }
        for command in &spec.commands {
            if command.stage == Stage::Sweep
                && let Err(error) = places.clear()
            {
                return (stages, Err(early(format!("old results cannot be removed: {error}"))));
            }
            let (ran, judged) = site.run(command);
            stages.extend(ran);
            if let Err(failure) = judged {
                return (stages, Err(failure));
            }
        }
        let taken = places.take();
        let taken = taken.map_err(|(kind, message)| stage::failed(Stage::Sweep, kind, message));
        (stages, taken)
    }

    /// What is the job's own in the folder that a sweep may write to is not the sweep's to make or to replace.
    fn put_in_order(&self) -> Option<JobFailure> {
        for log in path::LOGS.map(|log| self.folder.join(log)) {
            if fs::symlink_metadata(&log).is_ok_and(|found| !found.is_file()) {
                // What is no regular file is no log to whoever looks for them.
                let _ = remove(&log);
            }
        }
        let result = self.folder.join(path::EVAL_RESULT);
        fs::symlink_metadata(&result).ok()?;
        // Where it cannot be removed, there is no place for the real one either, and that is told.
        let _ = remove(&result);
        let name = path::EVAL_RESULT;
        let message = format!("a command wrote `{name}`, which is not its to write");
        Some(JobFailure { stage: None, kind: FailureKind::Sweep, message })
    }
}

fn used(wall: Duration, usage: Option<process::Usage>) -> Used {
    Used {
        wall_seconds: wall.as_secs_f64(),
        cpu_seconds: usage.map(|usage| usage.cpu.as_secs_f64()),
        peak_memory_bytes: usage.map(|usage| usage.peak_memory),
    }
}

/// Makes this process one that outlives whoever started it, and that all its descendants come back to.
///
/// # Errors
/// When the system does not let it.
pub fn settle_in() -> io::Result<()> {
    // One that leads its group already was started by a person, who may want to end it with the terminal.
    let _ = process::lead_session();
    process::become_reaper(AtATime::One)
}
