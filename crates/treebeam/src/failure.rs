//! How a command fails: what happened, why, what to do, and the exit code that says which kind of failure it was.

use crate::config::file::ConfigError;
use crate::config::origin::Wrong;
use std::io;
use std::process::ExitCode;
use treebeam_core::id::BadName;
use treebeam_core::score::ScoreError;
use treebeam_core::sweep::SweepError;
use treebeam_edge::env_file::EnvError;
use treebeam_edge::executor::JobError;
use treebeam_edge::git::OpenError;
use treebeam_edge::ideas_dir::IdeasDirError;
use treebeam_edge::input::InputError;
use treebeam_edge::store::{StoreError, cure};
use treebeam_edge::user_state::UserStateError;
use treebeam_run::Halt;
use treebeam_run::port::{AgentError, Interrupted, PortError};

/// How a command ended, for scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what it was asked to.
    Done,
    /// It failed.
    Failed,
    /// It was called or configured wrongly.
    Usage,
    /// Another process holds the run.
    Locked,
    /// The environment lacks something.
    Environment,
    /// Validation found something.
    Invalid,
    /// It was asked to stop before it was done, and can go on later.
    Interrupted,
}

impl Exit {
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Locked => 3,
            Self::Environment => 4,
            Self::Invalid => 5,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// A command that did not do what it was asked to.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    error: anyhow::Error,
    hint: Option<String>,
}

impl Failure {
    /// A failure whose last cause is the system's own has the cure for that, whatever was tried.
    fn new(exit: Exit, error: anyhow::Error, hint: Option<String>) -> Self {
        let cure = error.chain().find_map(|cause| cure(cause.downcast_ref::<io::Error>()?));
        Self { exit, hint: cure.map(str::to_owned).or(hint), error }
    }

    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, error: anyhow::Error::msg(what.into()), hint: None }
    }

    pub(crate) fn failed(what: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, error: anyhow::Error::msg(what.into()), hint: None }
    }

    pub(crate) fn environment(what: impl Into<String>) -> Self {
        Self { exit: Exit::Environment, error: anyhow::Error::msg(what.into()), hint: None }
    }

    /// The world refused something that must be there before anything begins.
    pub(crate) fn lacking(error: PortError) -> Self {
        Self { exit: Exit::Environment, ..Self::from(error) }
    }

    /// Something that was to be printed, and could not be.
    pub(crate) fn unsaid(error: io::Error) -> Self {
        let error = anyhow::Error::new(error).context("cannot write to standard output");
        Self::new(Exit::Failed, error, None)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) const fn exit(&self) -> Exit {
        self.exit
    }

    /// Whether it failed only because everything was asked to end.
    pub(crate) fn is_interruption(&self) -> bool {
        let mut chain = self.error.chain();
        chain.any(<dyn std::error::Error>::is::<Interrupted>)
    }

    /// What happened, then why, step by step.
    pub(crate) fn chain(&self) -> impl Iterator<Item = String> {
        self.error.chain().map(ToString::to_string)
    }

    /// What to do about it.
    pub(crate) fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl From<BadName> for Failure {
    fn from(error: BadName) -> Self {
        Self::new(Exit::Usage, error.into(), None)
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let hint = Some(error.hint().to_owned());
        Self::new(Exit::Environment, error.into(), hint)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let hint = match &error {
            ConfigError::Unreadable(error) => error.hint(),
            ConfigError::Format(_) | ConfigError::Wrong(_) => None,
        };
        let hint = hint.map(str::to_owned);
        Self::new(Exit::Usage, error.into(), hint)
    }
}

impl From<Wrong> for Failure {
    fn from(error: Wrong) -> Self {
        ConfigError::from(error).into()
    }
}

impl From<EnvError> for Failure {
    fn from(error: EnvError) -> Self {
        Self::new(Exit::Usage, error.into(), None)
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        let hint = error.hint().map(str::to_owned);
        Self::new(Exit::Failed, error.into(), hint)
    }
}

impl From<SweepError> for Failure {
    fn from(error: SweepError) -> Self {
        let hint = error.hint().map(str::to_owned);
        Self::new(Exit::Failed, error.into(), hint)
    }
}

impl From<ScoreError> for Failure {
    fn from(error: ScoreError) -> Self {
        let hint = Some(error.hint().to_owned());
        Self::new(Exit::Failed, error.into(), hint)
    }
}

impl From<UserStateError> for Failure {
    fn from(error: UserStateError) -> Self {
        let hint = error.hint();
        Self::new(Exit::Environment, error.into(), Some(hint.to_owned()))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let exit = match error {
            StoreError::Locked { .. } | StoreError::Lost { .. } => Exit::Locked,
            StoreError::Exists { .. } | StoreError::NotARun { .. } => Exit::Usage,
            StoreError::Io { .. }
            | StoreError::BadLine { .. }
            | StoreError::Contradiction { .. }
            | StoreError::JournalMissing { .. }
            | StoreError::JournalShort { .. }
            | StoreError::ManifestDamaged { .. }
            | StoreError::JournalChanged { .. }
            | StoreError::Newer { .. }
            | StoreError::TooLong { .. }
            | StoreError::Broken { .. } => Exit::Failed,
        };
        let hint = error.hint().map(str::to_owned);
        Self::new(exit, error.into(), hint)
    }
}

impl From<IdeasDirError> for Failure {
    fn from(error: IdeasDirError) -> Self {
        let exit = match error {
            IdeasDirError::Busy { .. } => Exit::Locked,
            IdeasDirError::Damaged { .. } | IdeasDirError::Io { .. } => Exit::Failed,
        };
        let hint = error.hint().map(str::to_owned);
        Self::new(exit, error.into(), hint)
    }
}

impl From<JobError> for Failure {
    fn from(error: JobError) -> Self {
        let exit = match error {
            JobError::Spec { .. } => Exit::Usage,
            JobError::Claimed { .. } => Exit::Locked,
            JobError::Ended { .. } | JobError::Io { .. } => Exit::Failed,
            JobError::Withdrawn { .. } => Exit::Interrupted,
        };
        Self::new(exit, error.into(), None)
    }
}

impl From<PortError> for Failure {
    fn from(error: PortError) -> Self {
        let hint = error.hint.clone();
        Self::new(Exit::Failed, error.into(), hint)
    }
}

impl From<AgentError> for Failure {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Unavailable(error) => Self { exit: Exit::Environment, ..Self::from(error) },
            AgentError::Interrupted => {
                Self { exit: Exit::Interrupted, error: error.into(), hint: None }
            }
            AgentError::Unanswered(_)
            | AgentError::Forgotten(_)
            | AgentError::OutOfTime(_)
            | AgentError::OverBudget { .. } => {
                Self { exit: Exit::Failed, error: error.into(), hint: None }
            }
        }
    }
}

impl From<Halt> for Failure {
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Port(error) => error.into(),
            Halt::Agent(error) => error.into(),
            Halt::RootUnsound { .. } | Halt::InputsChanged { .. } => {
                Self { exit: Exit::Environment, error: halt.into(), hint: None }
            }
            Halt::Interrupted(_) => {
                Self { exit: Exit::Interrupted, error: halt.into(), hint: None }
            }
            Halt::Promotion { .. } | Halt::Unexpected(_) | Halt::Broken { .. } => {
                Self { exit: Exit::Failed, error: halt.into(), hint: None }
            }
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new(Exit::Failed, error.into(), None)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::new(Exit::Failed, error.into(), None)
    }
}
