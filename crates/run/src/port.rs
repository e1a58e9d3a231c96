//! The ports of the loop: traits for everything that it needs from outside. The crates git, store,
//! agent, executor and dry implement them. Every effect is idempotent: a second call with the same
//! arguments changes nothing.

mod agent;
mod inputs;
mod job;
mod repo;
mod user;

pub use agent::{Agent, AgentError, AgentReply, AgentRequest, Continuation, EditMode};
pub use inputs::{InputFiles, InputList};
pub use job::{CommandRecord, JobStage, JobUsage};
pub use repo::{
    ApplyResult, BinaryDiff, CommitNote, CommittedTree, Repo, RepoFile, StagedChanges, TouchedFiles,
};
pub use treebeam_core::bill::{Cost, TokenUsage};
pub use treebeam_core::role::AgentRole;
pub use user::{Inbox, InboxMessage, Interrupt, MessageContent, SilentUser, UserIdea};

use jiff::Timestamp;
use std::io::Read;
use std::time::Duration;
use treebeam_core::event::{EvalStage, Event, FailureKind, SweepSubject};
use treebeam_core::evidence::Artifact;
use treebeam_core::id::{Commit, EvalId, NodeId, RunPath, Sha256};
use treebeam_core::measure::UserPath;
use treebeam_core::state::State;

/// An error of a port: the run cannot go on, but nothing is lost.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct PortError {
    /// The action that failed, and its object.
    pub what: String,
    /// Advice for the user, where there is any.
    pub hint: Option<String>,
    /// The cause.
    #[source]
    pub cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl PortError {
    /// Builds an error without a cause and without a hint.
    #[must_use]
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), hint: None, cause: None }
    }
    /// Returns the error with all its causes, in one line.
    #[must_use]
    pub fn full_text(&self) -> String {
        let mut text = self.what.clone();
        let mut cause: Option<&dyn std::error::Error> =
            self.cause.as_deref().map(|cause| cause as &dyn std::error::Error);
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        text
    }
    /// Returns true if the cause is a request to end the program: nothing follows from it then.
    #[must_use]
    pub fn is_interruption(&self) -> bool {
        let mut cause: Option<&(dyn std::error::Error + 'static)> =
            self.cause.as_deref().map(|cause| cause as _);
        while let Some(error) = cause {
            if error.is::<InterruptionCause>() {
                return true;
            }
            cause = error.source();
        }
        false
    }
    /// Sets the advice for the user.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
    /// Sets the cause.
    #[must_use]
    pub fn with_cause(mut self, cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.cause = Some(Box::new(cause));
        self
    }
}

/// The cause of an error where a child process was asked to end together with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it was asked to end together with treebeam")]
pub struct InterruptionCause;

/// The port to the executor of tests and sweeps. A job outlives the program that submits it.
pub trait Executor: Sync {
    /// Starts a job, in a process that outlives this one. A known job is left alone.
    ///
    /// # Errors
    /// When the executor does not accept it.
    fn submit_job(&self, job: &SweepJob) -> Result<(), PortError>;

    /// Returns those of these jobs that the executor knows, running or ended.
    /// [`Executor::wait_for_jobs`] will report each of them once. Running jobs get the time limit
    /// given here.
    ///
    /// # Errors
    /// When the executor does not answer.
    fn adopt_jobs(&self, jobs: &[SweepJob]) -> Result<Vec<JobKey>, PortError>;

    /// Waits for jobs to end, at most this long, and returns each end once.
    ///
    /// # Errors
    /// When the executor does not answer.
    fn wait_for_jobs(&self, patience: Duration) -> Result<Vec<JobEnd>, PortError>;
}

impl<E: Executor + ?Sized> Executor for Box<E> {
    fn submit_job(&self, job: &SweepJob) -> Result<(), PortError> {
        (**self).submit_job(job)
    }
    fn adopt_jobs(&self, jobs: &[SweepJob]) -> Result<Vec<JobKey>, PortError> {
        (**self).adopt_jobs(jobs)
    }
    fn wait_for_jobs(&self, patience: Duration) -> Result<Vec<JobEnd>, PortError> {
        (**self).wait_for_jobs(patience)
    }
}

