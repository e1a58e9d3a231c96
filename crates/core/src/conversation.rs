//! Conversations with an idea generator: the turns of a branch, where they fork, and what of them is told again. Pure: who
//! is asked, and where texts lie, is not known here. A conversation stands for itself: it needs no run around it.

mod pack;

pub use pack::{WrittenSummary, count_summarised_turns, pack_turns, pack_with_summary};

use crate::bill::TokenUsage;
use crate::id::{NodeId, Sha256, TurnId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a generator comes to know what was said before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConversationMode {
    /// Not at all.
    Off,
    /// By the provider's own memory where it has one, else by being told again.
    #[default]
    Auto,
    /// By the provider's own memory.
    Native,
    /// By being told again.
    Replay,
}

impl ConversationMode {
    /// What a run does whose record does not say: it began before there were conversations.
    #[must_use]
    pub const fn default_for_older_runs() -> Self {
        Self::Off
    }

    /// Whether the provider's own memory is used where there is one.
    #[must_use]
    pub const fn wants_native(self) -> bool {
        matches!(self, Self::Auto | Self::Native)
    }
}

impl fmt::Display for ConversationMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::Auto => "auto",
            Self::Native => "native",
            Self::Replay => "replay",
        })
    }
}

/// How one question went on from what was said before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContinuationKind {
    /// The provider remembers it.
    Native,
    /// It was told again.
    Replay,
}

impl fmt::Display for ContinuationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Native => "native",
            Self::Replay => "replay",
        })
    }
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
    pub taken: Option<TokenUsage>,
}

/// One question and answer, as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// How many ideas were asked for.
    pub asked: u32,
    /// How it went on from the turn before.
    pub way: ContinuationKind,
    /// The digest of the question.
    pub prompt: Sha256,
    /// The digest of the answer; none came where there is none.
    pub reply: Option<Sha256>,
    /// The provider's name for the answer that it went on from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continued: Option<String>,
    /// What the next question may go on from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<Continuation>,
    /// What somebody wrote about older turns, to be told in this one and in those after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<TurnSummary>,
    /// What did not go as it was meant to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A summary that somebody was asked for, as it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnSummary {
    /// The last turn that it is about.
    pub until: TurnId,
    /// Its digest.
    pub reply: Sha256,
}

/// A turn as it is remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PastTurn {
    /// Which.
    pub turn_id: TurnId,
    /// What was asked and what came of it, in one line.
    pub in_short: String,
    /// The answer, where it is at hand.
    pub text: Option<String>,
    /// What the next question may go on from.
    pub continuation: Option<Continuation>,
}

impl PastTurn {
    /// Whether there was an answer of which more than its line is known.
    #[must_use]
    pub const fn is_answered(&self) -> bool {
        self.text.is_some() || self.continuation.is_some()
    }
}

/// A conversation as far as it is remembered: its own turns and those of its lineage up to each fork, the oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conversation {
    /// The node that it belongs to, whose number is its name: `c0003` is that of node 3.
    pub node_id: NodeId,
    /// The turn of another conversation that it goes on from.
    pub fork_from_turn_id: Option<TurnId>,
    /// Its turns.
    pub turns: Vec<PastTurn>,
}

impl Conversation {
    /// One that goes on from a turn of this one, and knows nothing of what came after it; none if this one has no such turn.
    #[must_use]
    pub fn fork_at(&self, node_id: NodeId, at: TurnId) -> Option<Self> {
        let end = self.turns.iter().position(|past| past.turn_id == at)? + 1;
        let turns = self.turns.iter().take(end).cloned().collect();
        Some(Self { node_id, fork_from_turn_id: Some(at), turns })
    }

    /// A node that it knows of no turn of: the name of one that forks from it, where nobody else gives it one.
    #[must_use]
    pub fn next_node_id(&self) -> NodeId {
        let nodes = self.turns.iter().map(|past| past.turn_id.node).chain([self.node_id]);
        nodes.max().unwrap_or(NodeId::ROOT).next()
    }

    /// Its last turn.
    #[must_use]
    pub fn latest_turn(&self) -> Option<TurnId> {
        self.turns.last().map(|past| past.turn_id)
    }

    /// The name of its next turn.
    #[must_use]
    pub fn next_turn(&self) -> TurnId {
        let own = self.turns.iter().rev().find(|past| past.turn_id.node == self.node_id);
        let number = own.map_or(0, |past| past.turn_id.number) + 1;
        TurnId { node: self.node_id, number }
    }

    /// What the next question goes on from, where the provider remembers all that was answered.
    #[must_use]
    pub fn latest_continuation(&self) -> Option<&Continuation> {
        self.turns.iter().rev().find(|past| past.is_answered())?.continuation.as_ref()
    }
}
