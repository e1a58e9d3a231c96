//! What goes through the layers of the door: a question, who is to answer it, and what can go
//! wrong. Each layer is an `AgentLayer` around another one.

use std::sync::Arc;
use std::time::{Duration, Instant};
use treebeam_core::event::BudgetKind;
use treebeam_core::id::{CodePlace, NodeId, Sha256};
use treebeam_run::port::{
    AgentError, AgentReply, AgentRequest, AgentRole, Continuation, PortError, TokenUsage,
};

/// A question on its way through the door.
#[derive(Clone, Debug)]
pub struct AgentQuestion {
    /// Names it for good; a plain file name.
    pub key: String,
    /// In which role it is asked.
    pub role: AgentRole,
    /// Which round of its step this is, counted from 0.
    pub round: u32,
    /// The text. It can be long, and many hold it at once.
    pub prompt: Arc<str>,
    /// The answer that it goes on from.
    pub continues: Option<Continuation>,
    /// The worktree that it is about; none outside of a run.
    pub place: Option<CodePlace>,
    /// The node that it is about; none outside of a run.
    pub node: Option<NodeId>,
}

impl AgentQuestion {
    /// The name of the answer that it goes on from.
    #[must_use]
    pub fn continues_from(&self) -> Option<&str> {
        self.continues.as_ref().map(|continuation| continuation.id.as_str())
    }

    /// Tells two questions of one key apart.
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

/// A layer of the door.
pub(super) trait AgentLayer: Sync {
    /// Answers a question. The meter is told of every further try that costs something.
    fn answer_question(
        &self,
        question: &AgentQuestion,
        meter: &dyn TryMeter,
    ) -> Result<AgentReply, TryError>;
}

/// Watches over what tries may cost, and how long they take.
pub(super) trait TryMeter: Sync {
    /// Asks for one more try after one that may have been charged for.
    fn another_try(&self) -> Result<(), TryError>;

    /// How long tries may take from now on, all together; for ever, without a length.
    fn remaining_time(&self) -> Option<Duration> {
        None
    }

    /// When nobody is waited for any longer, whatever they take.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// Hears how long a try took, whatever came of it.
    fn record_try_time(&self, _: Duration) {}
}

/// Nobody counts, but the time may have an end.
#[derive(Default)]
pub(super) struct DeadlineMeter {
    /// Of the tries, all together.
    pub(super) tries: Option<Duration>,
    /// Of everything.
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

/// Why one try brought no answer.
#[derive(Debug)]
pub(super) enum TryError {
    /// It may go away by itself.
    Temporary {
        why: String,
        fault: ServerFault,
        /// When the other side wants to be asked again.
        wait: Option<Duration>,
        spent: TryCost,
    },
    /// There were too many questions: it goes away by waiting.
    RateLimited { why: String, wait: Option<Duration> },
    /// The same question would fail again.
    Unanswered { why: String, spent: TryCost },
    /// An answer came, and is none that can be read: the same question would bring such a one again.
    Unreadable { why: String, raw: Vec<u8>, spent: TryCost },
    /// The provider does not go on from the answer that was named.
    Forgotten(String),
    /// An answer could take more than is left.
    OverBudget { budget: BudgetKind, why: String },
    /// The time that tries may take was over before an answer came.
    OutOfTime { why: String, spent: TryCost },
    /// Somebody wants to stop.
    Interrupted,
    /// No question will be answered.
    Unavailable(PortError),
}

/// What is at fault when something may go away by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerFault {
    /// Nobody is there.
    Unreachable,
    /// Somebody is there, and has no room for any question.
    Overloaded,
    /// Somebody is there, and did not answer well.
    Answering,
    /// The server answered 500 or nothing at all: it is out of order, or fails at this question.
    Undecided,
}

/// What a failed try has cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TryCost {
    Nothing,
    /// It was under way: the worst is to be assumed.
    Unknown,
    Known(TokenUsage),
}

impl TryError {
    /// The time is over, and nothing was asked.
    pub(super) fn too_late(why: &str) -> Self {
        Self::OutOfTime { why: format!("there was no time left: {why}"), spent: TryCost::Nothing }
    }

    /// It fails this question, and cost nothing.
    pub(super) fn unanswered(why: impl Into<String>) -> Self {
        Self::Unanswered { why: why.into(), spent: TryCost::Nothing }
    }

    /// An answer began and did not end.
    pub(super) fn broken_off(why: impl Into<String>) -> Self {
        let (why, spent) = (why.into(), TryCost::Unknown);
        Self::Temporary { why, fault: ServerFault::Answering, wait: None, spent }
    }

    /// No answer began.
    pub(super) fn not_begun(why: impl Into<String>) -> Self {
        let (why, spent) = (why.into(), TryCost::Unknown);
        Self::Temporary { why, fault: ServerFault::Undecided, wait: None, spent }
    }

    /// What it has cost.
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
