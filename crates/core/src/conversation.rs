//! Conversations with an idea generator: the turns of a branch, their forks and the replayed
//! history. Pure: independent of the agent, of where texts are stored, and of a run.

mod pack;

pub use pack::{WrittenSummary, count_summarised_turns, pack_turns, pack_with_summary};

use crate::bill::TokenUsage;
use crate::id::{NodeId, Sha256, TurnId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Way in which earlier turns are passed to a generator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConversationMode {
    /// Earlier turns are not used.
    Off,
    /// The provider's session if it has one, else replay.
    #[default]
    Auto,
    /// The provider's session keeps them.
    Native,
    /// The prompt repeats them.
    Replay,
}

impl ConversationMode {
    /// Returns the mode of runs whose record has none: they predate conversations.
    #[must_use]
    pub const fn default_for_older_runs() -> Self {
        Self::Off
    }

    /// Returns true if a provider's session is used where there is one.
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

/// Way in which one question continued the earlier turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContinuationKind {
    /// The provider's session kept them.
    Native,
    /// The prompt repeated them.
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

/// Reply that the provider keeps in a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Continuation {
    /// Provider's id of the reply.
    pub id: String,
    /// Tokens of the conversation so far: the next reply is charged for them again.
    pub tokens: u64,
    /// Usage of the conversation so far, for providers that report totals, not single replies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<TokenUsage>,
}

/// One question and reply, as recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Number of ideas requested.
    pub asked: u32,
    /// Way in which the question continued the turn before.
    pub way: ContinuationKind,
    /// Digest of the question.
    pub prompt: Sha256,
    /// Digest of the reply; `None` if there was none.
    pub reply: Option<Sha256>,
    /// Provider's id of the reply that the question continued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continued: Option<String>,
    /// Session state that the next question may continue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<Continuation>,
    /// Summary of older turns, used in this turn and in those after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<TurnSummary>,
    /// Note on a deviation from the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Recorded summary that an agent wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnSummary {
    /// Last turn that the summary covers.
    pub until: TurnId,
    /// Digest of the summary.
    pub reply: Sha256,
}

/// Earlier turn of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PastTurn {
    /// Id of the turn.
    pub turn_id: TurnId,
    /// Question and result in one line.
    pub in_short: String,
    /// Text of the reply, if available.
    pub text: Option<String>,
    /// Session state that the next question may continue.
    pub continuation: Option<Continuation>,
}

impl PastTurn {
    /// Returns true if there was a reply of which more than the summary line is known.
    #[must_use]
    pub const fn is_answered(&self) -> bool {
        self.text.is_some() || self.continuation.is_some()
    }
}

/// Earlier turns of a conversation: its own and those of its lineage up to each fork, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conversation {
    /// Node that the conversation belongs to and is named after: `c0003` is that of node 3.
    pub node_id: NodeId,
    /// Turn of another conversation that this one continues.
    pub fork_from_turn_id: Option<TurnId>,
    /// Turns, oldest first.
    pub turns: Vec<PastTurn>,
}

impl Conversation {
    /// Forks the conversation after a turn, without later turns; `None` if there is no such turn.
    #[must_use]
    pub fn fork_at(&self, node_id: NodeId, at: TurnId) -> Option<Self> {
        let end = self.turns.iter().position(|past| past.turn_id == at)? + 1;
        let turns = self.turns.iter().take(end).cloned().collect();
        Some(Self { node_id, fork_from_turn_id: Some(at), turns })
    }

    /// Returns a node id that no turn here uses: a name for a fork without a node of its own.
    #[must_use]
    pub fn next_node_id(&self) -> NodeId {
        let nodes = self.turns.iter().map(|past| past.turn_id.node).chain([self.node_id]);
        nodes.max().unwrap_or(NodeId::ROOT).next()
    }

    /// Returns the id of the last turn.
    #[must_use]
    pub fn latest_turn(&self) -> Option<TurnId> {
        self.turns.last().map(|past| past.turn_id)
    }

    /// Returns the id of the next turn.
    #[must_use]
    pub fn next_turn(&self) -> TurnId {
        let own = self.turns.iter().rev().find(|past| past.turn_id.node == self.node_id);
        let number = own.map_or(0, |past| past.turn_id.number) + 1;
        TurnId { node: self.node_id, number }
    }

    /// Returns the session state that the next question continues, if it has the last reply.
    #[must_use]
    pub fn latest_continuation(&self) -> Option<&Continuation> {
        self.turns.iter().rev().find(|past| past.is_answered())?.continuation.as_ref()
    }
}
