//! The ports: everything the loop may ask of the world, and nothing else. `treebeam-edge` implements them.
//! Every effect is idempotent: asked twice with the same arguments, the world is as after the first time.

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

use crate::prompt::PromptSet;
use jiff::Timestamp;
use std::io::Read;
use std::time::Duration;
use treebeam_core::event::{EvalStage, Event, FailureKind, SweepSubject};
use treebeam_core::evidence::Artifact;
use treebeam_core::id::{Commit, EvalId, NodeId, RunPath, Sha256};
use treebeam_core::measure::UserPath;
use treebeam_core::state::State;

/// The world refused: the run cannot go on, but nothing is lost.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct PortError {
    /// What was tried, on what.
    pub what: String,
    /// What to do about it, where that is known.
    pub hint: Option<String>,
    /// Why it failed.
    #[source]
    pub cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl PortError {
    /// An error without a deeper cause.
    #[must_use]
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), hint: None, cause: None }
    }
    /// What was tried and why it failed, all of it, in one line.
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
    /// Whether it failed only because everything was asked to end: nothing is to be concluded from it.
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
    /// The same error with what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
    /// The same error with why it happened.
    #[must_use]
    pub fn with_cause(mut self, cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.cause = Some(Box::new(cause));
        self
    }
}

/// What an error is caused by where a child was asked to end together with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it was asked to end together with treebeam")]
pub struct InterruptionCause;

/// Where tests and sweeps run. A job outlives the runner.
pub trait Executor: Sync {
    /// Starts a job, in a process that goes on without us. One that is known already is left alone, whoever started it.
    ///
    /// # Errors
    /// When the engine does not take it.
    fn submit_job(&self, job: &SweepJob) -> Result<(), PortError>;

    /// Which of these jobs the engine knows, running or ended. It will say the end of each of them. One that runs has from
    /// now on as much time in all as is said here.
    ///
    /// # Errors
    /// When the engine does not answer.
    fn adopt_jobs(&self, jobs: &[SweepJob]) -> Result<Vec<JobKey>, PortError>;

    /// Waits for jobs to end, at most this long, and says each end once.
    ///
    /// # Errors
    /// When the engine does not answer.
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

/// Names a job for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobKey {
    /// What is swept.
    pub subject: SweepSubject,
    /// Which submission of it, counted from 1: each has a fresh folder.
    pub submission: u32,
}

/// A sweep to run.
#[derive(Clone, Debug)]
pub struct SweepJob {
    /// Its name.
    pub key: JobKey,
    /// The code state that is swept.
    pub commit: Commit,
    /// N, where there is a limit.
    pub sweep_config_limit: Option<u32>,
    /// How long its commands may take together.
    pub timeout: Option<Duration>,
}

/// A job that has ended.
#[derive(Clone, Debug)]
pub struct JobEnd {
    /// Which.
    pub key: JobKey,
    /// How.
    pub exit: JobExit,
    /// What its commands said: regular files of its folder.
    pub logs: Vec<RunPath>,
    /// The commands that ran, in order, as far as that is known.
    pub commands: Vec<CommandRecord>,
    /// What it has used, where that is known.
    pub usage: Option<JobUsage>,
    /// The file of the user's that its results are; none: they were measured.
    pub user_baseline: Option<UserPath>,
    /// The digest of the results once all processes of the job were gone, where that is known.
    pub results_sha256: Option<Sha256>,
}

impl JobEnd {
    /// The end of a job of which nothing else is known.
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

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobExit {
    /// Tests and sweep succeeded; the results lie here.
    Done {
        /// The results CSV, as the sweep wrote it.
        results: RunPath,
    },
    /// It failed.
    Failed {
        /// What kind of failure.
        kind: FailureKind,
        /// What happened, with the tail of the output.
        message: String,
    },
    /// It is gone and left no result, by no fault of the candidate that is known: it is run again, as a new submission.
    Lost {
        /// What is known of it.
        message: String,
    },
}

/// The run's own files.
pub trait FileStore: Sync {
    /// Writes a whole file: a reader sees the old one or the new one.
    ///
    /// # Errors
    /// When it cannot be written.
    fn write_file(&self, path: &RunPath, bytes: &[u8]) -> Result<(), PortError>;

    /// Reads a file of at most `limit` bytes.
    ///
    /// # Errors
    /// When it is missing, longer, or cannot be read.
    fn read_file(&self, path: &RunPath, limit: usize) -> Result<Vec<u8>, PortError>;

    /// The same, where there is such a file.
    ///
    /// # Errors
    /// When it is longer, or cannot be read.
    fn find_file(&self, path: &RunPath, limit: usize) -> Result<Option<Vec<u8>>, PortError>;

    /// Makes `to` the same file as `from`, in place of what was there, and returns its digest.
    ///
    /// # Errors
    /// When `from` is no regular file or `to` cannot be written.
    fn link_file(&self, from: &RunPath, to: &RunPath) -> Result<Sha256, PortError>;

    /// Removes what the sweeps of an eval wrote, all submissions of it.
    ///
    /// # Errors
    /// When something is still there afterwards.
    fn remove_submissions(&self, eval: EvalId) -> Result<(), PortError>;

