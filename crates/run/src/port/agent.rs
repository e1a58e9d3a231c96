//! The port to agents: one question, one answer, its cost, and the reasons for no answer. It does
//! not depend on which agent answers, or through which protocol.

use super::PortError;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use treebeam_core::bill::{AgentBill, Cost, TokenUsage};
pub use treebeam_core::conversation::Continuation;
use treebeam_core::event::{BudgetKind, FileDigest};
use treebeam_core::id::{CodePlace, NodeId};
use treebeam_core::role::AgentRole;

/// The port to agents that answer questions: a model, a program, or the dry world.
pub trait Agent: Sync {
    /// Returns true if an agent answers in a role.
    fn can_answer(&self, role: AgentRole) -> bool;

    /// Returns the form in which a role's answers change code.
    fn edit_mode(&self, role: AgentRole) -> EditMode;

    /// Returns true if a question can continue an earlier answer of the role's agent.
    fn can_continue(&self, role: AgentRole) -> bool;

    /// Answers one question.
    ///
    /// # Errors
    /// When no usable answer came.
    fn ask(&self, ask: &AgentRequest) -> Result<AgentReply, AgentError>;
}

/// The form in which an answer changes code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EditMode {
    /// A diff in the text, or no code at all.
    #[default]
    Diff,
    /// Changes that the agent has made in the worktree itself.
    InPlace,
}

/// A question to an agent.
#[derive(Clone, Debug)]
pub struct AgentRequest {
    /// Permanent name of the question: the same key and prompt is the same question.
    pub key: String,
    /// Role in which it is asked.
    pub role: AgentRole,
    /// Round of its step, counted from 0.
    pub round: u32,
    /// Text of the question. It can be long, and is shared.
    pub prompt: Arc<str>,
    /// Worktree that the question is about.
    pub place: CodePlace,
    /// Node that the question is about: for an eval, the one that it is tried on.
    pub node: NodeId,
    /// The answer that it continues, where the provider keeps earlier turns.
    pub continues: Option<Continuation>,
    /// Time limit of the answer, for all tries together; waiting for a slot or for a rate limit
    /// does not count. `None` is no limit.
    pub within: Option<Duration>,
    /// Time until the run's deadline, if it has one. Waits end then, and nothing is asked after it.
    pub until: Option<Duration>,
}

/// An answer of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentReply {
    /// Text of the answer.
    pub text: String,
    /// Tokens that the answer used, where the provider reports them.
    pub usage: Option<TokenUsage>,
    /// Cost of these tokens, where the price is known.
    pub cost: Option<Cost>,
    /// The provider's id of the answer.
    pub id: Option<String>,
    /// Name of the model, as the answer reports it.
    pub model: Option<String>,
    /// Changes in the worktree, as a diff, where they are the answer; empty where there were none.
    /// The worktree itself is as it was before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edits: Option<String>,
    /// Tokens that the whole conversation has used by now, where the provider counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<TokenUsage>,
    /// Milliseconds of all tries together, without waiting for a slot or for a rate limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub millis: Option<u64>,
    /// The file of the run that keeps the answer, if there is one.
    #[serde(skip)]
    pub kept_as: Option<FileDigest>,
}

impl AgentReply {
    /// Builds an answer with nothing but a text.
    #[must_use]
    pub const fn from_text(text: String) -> Self {
        let (usage, cost, id, model) = (None, None, None, None);
        let (edits, taken, millis, kept_as) = (None, None, None, None);
        Self { text, usage, cost, id, model, edits, taken, millis, kept_as }
    }

    /// Returns the bill of the answer: zero calls if nothing but its text is known.
    #[must_use]
    pub fn bill(&self) -> AgentBill {
        if self.usage.is_none() && self.cost.is_none() && self.millis.is_none() {
            return AgentBill::default();
        }
        AgentBill {
            calls: 1,
            calls_without_price: u32::from(self.cost.is_none()),
            usage: self.usage.unwrap_or_default(),
            cost: self.cost.unwrap_or_default(),
            millis: self.millis.unwrap_or_default(),
        }
    }

    /// Returns the data for a question that continues this answer, if the answer has an id.
    #[must_use]
    pub fn continuation(&self) -> Option<Continuation> {
        let tokens = self.usage.map_or(0, |usage| usage.total_tokens());
        Some(Continuation { id: self.id.clone()?, tokens, taken: self.taken })
    }
}

/// A reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// This question failed; others may not.
    #[error("{0}")]
    Unanswered(String),
    /// The provider no longer has the answer to be continued: ask without it.
    #[error("{0}")]
    Forgotten(String),
    /// An answer could cost more than a budget has left.
    #[error("{why}")]
    OverBudget {
        /// The budget.
        budget: BudgetKind,
        /// The reason, in words.
        why: String,
    },
    /// The time limit of the answer was over before it came.
    #[error("{0}")]
    OutOfTime(String),
    /// The user wants the run to pause, and the answer is a long way off.
    #[error("interrupted while waiting for an answer")]
    Interrupted,
    /// The agent cannot be used at all.
    #[error(transparent)]
    Unavailable(#[from] PortError),
}
