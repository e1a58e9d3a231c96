//! Roles of agents, with the names that the configuration uses.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Role of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentRole {
    /// Coordinator: points out what to watch for.
    Coordinator,
    /// Planner: plans the implementation of an idea.
    Planner,
    /// Coder: implements the idea.
    Coder,
    /// Reviewer: reviews the implementation.
    Reviewer,
    /// Idea generator: proposes ideas.
    Ideas,
}

impl AgentRole {
    /// All roles, in the order in which they act.
    pub const ALL: [Self; 5] =
        [Self::Coordinator, Self::Planner, Self::Coder, Self::Reviewer, Self::Ideas];

    /// Returns the role's name, as in the configuration.
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

impl fmt::Display for AgentRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for AgentRole {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(|role| format!("`{role}`")).join(", ");
        let role = Self::ALL.into_iter().find(|role| role.name() == text);
        role.ok_or_else(|| format!("the roles are {}", names()))
    }
}
