//! Which part of a run something belongs to: the tree, or the control group that is tried on the root alone, so that there is
//! something to compare the tree with. Nothing here decides how large either is.

use crate::id::{BadName, NodeId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Which part of a run an eval belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvalGroup {
    /// It may become a node.
    #[default]
    Tree,
    /// It is tried on the root for comparison: neither gated, nor ranked, nor promoted.
    Control,
}

impl EvalGroup {
    /// Whether it is of the tree, as all are in a run without a control group.
    #[must_use]
    pub fn is_tree(&self) -> bool {
        *self == Self::Tree
    }
}

/// What ideas are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum IdeaSource {
    /// A node of the tree.
    Node(NodeId),
    /// The control group: they are tried on the root.
    Control,
}

impl IdeaSource {
    /// The word for the control group, where others have a node's id.
    const CONTROL_NAME: &str = "control";

    /// The node that its ideas are tried on.
    #[must_use]
    pub const fn node_id(self) -> NodeId {
        match self {
            Self::Node(id) => id,
            Self::Control => NodeId::ROOT,
        }
    }

    /// What its evals belong to.
    #[must_use]
    pub const fn group(self) -> EvalGroup {
        match self {
            Self::Node(_) => EvalGroup::Tree,
            Self::Control => EvalGroup::Control,
        }
    }
}

/// As in the names of files and in the record: `0003`, `control`.
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
