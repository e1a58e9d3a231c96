//! The port to agents: one question, one answer, what it took, and why there may be none. Who answers, and through which
//! wire, is not known here.

use super::PortError;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use treebeam_core::bill::{AgentBill, Cost, TokenUsage};
pub use treebeam_core::conversation::Continuation;
use treebeam_core::event::{BudgetKind, FileDigest};
use treebeam_core::id::{CodePlace, NodeId};
use treebeam_core::role::AgentRole;

/// Somebody who answers questions: a model, a program, or the dry world.
pub trait Agent: Sync {
    /// Whether anybody answers in a role.
    fn can_answer(&self, role: AgentRole) -> bool;

    /// What the answers in a role are.
    fn edit_mode(&self, role: AgentRole) -> EditMode;

    /// Whether the one who answers in a role remembers its answers, so that a question can go on from one of them.
    fn can_continue(&self, role: AgentRole) -> bool;

    /// Answers one question.
    ///
    /// # Errors
    /// When no usable answer came.
    fn ask(&self, ask: &AgentRequest) -> Result<AgentReply, AgentError>;
}

/// What an answer about code is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EditMode {
    /// A diff, or no code at all.
    #[default]
    Diff,
    /// What the agent has changed in the worktree itself.
    InPlace,
}

/// One question.
#[derive(Clone, Debug)]
pub struct AgentRequest {
    /// Names the question for good: the same key and prompt is the same question.
    pub key: String,
    /// In which role it is asked.
    pub role: AgentRole,
    /// Which round of its step this is, counted from 0.
    pub round: u32,
    /// The text. It can be long, and many hold it at once.
    pub prompt: Arc<str>,
    /// The worktree that the question is about.
    pub place: CodePlace,
    /// The node that it is about: for an eval, the one that it is tried on.
    pub node: NodeId,
    /// The answer that it goes on from, where the provider keeps what was said before.
    pub continues: Option<Continuation>,
    /// How long the answer may take, all tries together, where that has an end; waiting for a slot or for a rate limit does
    /// not count.
    pub within: Option<Duration>,
    /// How long from now the run's time lasts, where that has an end. Whatever is waited for then is waited for no longer, and
    /// nothing is asked after it.
    pub until: Option<Duration>,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentReply {
    /// The text.
    pub text: String,
    /// What it took, where that was said.
    pub usage: Option<TokenUsage>,
    /// What that cost, where the price is known.
    pub cost: Option<Cost>,
    /// The provider's name for the answer.
    pub id: Option<String>,
    /// The model that says it answered.
    pub model: Option<String>,
    /// What was changed in the worktree, as a diff, where that is the answer; empty where nothing was. The worktree itself
    /// is as it was before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edits: Option<String>,
    /// What the whole conversation has taken by now, where the provider counts that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<TokenUsage>,
    /// How long it took, in milliseconds, all tries together, without the waiting for a slot or for a rate limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub millis: Option<u64>,
    /// The file of the run that the answer is kept in, where it is kept in one.
    #[serde(skip)]
    pub kept_as: Option<FileDigest>,
}

impl AgentReply {
    /// An answer of which nothing but its text is known.
    #[must_use]
    pub const fn from_text(text: String) -> Self {
        let (usage, cost, id, model) = (None, None, None, None);
        let (edits, taken, millis, kept_as) = (None, None, None, None);
        Self { text, usage, cost, id, model, edits, taken, millis, kept_as }
    }

    /// What it took. An answer of which nothing but its text is known is none that is paid for.
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

    /// What the next question may go on from, where the answer has a name.
    #[must_use]
    pub fn continuation(&self) -> Option<Continuation> {
        let tokens = self.usage.map_or(0, |usage| usage.total_tokens());
        Some(Continuation { id: self.id.clone()?, tokens, taken: self.taken })
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// This question failed; others may not.
    #[error("{0}")]
    Unanswered(String),
    /// The provider does not go on from the answer that was named: ask without it.
    #[error("{0}")]
    Forgotten(String),
    /// An answer could take more than is left.
    #[error("{why}")]
    OverBudget {
        /// Of which budget.
        budget: BudgetKind,
        /// In words.
        why: String,
    },
    /// The time that the answer may take was over before it came.
    #[error("{0}")]
    OutOfTime(String),
    /// Somebody wants the run to pause, and the answer is a long way off.
    #[error("interrupted while waiting for an answer")]
    Interrupted,
    /// The agent cannot be used at all.
    #[error(transparent)]
    Unavailable(#[from] PortError),
}
