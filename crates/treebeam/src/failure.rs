//! Defines how a command fails: message, causes, hint, and the exit code for the kind of failure.

use crate::config::config_file::ConfigError;
use crate::config::origin::SettingError;
use std::io;
use std::process::ExitCode;
use treebeam_core::id::BadName;
use treebeam_executor::JobError;
use treebeam_git::OpenError;
use treebeam_run::RunHalt;
use treebeam_run::port::{AgentError, InterruptionCause, PortError};
use treebeam_score::compare::ScoreError;
use treebeam_score::sweep_csv::SweepError;
use treebeam_store::env_file::EnvError;
use treebeam_store::ideas_dir::IdeasDirError;
use treebeam_store::input::InputError;
use treebeam_store::user_state::UserStateError;
use treebeam_store::{StoreError, hint_for_io_error};

/// Outcome of a command as an exit code for scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandExit {
    /// The command succeeded.
    Done,
    /// The command failed.
    Failed,
    /// Wrong arguments or configuration.
    Usage,
    /// Another process holds the run's lease.
    Locked,
    /// The environment lacks something that the command needs.
    Environment,
    /// Validation found problems.
    Invalid,
    /// The command was interrupted, and its work can be resumed.
    Interrupted,
}

impl CommandExit {
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

impl From<CommandExit> for ExitCode {
    fn from(exit: CommandExit) -> Self {
        Self::from(exit.code())
    }
}

/// Error of a command: exit code, causes, and a hint for the user.
#[derive(Debug)]
pub(crate) struct CommandFailure {
    exit: CommandExit,
    error: anyhow::Error,
    hint: Option<String>,
}

impl CommandFailure {
    /// Creates a failure. If the last cause is an I/O error with a known hint, that hint replaces
    /// the given one.
    fn new(exit: CommandExit, error: anyhow::Error, hint: Option<String>) -> Self {
        let cure =
            error.chain().find_map(|cause| hint_for_io_error(cause.downcast_ref::<io::Error>()?));
        Self { exit, hint: cure.map(str::to_owned).or(hint), error }
    }

    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self { exit: CommandExit::Usage, error: anyhow::Error::msg(what.into()), hint: None }
    }

    pub(crate) fn failed(what: impl Into<String>) -> Self {
        Self { exit: CommandExit::Failed, error: anyhow::Error::msg(what.into()), hint: None }
    }

    pub(crate) fn environment(what: impl Into<String>) -> Self {
        Self { exit: CommandExit::Environment, error: anyhow::Error::msg(what.into()), hint: None }
    }

    /// Creates a failure from a port's error about a precondition, with the exit code for the
    /// environment.
    pub(crate) fn from_environment(error: PortError) -> Self {
        Self { exit: CommandExit::Environment, ..Self::from(error) }
    }

    /// Creates a failure from an error in writing to standard output.
    pub(crate) fn from_output_error(error: io::Error) -> Self {
        let error = anyhow::Error::new(error).context("cannot write to standard output");
        Self::new(CommandExit::Failed, error, None)
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) const fn exit(&self) -> CommandExit {
        self.exit
    }

    /// Returns true if the only reason for the failure is a requested stop.
    pub(crate) fn is_interruption(&self) -> bool {
        let mut chain = self.error.chain();
        chain.any(<dyn std::error::Error>::is::<InterruptionCause>)
    }

    /// Iterates over the message and its causes, outermost first.
    pub(crate) fn chain(&self) -> impl Iterator<Item = String> {
        self.error.chain().map(ToString::to_string)
    }