    /// Copies a file that a decision will rest on to `artifacts/<name>`.
    ///
    /// # Errors
    /// When it is no regular file or cannot be copied.
    fn import_artifact(&self, from: &RunPath, name: &str) -> Result<Artifact, PortError>;

    /// Puts on disk that all files which were written or linked are there. An outcome that rests on them comes after this.
    ///
    /// # Errors
    /// When they may not be on disk.
    fn sync_files(&self) -> Result<(), PortError>;

    /// Returns those artifacts that are not what was recorded. Nothing is written: that they were
    /// changed has to be on record before they are restored.
    ///
    /// # Errors
    /// When no copy in the run is what was recorded of one of them.
    fn find_changed_artifacts(&self, artifacts: &[Artifact]) -> Result<Vec<Artifact>, PortError>;

    /// Replaces each artifact that is not what was recorded with a copy in the run that is.
    ///
    /// # Errors
    /// When there is no such copy, or the artifact cannot be written.
    fn restore_artifacts(&self, artifacts: &[Artifact]) -> Result<(), PortError>;

    /// Opens a copy in the run that is what was recorded of an artifact.
    ///
    /// # Errors
    /// When there is none.
    fn open_copy_of(&self, artifact: &Artifact) -> Result<Box<dyn Read>, PortError>;

    /// Opens an artifact after checking its digest.
    ///
    /// # Errors
    /// When it is missing or is not what was recorded.
    fn open_artifact(&self, artifact: &Artifact) -> Result<Box<dyn Read>, PortError>;
}

/// The append-only truth.
pub trait Journal {
    /// Appends events, durably, in order, all or a prefix of them.
    ///
    /// # Errors
    /// When they may not be on disk. That is final for this process.
    fn append(&mut self, events: &[Event]) -> Result<(), PortError>;

    /// Compares the journal on disk with what was written, and puts back one that was removed. The event says so, and is to
    /// be recorded.
    ///
    /// # Errors
    /// When it was cut or changed. That is final for this process.
    fn check_integrity(&mut self) -> Result<Option<Event>, PortError> {
        Ok(None)
    }

    /// The last line that is on disk; none where there is none, or lines are not kept.
    fn last_line(&self) -> Option<JournalTip> {
        None
    }

    /// Writes the whole state down because the journal was damaged: what it no longer has is in the state. Does nothing where
    /// the journal is sound. The state is `unwritten` events ahead of what was appended.
    ///
    /// # Errors
    /// When it cannot be written.
    fn rescue_state(&mut self, _state: &State, _unwritten: usize) -> Result<(), PortError> {
        Ok(())
    }

    /// A good moment to write the whole state down, so that a later start reads less.
    ///
    /// # Errors
    /// When it cannot be written.
    fn write_checkpoint(&mut self, state: &State, moment: CheckpointKind) -> Result<(), PortError>;
}

/// A line of a journal, as the one after it names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalTip {
    /// Number of its event.
    pub seq: u64,
    /// Digest of the line without its line end.
    pub digest: Sha256,
}

/// When a state is offered for a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointKind {
    /// A depth has closed: write it if enough has happened since the last one.
    DepthClosed,
    /// The loop ends: write it.
    End,
}

/// What time it is.
pub trait Clock: Sync {
    /// The time of something that is recorded.
    fn recorded_time(&self, moment: RecordedMoment) -> Timestamp;
    /// The time on the wall: for waiting, for people and for the run's deadline, never for another decision.
    fn now(&self) -> Timestamp;
    /// The time of something that is recorded, or on the wall where nothing depends on it.
    fn recorded_time_or_now(&self, moment: Option<RecordedMoment>) -> Timestamp {
        moment.map_or_else(|| self.now(), |moment| self.recorded_time(moment))
    }
}

/// What a recorded time belongs to, so that a world without time can make one up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordedMoment {
    /// The start of the run, or the measuring of its root.
    Start,
    /// An expansion of a node, at the depth that begins with this eval.
    Expansion(NodeId, EvalId),
    /// The making of a node.
    Promotion(EvalId),
    /// The beginning of an eval's attempt.
    Begun(EvalId, u32),
    /// The end of a stage of an eval's attempt.
    Eval(EvalId, EvalStage, u32),
    /// The user's wish to have work done again, before this eval could be.
    SentBack(EvalId),
    /// The end of the run, before this eval could be.
    Stop(EvalId),
}

/// All ports together, and what those behind one of them are told.
#[derive(Clone, Copy)]
pub struct RunPorts<'a> {
    /// The user's repository.
    pub repo: &'a dyn Repo,
    /// Who answers.
    pub agent: &'a dyn Agent,
    /// Where sweeps run.
    pub executor: &'a dyn Executor,
    /// The run's files.
    pub files: &'a dyn FileStore,
    /// What sweeps are given of the user's own files.
    pub inputs: &'a dyn InputFiles,
    /// What time it is.
    pub clock: &'a dyn Clock,
    /// Whether to go on.
    pub interrupt: &'a dyn Interrupt,
    /// What the user has to say meanwhile.
    pub inbox: &'a dyn Inbox,
    /// What agents are told.
    pub prompts: &'a PromptSet,
}
