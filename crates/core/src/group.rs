//! Parts of a run: the tree, and the control group of ideas that are tried on the root only, for
//! comparison. The size of each is decided elsewhere.

use crate::id::{BadName, NodeId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Part of a run that an eval belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvalGroup {
    /// The tree: the eval may become a node.
    #[default]
    Tree,
    /// The control group: tried on the root for comparison, not gated, ranked or promoted.
    Control,
}

impl EvalGroup {
    /// Returns true for the tree, to which all evals of a run without a control group belong.
    #[must_use]
    pub fn is_tree(&self) -> bool {
        *self == Self::Tree
    }
}

/// Node or group that ideas are generated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum IdeaSource {
    /// A node of the tree.
    Node(NodeId),
    /// The control group, whose ideas are tried on the root.
    Control,
}

impl IdeaSource {
    /// Name of the control group, used in place of a node's id.
    const CONTROL_NAME: &str = "control";

    /// Returns the node that the ideas are tried on.
    #[must_use]
    pub const fn node_id(self) -> NodeId {
        match self {
            Self::Node(id) => id,
            Self::Control => NodeId::ROOT,
        }
    }

    /// Returns the part of the run that the evals of these ideas belong to.
    #[must_use]
    pub const fn group(self) -> EvalGroup {
        match self {
            Self::Node(_) => EvalGroup::Tree,
            Self::Control => EvalGroup::Control,
        }
    }
}

/// Formats the source as in file names and records: `0003`, `control`.
impl fmt::Display for IdeaSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(id) => id.fmt(f),
            Self::Control => f.write_str(Self::CONTROL_NAME),
        }
    }
}

impl FromStr for IdeaSource {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Self, BadName> {
        if text == Self::CONTROL_NAME {
            return Ok(Self::Control);
        }
        text.parse().map(Self::Node)
    }
}

impl TryFrom<String> for IdeaSource {
    type Error = BadName;
    fn try_from(text: String) -> Result<Self, BadName> {
        text.parse()
    }
}

impl From<IdeaSource> for String {
    fn from(source: IdeaSource) -> Self {
        source.to_string()
    }
}