    /// Returns the hint for the user, if there is one.
    pub(crate) fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl From<BadName> for CommandFailure {
    fn from(error: BadName) -> Self {
        Self::new(CommandExit::Usage, error.into(), None)
    }
}

impl From<OpenError> for CommandFailure {
    fn from(error: OpenError) -> Self {
        let hint = Some(error.hint().to_owned());
        Self::new(CommandExit::Environment, error.into(), hint)
    }
}

impl From<ConfigError> for CommandFailure {
    fn from(error: ConfigError) -> Self {
        let hint = match &error {
            ConfigError::Unreadable(error) => error.hint(),
            ConfigError::Format(_) | ConfigError::Wrong(_) => None,
        };
        let hint = hint.map(str::to_owned);
        Self::new(CommandExit::Usage, error.into(), hint)
    }
}

impl From<SettingError> for CommandFailure {
    fn from(error: SettingError) -> Self {
        ConfigError::from(error).into()
    }
}

impl From<EnvError> for CommandFailure {
    fn from(error: EnvError) -> Self {
        Self::new(CommandExit::Usage, error.into(), None)
    }
}

impl From<InputError> for CommandFailure {
    fn from(error: InputError) -> Self {
        let hint = error.hint().map(str::to_owned);
        Self::new(CommandExit::Failed, error.into(), hint)
    }
}

impl From<SweepError> for CommandFailure {
    fn from(error: SweepError) -> Self {
        let hint = error.hint().map(str::to_owned);
        Self::new(CommandExit::Failed, error.into(), hint)
    }
}

impl From<ScoreError> for CommandFailure {
    fn from(error: ScoreError) -> Self {
        let hint = Some(error.hint().to_owned());
        Self::new(CommandExit::Failed, error.into(), hint)
    }
}

impl From<UserStateError> for CommandFailure {
    fn from(error: UserStateError) -> Self {
        let hint = error.hint();
        Self::new(CommandExit::Environment, error.into(), Some(hint.to_owned()))
    }
}

impl From<StoreError> for CommandFailure {
    fn from(error: StoreError) -> Self {
        let exit = match error {
            StoreError::Locked { .. } | StoreError::Lost { .. } => CommandExit::Locked,
            StoreError::Exists { .. } | StoreError::NotARun { .. } => CommandExit::Usage,
            StoreError::Io { .. }
            | StoreError::BadLine { .. }
            | StoreError::Contradiction { .. }
            | StoreError::JournalMissing { .. }
            | StoreError::JournalShort { .. }
            | StoreError::ManifestDamaged { .. }
            | StoreError::JournalChanged { .. }
            | StoreError::Newer { .. }
            | StoreError::TooLong { .. }
            | StoreError::Broken { .. } => CommandExit::Failed,
        };
        let hint = error.hint().map(str::to_owned);
        Self::new(exit, error.into(), hint)
    }
}

impl From<IdeasDirError> for CommandFailure {
    fn from(error: IdeasDirError) -> Self {
        let exit = match error {
            IdeasDirError::Busy { .. } => CommandExit::Locked,
            IdeasDirError::Damaged { .. } | IdeasDirError::Io { .. } => CommandExit::Failed,
        };
        let hint = error.hint().map(str::to_owned);
        Self::new(exit, error.into(), hint)
    }
}

impl From<JobError> for CommandFailure {
    fn from(error: JobError) -> Self {
        let exit = match error {
            JobError::Spec { .. } => CommandExit::Usage,
            JobError::Claimed { .. } => CommandExit::Locked,
            JobError::Ended { .. } | JobError::Io { .. } => CommandExit::Failed,
            JobError::Withdrawn { .. } => CommandExit::Interrupted,
        };
        Self::new(exit, error.into(), None)
    }
}

impl From<PortError> for CommandFailure {
    fn from(error: PortError) -> Self {
        let hint = error.hint.clone();
        Self::new(CommandExit::Failed, error.into(), hint)
    }
}

impl From<AgentError> for CommandFailure {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Unavailable(error) => {
                Self { exit: CommandExit::Environment, ..Self::from(error) }
            }
            AgentError::Interrupted => {
                Self { exit: CommandExit::Interrupted, error: error.into(), hint: None }
            }
            AgentError::Unanswered(_)
            | AgentError::Forgotten(_)
            | AgentError::OutOfTime(_)
            | AgentError::OverBudget { .. } => {
                Self { exit: CommandExit::Failed, error: error.into(), hint: None }
            }
        }
    }
}

impl From<RunHalt> for CommandFailure {
    fn from(halt: RunHalt) -> Self {
        match halt {
            RunHalt::Port(error) => error.into(),
            RunHalt::Agent(error) => error.into(),
            RunHalt::RootUnsound { .. } | RunHalt::InputsChanged { .. } => {
                Self { exit: CommandExit::Environment, error: halt.into(), hint: None }
            }
            RunHalt::Interrupted(_) => {
                Self { exit: CommandExit::Interrupted, error: halt.into(), hint: None }
            }
            RunHalt::Promotion { .. } | RunHalt::Unexpected(_) | RunHalt::Broken { .. } => {
                Self { exit: CommandExit::Failed, error: halt.into(), hint: None }
            }
        }
    }
}

impl From<io::Error> for CommandFailure {
    fn from(error: io::Error) -> Self {
        Self::new(CommandExit::Failed, error.into(), None)
    }
}

impl From<serde_json::Error> for CommandFailure {
    fn from(error: serde_json::Error) -> Self {
        Self::new(CommandExit::Failed, error.into(), None)
    }
}
