//! The gate's word on a candidate, as it is held: what the gate says to the candidate's figures is not held beside them in
//! words. A verdict that does not follow from them is held as it was recorded.

use super::{Rules, Verdict};
use crate::facts::{Measured, Work};
use crate::policy::Meaning;
use serde::{Deserialize, Serialize};

/// The gate's word on a candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Word {
    /// What these rules say to its figures.
    Derived {
        /// The rules.
        rules: Rules,
        /// Whether it may go on.
        passed: bool,
    },
    /// Something else.
    Recorded(Box<Verdict>),
}

impl Word {
    /// A verdict on a candidate, in as little room as will do.
    #[must_use]
    pub fn of(verdict: &Verdict, measured: &Measured, meaning: &Meaning) -> Self {
        let rules = Rules::of(meaning);
        if derived(rules, measured) == *verdict {
            Self::Derived { rules, passed: verdict.passed() }
        } else {
            Self::Recorded(Box::new(verdict.clone()))
        }
    }

    /// Whether the candidate may go on.
    #[must_use]
    pub fn passed(&self) -> bool {
        match self {
            Self::Derived { passed, .. } => *passed,
            Self::Recorded(verdict) => verdict.passed(),
        }
    }

    /// The verdict on this candidate, to the letter.
    #[must_use]
    pub fn verdict(&self, measured: &Measured) -> Verdict {
        match self {
            Self::Derived { rules, .. } => derived(*rules, measured),
            Self::Recorded(verdict) => (**verdict).clone(),
        }
    }
}

fn derived(rules: Rules, measured: &Measured) -> Verdict {
    let Work { files_changed, approval, .. } = measured.work;
    rules.judge(&measured.scored, files_changed, approval)
}
