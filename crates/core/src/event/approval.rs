//! The approval of a candidate: by a reviewer, without one, or against one.

use serde::{Deserialize, Serialize};

/// Who let a candidate through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// Nobody: there is no reviewer.
    #[default]
    Unreviewed,
    /// The reviewer.
    Approved,
    /// `proceed_on_max_review_rounds`, against the reviewer's word.
    LetThrough,
}
