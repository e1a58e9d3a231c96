//! The types that pass the layers: a question, the time and cost of its tries, and what can go
//! wrong. Each layer is an [`AgentLayer`] around another one.

use std::sync::Arc;
use std::time::{Duration, Instant};
use treebeam_core::event::BudgetKind;
use treebeam_core::id::{CodePlace, NodeId, Sha256};
use treebeam_run::port::{
    AgentError, AgentReply, AgentRequest, AgentRole, Continuation, PortError, TokenUsage,
};

/// A question to an agent.
#[derive(Clone, Debug)]
pub struct AgentQuestion {
    /// Permanent name of the question; a plain file name.
    pub key: String,
    /// Role in which the question is asked.
    pub role: AgentRole,
    /// Round of the question's step, counted from 0.
    pub round: u32,
    /// The prompt, which can be long and is shared by many.
    pub prompt: Arc<str>,
    /// The answer that the question continues, if any.
    pub continues: Option<Continuation>,
    /// The worktree that the question is about; none outside of a run.
    pub place: Option<CodePlace>,
    /// The node that the question is about; none outside of a run.
    pub node: Option<NodeId>,
}

impl AgentQuestion {
    /// Returns the id of the answer that the question continues.
    #[must_use]
    pub fn continues_from(&self) -> Option<&str> {
        self.continues.as_ref().map(|continuation| continuation.id.as_str())
    }

    /// Returns a digest that tells two questions of one key apart.
    #[must_use]
    pub fn digest(&self) -> Sha256 {
        let before = self.continues_from().unwrap_or_default();
        let role = self.role.to_string();
        Sha256::hash_parts([&*role, "\0", before, "\0", &*self.prompt].map(str::as_bytes))
    }
}

impl From<&AgentRequest> for AgentQuestion {
    fn from(ask: &AgentRequest) -> Self {
        let AgentRequest { key, role, round, prompt, place, node, continues, within: _, until: _ } =
            ask.clone();
        Self { key, role, round, prompt, continues, place: Some(place), node: Some(node) }
    }
}

/// A layer that answers questions, usually with the help of an inner layer.
pub(super) trait AgentLayer: Sync {
    /// Answers a question. The layer reports every further try that costs something to the meter.
    fn answer_question(
        &self,
        question: &AgentQuestion,
        meter: &dyn TryMeter,
    ) -> Result<AgentReply, TryError>;
}

/// Meter that limits the cost and the time of a question's tries.
pub(super) trait TryMeter: Sync {
    /// Admits one more try after one that may have been charged for.
    fn another_try(&self) -> Result<(), TryError>;

    /// Returns the time that is left for all tries together; none if it is unlimited.
    fn remaining_time(&self) -> Option<Duration> {
        None
    }

    /// Returns the time at which waiting ends, whatever the tries take.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// Records the time that a try took, successful or not.
    fn record_try_time(&self, _: Duration) {}
}

/// A meter that counts nothing, but may limit the time.
#[derive(Default)]
pub(super) struct DeadlineMeter {
    /// Time for the tries, all together.
    pub(super) tries: Option<Duration>,
    /// End of the waiting.
    pub(super) end: Option<Instant>,
}

impl From<&AgentRequest> for DeadlineMeter {
    fn from(ask: &AgentRequest) -> Self {
        Self {
            tries: ask.within,
            end: ask.until.and_then(|until| Instant::now().checked_add(until)),
        }
    }
}

impl TryMeter for DeadlineMeter {
    fn another_try(&self) -> Result<(), TryError> {
        Ok(())
    }

    fn remaining_time(&self) -> Option<Duration> {
        self.tries
    }

    fn deadline(&self) -> Option<Instant> {
        self.end
    }
}

/// The reason why one try brought no answer.
#[derive(Debug)]
pub(super) enum TryError {
    /// The error may go away by itself.
    Temporary {
        why: String,
        fault: ServerFault,
        /// Wait that the other side states.
        wait: Option<Duration>,
        spent: TryCost,
    },
    /// There were too many questions; waiting helps.
    RateLimited { why: String, wait: Option<Duration> },
    /// The question would fail again in the same way.
    Unanswered { why: String, spent: TryCost },
    /// The answer is unreadable, and would be again.
    Unreadable { why: String, raw: Vec<u8>, spent: TryCost },
    /// The provider has forgotten the answer to continue from.
    Forgotten(String),
    /// An answer could take more than is left of the budget.
    OverBudget { budget: BudgetKind, why: String },
    /// The time for tries was over before an answer came.
    OutOfTime { why: String, spent: TryCost },
    /// The user wants to stop.
    Interrupted,
    /// No question can be answered.
    Unavailable(PortError),
}

/// The part at fault in a temporary error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerFault {
    /// No server answers.
    Unreachable,
    /// The server has no room for any question.
    Overloaded,
    /// The server answered badly.
    Answering,
    /// The server answered 500 or nothing at all: it is out of order, or fails at this question.
    Undecided,
}

/// The cost of a failed try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TryCost {
    Nothing,
    /// The try was under way: the worst case is assumed.
    Unknown,
    Known(TokenUsage),
}

impl TryError {
    /// Creates the error for a question that was not asked because the time was over.
    pub(super) fn too_late(why: &str) -> Self {
        Self::OutOfTime { why: format!("there was no time left: {why}"), spent: TryCost::Nothing }
    }

    /// Creates the error for a question that failed and cost nothing.
    pub(super) fn unanswered(why: impl Into<String>) -> Self {
        Self::Unanswered { why: why.into(), spent: TryCost::Nothing }
    }

    /// Creates the error for an answer that began and did not end.
    pub(super) fn broken_off(why: impl Into<String>) -> Self {
        let (why, spent) = (why.into(), TryCost::Unknown);
        Self::Temporary { why, fault: ServerFault::Answering, wait: None, spent }
    }

    /// No answer began.
    pub(super) fn not_begun(why: impl Into<String>) -> Self {
        let (why, spent) = (why.into(), TryCost::Unknown);
        Self::Temporary { why, fault: ServerFault::Undecided, wait: None, spent }
    }

    /// Returns the cost of the try.
    pub(super) const fn spent(&self) -> TryCost {
        match self {
            Self::Temporary { spent, .. }
            | Self::Unanswered { spent, .. }
            | Self::Unreadable { spent, .. }
            | Self::OutOfTime { spent, .. } => *spent,
            Self::RateLimited { .. }
            | Self::Forgotten(_)
            | Self::OverBudget { .. }
            | Self::Interrupted
            | Self::Unavailable(_) => TryCost::Nothing,
        }
    }
}

impl From<PortError> for TryError {
    fn from(error: PortError) -> Self {
        Self::Unavailable(error)
    }
}

impl From<TryError> for AgentError {
    fn from(trouble: TryError) -> Self {
        match trouble {
            TryError::Temporary { why, .. }
            | TryError::RateLimited { why, .. }
            | TryError::Unanswered { why, .. }
            | TryError::Unreadable { why, .. } => Self::Unanswered(why),
            TryError::Forgotten(why) => Self::Forgotten(why),
            TryError::OutOfTime { why, .. } => Self::OutOfTime(why),
            TryError::OverBudget { budget, why } => Self::OverBudget { budget, why },
            TryError::Interrupted => Self::Interrupted,
            TryError::Unavailable(error) => Self::Unavailable(error),
        }
    }
}
