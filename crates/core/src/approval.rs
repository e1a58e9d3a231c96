//! Approval of a candidate: by a reviewer, without one, or against one.

use serde::{Deserialize, Serialize};

/// Approval of a candidate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// There is no reviewer.
    #[default]
    Unreviewed,
    /// The reviewer approved.
    Approved,
    /// The reviewer rejected, and `proceed_on_max_review_rounds` let it through.
    LetThrough,
}
