//! Who is asked. The same words as in the configuration.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentRole {
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

impl AgentRole {
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
