//! Version of the rules by which candidates are scored and judged. Figures carry the version that
//! made them: a closed depth is checked by the rules that closed it, not by today's.

use serde::{Deserialize, Serialize};

/// Version of the scoring and judging rules, recorded as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub enum RulesVersion {
    /// A change of the last bit is an effect, and a candidate may drop a column.
    First,
    /// A difference that rounding explains is no effect, and a candidate needs every required
    /// column of the root.
    Second,
}

impl RulesVersion {
    /// Version that new figures are made by.
    pub const LATEST: Self = Self::Second;

    /// Returns the version of records that state none.
    #[must_use]
    pub const fn of_older_records() -> Self {
        Self::First
    }

    /// Returns true for the version of records that state none.
    #[must_use]
    pub fn is_of_older_records(&self) -> bool {
        *self == Self::of_older_records()
    }

    /// Returns true for the version that new figures are made by.
    #[must_use]
    pub fn is_latest(self) -> bool {
        self == Self::LATEST
    }
}

impl From<RulesVersion> for u32 {
    fn from(version: RulesVersion) -> Self {
        match version {
            RulesVersion::First => 1,
            RulesVersion::Second => 2,
        }
    }
}

/// Error for a recorded rules version that this program does not support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("version {0} of the rules is unknown to this treebeam; a newer one may know it")]
pub struct UnknownRulesVersion(u32);

impl TryFrom<u32> for RulesVersion {
    type Error = UnknownRulesVersion;

    fn try_from(number: u32) -> Result<Self, Self::Error> {
        match number {
            1 => Ok(Self::First),
            2 => Ok(Self::Second),
            other => Err(UnknownRulesVersion(other)),
        }
    }
}
