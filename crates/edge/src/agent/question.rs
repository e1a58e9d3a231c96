//! What goes through the layers of the door: a question, who is to answer it, and what can go wrong. Each layer is an
//! [`Answer`] around another one.

use std::sync::Arc;
use std::time::{Duration, Instant};
use treebeam_core::event::BudgetKind;
use treebeam_core::id::{NodeId, Place, Sha256};
use treebeam_run::port::{AgentError, Ask, Continuation, PortError, Reply, Role, Usage};

/// A question on its way through the door.
#[derive(Clone, Debug)]
pub struct Question {
    /// Names it for good; a plain file name.
    pub key: String,
    /// In which role it is asked.
    pub role: Role,
    /// Which round of its step this is, counted from 0.
    pub round: u32,
    /// The text. It can be long, and many hold it at once.
    pub prompt: Arc<str>,
    /// The answer that it goes on from.
    pub continues: Option<Continuation>,
    /// The worktree that it is about; none outside of a run.
    pub place: Option<Place>,
    /// The node that it is about; none outside of a run.
    pub node: Option<NodeId>,
}

impl Question {
    /// The name of the answer that it goes on from.
    #[must_use]
    pub fn goes_on_from(&self) -> Option<&str> {
        self.continues.as_ref().map(|continuation| continuation.id.as_str())
    }

    /// Tells two questions of one key apart.
    #[must_use]
    pub fn digest(&self) -> Sha256 {
        let before = self.goes_on_from().unwrap_or_default();
        let role = self.role.to_string();
        Sha256::of_parts([&*role, "\0", before, "\0", &*self.prompt].map(str::as_bytes))
    }
}

impl From<&Ask> for Question {
    fn from(ask: &Ask) -> Self {
        let Ask { key, role, round, prompt, place, node, continues, within: _, until: _ } =
            ask.clone();
        Self { key, role, round, prompt, continues, place: Some(place), node: Some(node) }
    }
}

/// A layer of the door.
pub(super) trait Answer: Sync {
    /// Answers a question. The meter is told of every further try that costs something.
    fn answer(&self, question: &Question, meter: &dyn Meter) -> Result<Reply, Trouble>;
}

/// Watches over what tries may cost, and how long they take.
pub(super) trait Meter: Sync {
    /// Asks for one more try after one that may have been charged for.
    fn another_try(&self) -> Result<(), Trouble>;

    /// How long tries may take from now on, all together; for ever, without a length.
    fn left(&self) -> Option<Duration> {
        None
    }

    /// When nobody is waited for any longer, whatever they take.
    fn end(&self) -> Option<Instant> {
        None
    }

    /// Hears how long a try took, whatever came of it.
    fn tried(&self, _: Duration) {}
}

/// Nobody counts, but the time may have an end.
#[derive(Default)]
pub(super) struct Within {
    /// Of the tries, all together.
    pub(super) tries: Option<Duration>,
    /// Of everything.
    pub(super) end: Option<Instant>,
}

impl From<&Ask> for Within {
    fn from(ask: &Ask) -> Self {
        Self {
            tries: ask.within,
            end: ask.until.and_then(|until| Instant::now().checked_add(until)),
        }
    }
}

impl Meter for Within {
    fn another_try(&self) -> Result<(), Trouble> {
        Ok(())
    }

    fn left(&self) -> Option<Duration> {
        self.tries
    }

    fn end(&self) -> Option<Instant> {
        self.end
    }
}

/// Why one try brought no answer.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It may go away by itself.
    Passing {
        why: String,
        fault: Fault,
        /// When the other side wants to be asked again.
        wait: Option<Duration>,
        spent: Spent,
    },
    /// There were too many questions: it goes away by waiting.
    TooMany { why: String, wait: Option<Duration> },
    /// The same question would fail again.
    Unanswered { why: String, spent: Spent },
    /// An answer came, and is none that can be read: the same question would bring such a one again.
    Unreadable { why: String, raw: Vec<u8>, spent: Spent },
    /// The provider does not go on from the answer that was named.
    Forgotten(String),
    /// An answer could take more than is left.
    OverBudget { budget: BudgetKind, why: String },
    /// The time that tries may take was over before an answer came.
    OutOfTime { why: String, spent: Spent },
    /// Somebody wants to stop.
    Interrupted,
    /// No question will be answered.
    Unavailable(PortError),
}

/// What is at fault when something may go away by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nobody is there.
    Unreachable,
    /// Somebody is there, and has no room for any question.
    Overloaded,
    /// Somebody is there, and did not answer well.
    Answering,
}

/// What a failed try has cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spent {
    Nothing,
    /// It was under way: the worst is to be assumed.
    Perhaps,
    Known(Usage),
}

impl Trouble {
    /// The time is over, and nothing was asked.
    pub(super) fn too_late(why: &str) -> Self {
        Self::OutOfTime { why: format!("there was no time left: {why}"), spent: Spent::Nothing }
    }

    /// It fails this question, and cost nothing.
    pub(super) fn unanswered(why: impl Into<String>) -> Self {
        Self::Unanswered { why: why.into(), spent: Spent::Nothing }
    }

    /// An answer began and did not end.
    pub(super) fn broken_off(why: impl Into<String>) -> Self {
        let (why, spent) = (why.into(), Spent::Perhaps);
        Self::Passing { why, fault: Fault::Answering, wait: None, spent }
    }

    /// What it has cost.
    pub(super) const fn spent(&self) -> Spent {
        match self {
            Self::Passing { spent, .. }
            | Self::Unanswered { spent, .. }
            | Self::Unreadable { spent, .. }
            | Self::OutOfTime { spent, .. } => *spent,
            Self::TooMany { .. }
            | Self::Forgotten(_)
            | Self::OverBudget { .. }
            | Self::Interrupted
            | Self::Unavailable(_) => Spent::Nothing,
        }
    }
}

impl From<PortError> for Trouble {
    fn from(error: PortError) -> Self {
        Self::Unavailable(error)
    }
}

impl From<Trouble> for AgentError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Passing { why, .. }
            | Trouble::TooMany { why, .. }
            | Trouble::Unanswered { why, .. }
            | Trouble::Unreadable { why, .. } => Self::Unanswered(why),
            Trouble::Forgotten(why) => Self::Forgotten(why),
            Trouble::OutOfTime { why, .. } => Self::OutOfTime(why),
            Trouble::OverBudget { budget, why } => Self::OverBudget { budget, why },
            Trouble::Interrupted => Self::Interrupted,
            Trouble::Unavailable(error) => Self::Unavailable(error),
        }
    }
}
