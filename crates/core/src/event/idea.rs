//! Ideas on their way to be tried: what was proposed, what the user added, what was skipped, and what was told.

use super::MessageId;
use crate::bill::RoleBills;
use crate::conversation::Turn;
use crate::group::IdeaSource;
use crate::id::{EvalId, NodeId, RunPath, Sha256};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The ideas of one expansion of a node, or of the control group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdeasProposed {
    /// Whose.
    #[serde(rename = "node")]
    pub source: IdeaSource,
    /// Those that are tried, in order, with the ids they get.
    pub queued: Vec<NewEval>,
    /// Those that the budget leaves untried.
    pub untried: Vec<Idea>,
    /// Those that were skipped as repeats.
    pub repeats: Vec<RepeatedIdea>,
    /// How many turns the node's conversation took.
    pub turns: u32,
    /// What the generator was told.
    pub context: ContextPack,
    /// What the answers took.
    #[serde(default, skip_serializing_if = "RoleBills::is_empty")]
    pub bills: RoleBills,
    /// The turns; nothing is known of them where there is no conversation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversation: Vec<Turn>,
    /// When.
    pub at: Timestamp,
}

/// An idea on its way to be tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewEval {
    /// The id it gets.
    pub eval: EvalId,
    /// The idea.
    pub idea: Idea,
}

/// A proposed or added idea; its text is the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idea {
    /// The file, below `node_ideas/`.
    pub path: RunPath,
    /// The file's digest.
    pub sha256: Sha256,
    /// The digest of its normalised text: two ideas that share it are the same idea.
    pub fingerprint: Sha256,
    /// The first line of its `IDEA:`.
    pub title: String,
    /// Which turn of the node's conversation brought it, counted from 1; none for one that the user added.
    pub turn: Option<u32>,
}

impl Idea {
    /// Its name in a chain of ideas: the node's id and the file's stem.
    #[must_use]
    pub fn chain_id(&self) -> &str {
        let path = self.path.as_str();
        let path = path.strip_prefix("node_ideas/").unwrap_or(path);
        path.strip_suffix(".md").unwrap_or(path)
    }
}

/// An idea of the user's on its way to be tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdeaAdded {
    /// The message that brought it.
    pub message: MessageId,
    /// The node that it is tried on.
    pub node: NodeId,
    /// The id it gets.
    pub eval: EvalId,
    /// The idea.
    pub idea: Idea,
    /// When.
    pub at: Timestamp,
}

/// Ideas that the user gives to a run from the start. They are tried on the root, and nothing is promoted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserIdeas {
    /// Their texts, in the order in which they are tried; none: only the root is measured.
    pub ideas: Vec<String>,
    /// The user's worktree that the only candidate is put into and measured in, instead of one of the run's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place: Option<String>,
}

/// An idea that was proposed again, and skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepeatedIdea {
    /// The digest of its normalised text.
    pub fingerprint: Sha256,
    /// Its title.
    pub title: String,
}

/// The text that the generator was told about a node, as it was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextPack {
    /// The file.
    pub path: RunPath,
    /// Its digest.
    pub sha256: Sha256,
    /// The idea files that it mentions.
    pub idea_files: Vec<FileDigest>,
}

/// A file and its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDigest {
    /// The file.
    pub path: RunPath,
    /// Its digest.
    pub sha256: Sha256,
}
