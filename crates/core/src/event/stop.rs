//! Reasons why a run is over.

use super::BudgetKind;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Reason why a run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopReason {
    /// All depths are done.
    #[serde(rename = "max_depth_reached")]
    MaxDepth,
    /// No candidate of a depth was promoted.
    #[serde(rename = "empty_frontier")]
    EmptyFrontier,
    /// No node of the frontier received an idea.
    #[serde(rename = "no_ideas")]
    NoIdeas,
    /// The budget of evals is used up.
    #[serde(rename = "max_total_idea_evals_reached")]
    MaxEvals,
    /// The next reply could cost more than is left.
    #[serde(rename = "max_cost_reached")]
    MaxCost,
    /// The next reply could take more tokens than are left.
    #[serde(rename = "max_tokens_reached")]
    MaxTokens,
    /// The deadline has passed.
    #[serde(rename = "deadline_reached")]
    Deadline,
    /// An eval failed in a run that is set to end then.
    #[serde(rename = "strict_depth_failure")]
    StrictDepthFailure,
}

impl From<BudgetKind> for StopReason {
    fn from(budget: BudgetKind) -> Self {
        match budget {
            BudgetKind::Cost => Self::MaxCost,
            BudgetKind::Tokens => Self::MaxTokens,
            BudgetKind::Deadline => Self::Deadline,
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MaxDepth => "max_depth_reached",
            Self::EmptyFrontier => "empty_frontier",
            Self::NoIdeas => "no_ideas",
            Self::MaxEvals => "max_total_idea_evals_reached",
            Self::MaxCost => "max_cost_reached",
            Self::MaxTokens => "max_tokens_reached",
            Self::Deadline => "deadline_reached",
            Self::StrictDepthFailure => "strict_depth_failure",
        })
    }
}