/// The permanent name of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobKey {
    /// The subject that is swept.
    pub subject: SweepSubject,
    /// Number of the submission, counted from 1: each has a fresh folder.
    pub submission: u32,
}

/// A sweep to run.
#[derive(Clone, Debug)]
pub struct SweepJob {
    /// Name of the job.
    pub key: JobKey,
    /// The code state that is swept.
    pub commit: Commit,
    /// Limit on the number of configurations, where there is one.
    pub sweep_config_limit: Option<u32>,
    /// Time limit for all commands of the job together.
    pub timeout: Option<Duration>,
}

/// A job that has ended.
#[derive(Clone, Debug)]
pub struct JobEnd {
    /// Name of the job.
    pub key: JobKey,
    /// Result of the job.
    pub exit: JobExit,
    /// Output of its commands: regular files of its folder.
    pub logs: Vec<RunPath>,
    /// The commands that ran, in order, as far as that is known.
    pub commands: Vec<CommandRecord>,
    /// Resources that the job used, where that is known.
    pub usage: Option<JobUsage>,
    /// The user's file that the results were copied from; `None` if they were measured.
    pub user_baseline: Option<UserPath>,
    /// Digest of the results once all processes of the job were gone, where that is known.
    pub results_sha256: Option<Sha256>,
}

impl JobEnd {
    /// Builds the end of a job about which nothing else is known.
    #[must_use]
    pub const fn new(key: JobKey, exit: JobExit) -> Self {
        Self {
            key,
            exit,
            logs: Vec::new(),
            commands: Vec::new(),
            usage: None,
            user_baseline: None,
            results_sha256: None,
        }
    }
}

/// The result of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobExit {
    /// Tests and sweep succeeded.
    Done {
        /// The results CSV, as the sweep wrote it.
        results: RunPath,
    },
    /// A command of the job failed.
    Failed {
        /// Kind of the failure.
        kind: FailureKind,
        /// Message for the user, with the tail of the output.
        message: String,
    },
    /// The job is gone without a result, by no known fault of the candidate: it is submitted again.
    Lost {
        /// The known facts about the loss.
        message: String,
    },
}

/// The port to the run's own files.
pub trait FileStore: Sync {
    /// Writes a whole file: a reader sees either the old content or the new one.
    ///
    /// # Errors
    /// When it cannot be written.
    fn write_file(&self, path: &RunPath, bytes: &[u8]) -> Result<(), PortError>;

    /// Reads a file of at most `limit` bytes.
    ///
    /// # Errors
    /// When it is missing, longer, or cannot be read.
    fn read_file(&self, path: &RunPath, limit: usize) -> Result<Vec<u8>, PortError>;

    /// Reads a file of at most `limit` bytes, or returns `None` if it is missing.
    ///
    /// # Errors
    /// When it is longer, or cannot be read.
    fn find_file(&self, path: &RunPath, limit: usize) -> Result<Option<Vec<u8>>, PortError>;

    /// Makes `to` the same file as `from`, replacing an existing one, and returns its digest.
    ///
    /// # Errors
    /// When `from` is no regular file or `to` cannot be written.
    fn link_file(&self, from: &RunPath, to: &RunPath) -> Result<Sha256, PortError>;

    /// Removes all files that the sweeps of an eval wrote, in all submissions.
    ///
    /// # Errors
    /// When something is still there afterwards.
    fn remove_submissions(&self, eval: EvalId) -> Result<(), PortError>;

    /// Copies a file on which a decision will rest to `artifacts/<name>`.
    ///
    /// # Errors
    /// When it is no regular file or cannot be copied.
    fn import_artifact(&self, from: &RunPath, name: &str) -> Result<Artifact, PortError>;

    /// Syncs all written or linked files to disk, before an outcome that rests on them.
    ///
    /// # Errors
    /// When they may not be on disk.
    fn sync_files(&self) -> Result<(), PortError>;

