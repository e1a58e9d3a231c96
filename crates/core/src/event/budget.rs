//! Budgets of a run: cost and tokens of agents' replies, and time.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Kind of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetKind {
    /// Money for agents' replies.
    Cost,
    /// Tokens of agents' replies.
    Tokens,
    /// Time until the deadline.
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
