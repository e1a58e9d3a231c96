//! The port to agents: one question, one answer, what it took, and why there may be none. Who answers, and through which
//! wire, is not known here.

use super::PortError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Add;
use std::str::FromStr;
use treebeam_core::event::BudgetKind;
use treebeam_core::id::{NodeId, Place};

/// Somebody who answers questions: a model, a program, or the dry world.
pub trait Agent: Sync {
    /// Whether anybody answers in a role.
    fn answers(&self, role: Role) -> bool;

    /// Answers one question.
    ///
    /// # Errors
    /// When no usable answer came.
    fn ask(&self, ask: &Ask) -> Result<Reply, AgentError>;
}

/// One question.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Names the question for good: the same key and prompt is the same question.
    pub key: String,
    /// In which role it is asked.
    pub role: Role,
    /// Which round of its step this is, counted from 0.
    pub round: u32,
    /// The text.
    pub prompt: String,
    /// The worktree that the question is about.
    pub place: Place,
    /// The node that it is about: for an eval, the one that it is tried on.
    pub node: NodeId,
    /// The answer that it goes on from, where the provider keeps what was said before.
    pub continues: Option<Continuation>,
}

/// An answer that the provider remembers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Continuation {
    /// The provider's name for it.
    pub id: String,
    /// How much has been said by then: the next answer is charged for it again.
    pub tokens: u64,
    /// What the conversation had taken by then, where the provider counts that and not single answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Usage>,
}

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Says what to watch out for.
    Coordinator,
    /// Plans an idea's implementation.
    Planner,
    /// Implements it.
    Coder,
    /// Looks it over.
    Reviewer,
    /// Proposes ideas.
    Ideas,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Coordinator, Self::Planner, Self::Coder, Self::Reviewer, Self::Ideas];

    /// Its name, as in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Coordinator => "coordinator",
            Self::Planner => "planner",
            Self::Coder => "coder",
            Self::Reviewer => "reviewer",
            Self::Ideas => "ideas",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Role {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(|role| format!("`{role}`")).join(", ");
        let role = Self::ALL.into_iter().find(|role| role.name() == text);
        role.ok_or_else(|| format!("the roles are {}", names()))
    }
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The text.
    pub text: String,
    /// What it took, where that was said.
    pub usage: Option<Usage>,
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
    pub taken: Option<Usage>,
}

impl Reply {
    /// An answer of which nothing but its text is known.
    #[must_use]
    pub const fn of(text: String) -> Self {
        let (usage, cost, id, model) = (None, None, None, None);
        Self { text, usage, cost, id, model, edits: None, taken: None }
    }

    /// What the next question may go on from, where the answer has a name.
    #[must_use]
    pub fn continuation(&self) -> Option<Continuation> {
        let tokens = self.usage.map_or(0, |usage| usage.total());
        Some(Continuation { id: self.id.clone()?, tokens, taken: self.taken })
    }
}

/// What an answer took, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// What was read, all of it.
    pub input: u64,
    /// How much of that was in a cache.
    pub cached: u64,
    /// What was written, thoughts included.
    pub output: u64,
}

impl Usage {
    /// What came after another one, where both were counted from the same beginning.
    #[must_use]
    pub const fn since(&self, before: &Self) -> Self {
        Self {
            input: self.input.saturating_sub(before.input),
            cached: self.cached.saturating_sub(before.cached),
            output: self.output.saturating_sub(before.output),
        }
    }

    /// Read and written.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

/// An amount of money. Counted in millionths of a millionth of a dollar, so that sums are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cost(u64);

impl Cost {
    /// So many millionths of a millionth of a dollar.
    #[must_use]
    pub const fn pico(amount: u64) -> Self {
        Self(amount)
    }

    /// So many dollars; what is no amount is none.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    pub fn dollars(amount: f64) -> Self {
        Self((amount * 1e12).round() as u64)
    }

    /// In dollars.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "shown to people")]
    pub fn in_dollars(self) -> f64 {
        self.0 as f64 / 1e12
    }
}

impl Cost {
    /// What is left of it.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Cost {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${:.6}", self.in_dollars())
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
    /// Somebody wants the run to pause, and the answer is a long way off.
    #[error("interrupted while waiting for an answer")]
    Interrupted,
    /// The agent cannot be used at all.
    #[error(transparent)]
    Unavailable(#[from] PortError),
}
