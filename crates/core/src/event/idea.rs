//! Events about ideas: proposed, added by the user or skipped, with their prompt context.

use super::MessageId;
use crate::bill::RoleBills;
use crate::conversation::Turn;
use crate::group::IdeaSource;
use crate::id::{EvalId, NodeId, RunPath, Sha256};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Ideas of one expansion of a node or of the control group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdeasProposed {
    /// Node or group that the ideas are for.
    #[serde(rename = "node")]
    pub source: IdeaSource,
    /// Ideas that are tried, in order, with their new ids.
    pub queued: Vec<NewEval>,
    /// Ideas that the budget leaves untried.
    pub untried: Vec<Idea>,
    /// Repeated ideas that were skipped.
    pub repeats: Vec<RepeatedIdea>,
    /// Number of turns used in the conversation.
    pub turns: u32,
    /// Context in the generator's prompt.
    pub context: ContextPack,
    /// Bills of the replies.
    #[serde(default, skip_serializing_if = "RoleBills::is_empty")]
    pub bills: RoleBills,
    /// Recorded turns; empty without a conversation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversation: Vec<Turn>,
    /// Time of the event.
    pub at: Timestamp,
}

/// Idea that becomes an eval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewEval {
    /// Id of the new eval.
    pub eval: EvalId,
    /// Idea to try.
    pub idea: Idea,
}

/// Proposed or added idea; its text is in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idea {
    /// Path of the file, below `node_ideas/`.
    pub path: RunPath,
    /// Digest of the file.
    pub sha256: Sha256,
    /// Digest of the normalised text: two ideas that share it are the same idea.
    pub fingerprint: Sha256,
    /// Text of the `IDEA:` line.
    pub title: String,
    /// Turn of the node's conversation that brought it, from 1; `None` if the user added the idea.
    pub turn: Option<u32>,
}

impl Idea {
    /// Returns the idea's name in a chain of ideas: the node's id and the file's stem.
    #[must_use]
    pub fn chain_id(&self) -> &str {
        let path = self.path.as_str();
        let path = path.strip_prefix("node_ideas/").unwrap_or(path);
        path.strip_suffix(".md").unwrap_or(path)
    }
}

/// Idea of the user that becomes an eval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdeaAdded {
    /// Message with the idea.
    pub message: MessageId,
    /// Node that the idea is tried on.
    pub node: NodeId,
    /// Id of the new eval.
    pub eval: EvalId,
    /// Idea to try.
    pub idea: Idea,
    /// Time of the event.
    pub at: Timestamp,
}

/// Ideas that the user gives to a run. They are tried on the root, and none is promoted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserIdeas {
    /// Texts of the ideas, in the order of trying; if empty, only the root is measured.
    pub ideas: Vec<String>,
    /// Worktree of the user that the only candidate is measured in, instead of one of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place: Option<String>,
}

/// Repeated idea that was skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepeatedIdea {
    /// Digest of the normalised text.
    pub fingerprint: Sha256,
    /// Title of the idea.
    pub title: String,
}

/// Prompt context about a node, as the generator received it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextPack {
    /// File with the text.
    pub path: RunPath,
    /// Digest of the file.
    pub sha256: Sha256,
    /// Idea files that the context mentions.
    pub idea_files: Vec<FileDigest>,
}

/// File and its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDigest {
    /// Path of the file.
    pub path: RunPath,
    /// Digest of the file.
    pub sha256: Sha256,
}
