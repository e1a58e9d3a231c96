//! Errors that end a run early.

use crate::port::{AgentError, InterruptionCause, PortError};
use treebeam_core::event::SweepSubject;
use treebeam_core::id::EvalId;
use treebeam_core::state::{State, StateError};

/// A reason why the loop ended before the run did. Nothing is lost: a resume goes on from the
/// record.
#[derive(Debug, thiserror::Error)]
pub enum RunHalt {
    /// The user asked to leave the run: running steps have ended, the executor's jobs go on.
    #[error("interrupted")]
    Interrupted(Box<State>),
    /// A port failed that the run cannot do without.
    #[error(transparent)]
    Port(#[from] PortError),
    /// No agent answers any question.
    #[error(transparent)]
    Agent(AgentError),
    /// The root cannot be a baseline.
    #[error("the root cannot be used as a baseline: {why}")]
    RootUnsound {
        /// The defect of the root's sweep.
        why: String,
    },
    /// The user's files have changed since the root was measured: results would not be comparable.
    #[error("the sweep of `{subject}` is not submitted: {why}")]
    InputsChanged {
        /// Subject of the sweep.
        subject: SweepSubject,
        /// The changed files, as far as they are known.
        why: String,
    },
    /// A promotion failed too often.
    #[error("eval {eval} could not be promoted: {why}")]
    Promotion {
        /// The eval to be promoted.
        eval: EvalId,
        /// The last error.
        why: String,
    },
    /// The journal and the loop disagree.
    #[error(transparent)]
    Unexpected(#[from] StateError),
    /// A step panicked or had no brief.
    #[error("{step} broke off: {why}")]
    Broken {
        /// Name of the step.
        step: String,
        /// Message of the panic, or the reason.
        why: String,
    },
}

impl RunHalt {
    /// Adds the activity of the run to an error of a port. An interruption stays as it is.
    pub(crate) fn while_doing(self, doing: &str) -> Self {
        let wrap = |error: PortError| {
            let hint = error.hint.clone();
            let above = PortError::new(format!("the run stopped while {doing}"));
            PortError { hint, ..above.with_cause(error) }
        };
        match self {
            Self::Port(error) if !error.is_interruption() => Self::Port(wrap(error)),
            Self::Agent(AgentError::Unavailable(error)) if !error.is_interruption() => {
                Self::Agent(AgentError::Unavailable(wrap(error)))
            }
            other @ (Self::Port(_)
            | Self::Interrupted(_)
            | Self::Agent(_)
            | Self::RootUnsound { .. }
            | Self::InputsChanged { .. }
            | Self::Promotion { .. }
            | Self::Unexpected(_)
            | Self::Broken { .. }) => other,
        }
    }
}

impl From<AgentError> for RunHalt {
    /// Treats a question that was cut off by a request to end as an interruption.
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Unavailable(error) if error.is_interruption() => Self::Port(error),
            AgentError::Interrupted => {
                let error = PortError::new("the answer is not there yet");
                Self::Port(error.with_cause(InterruptionCause))
            }
            other @ (AgentError::Unavailable(_)
            | AgentError::Unanswered(_)
            | AgentError::Forgotten(_)
            | AgentError::OutOfTime(_)
            | AgentError::OverBudget { .. }) => Self::Agent(other),
        }
    }
}
