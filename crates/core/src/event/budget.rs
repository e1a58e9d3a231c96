//! The budgets that a run is paid from: answers of agents, and time.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a budget counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetKind {
    /// Money.
    Cost,
    /// Tokens.
    Tokens,
    /// Time.
    Deadline,
}

impl fmt::Display for BudgetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cost => "cost",
            Self::Tokens => "tokens",
            Self::Deadline => "time",
        })
    }
}