    /// Returns the artifacts whose content differs from the recorded digest. Nothing is written:
    /// the change has to be on record before they are restored.
    ///
    /// # Errors
    /// When the run has no intact copy of one of them.
    fn find_changed_artifacts(&self, artifacts: &[Artifact]) -> Result<Vec<Artifact>, PortError>;

    /// Replaces each artifact that differs from its recorded digest with an intact copy.
    ///
    /// # Errors
    /// When there is no such copy, or the artifact cannot be written.
    fn restore_artifacts(&self, artifacts: &[Artifact]) -> Result<(), PortError>;

    /// Opens a copy in the run that has the recorded digest of an artifact.
    ///
    /// # Errors
    /// When there is none.
    fn open_copy_of(&self, artifact: &Artifact) -> Result<Box<dyn Read>, PortError>;

    /// Opens an artifact after checking its digest.
    ///
    /// # Errors
    /// When it is missing or its content differs from the recorded digest.
    fn open_artifact(&self, artifact: &Artifact) -> Result<Box<dyn Read>, PortError>;
}

/// The append-only journal of a run, from which its state is rebuilt.
pub trait Journal {
    /// Appends events, durably, in order: all of them or a prefix.
    ///
    /// # Errors
    /// When they may not be on disk. That is final for this process.
    fn append(&mut self, events: &[Event]) -> Result<(), PortError>;

    /// Compares the journal on disk with the lines written so far, and restores a removed one. The
    /// returned event reports the restoration, and is to be recorded.
    ///
    /// # Errors
    /// When it was cut or changed. That is final for this process.
    fn check_integrity(&mut self) -> Result<Option<Event>, PortError> {
        Ok(None)
    }

    /// Returns the last line on disk; `None` where there is none, or lines are not kept.
    fn last_line(&self) -> Option<JournalTip> {
        None
    }

    /// Writes the whole state to the manifest if the journal is damaged: it keeps what the journal
    /// lost. The state is `unwritten` events ahead of the appended ones.
    ///
    /// # Errors
    /// When it cannot be written.
    fn rescue_state(&mut self, _state: &State, _unwritten: usize) -> Result<(), PortError> {
        Ok(())
    }

    /// Offers the whole state for a checkpoint, so that a later start reads less.
    ///
    /// # Errors
    /// When it cannot be written.
    fn write_checkpoint(&mut self, state: &State, moment: CheckpointKind) -> Result<(), PortError>;
}

/// A line of a journal, as the next line refers to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalTip {
    /// Number of the line's event.
    pub seq: u64,
    /// Digest of the line without its line end.
    pub digest: Sha256,
}

/// The moment at which a state is offered for a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointKind {
    /// A depth has closed: write it if enough has happened since the last one.
    DepthClosed,
    /// The loop ends: write it.
    End,
}

/// The port to the clock.
pub trait Clock: Sync {
    /// Returns the time of a recorded moment.
    fn recorded_time(&self, moment: RecordedMoment) -> Timestamp;
    /// Returns the wall-clock time: for waits, people and the deadline, for no other decision.
    fn now(&self) -> Timestamp;
    /// Returns the time of a recorded moment, or the wall-clock time where there is none.
    fn recorded_time_or_now(&self, moment: Option<RecordedMoment>) -> Timestamp {
        moment.map_or_else(|| self.now(), |moment| self.recorded_time(moment))
    }
}

/// The moment that a recorded time belongs to, so that a clock without real time can derive one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordedMoment {
    /// The start of the run, or the measuring of its root.
    Start,
    /// An expansion of a node, at the depth that begins with this eval.
    Expansion(NodeId, EvalId),
    /// The creation of a node by promotion.
    Promotion(EvalId),
    /// The beginning of an eval's attempt.
    Begun(EvalId, u32),
    /// The end of a stage of an eval's attempt.
    Eval(EvalId, EvalStage, u32),
    /// The user's request to redo work, before this eval existed.
    SentBack(EvalId),
    /// The end of the run, before this eval existed.
    Stop(EvalId),
}
