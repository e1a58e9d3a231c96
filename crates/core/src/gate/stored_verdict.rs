//! The gate's word on a candidate, as it is held: what the gate says to the candidate's figures is not held beside them in
//! words. A verdict that does not follow from them is held as it was recorded.

use super::{GateLimits, GateVerdict};
use crate::facts::{Candidate, ScoredCandidate};
use crate::policy::FixedSettings;
use serde::{Deserialize, Serialize};

/// The gate's word on a candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum StoredVerdict {
    /// What these rules say to its figures.
    Derived {
        /// The rules.
        rules: GateLimits,
        /// Whether it may go on.
        passed: bool,
    },
    /// Something else.
    Recorded(Box<GateVerdict>),
}

impl StoredVerdict {
    /// A verdict on a candidate, in as little room as will do.
    #[must_use]
    pub fn from_verdict(
        verdict: &GateVerdict,
        measured: &ScoredCandidate,
        settings: &FixedSettings,
    ) -> Self {
        let rules = GateLimits::from_settings(settings);
        if derive_verdict(rules, measured) == *verdict {
            Self::Derived { rules, passed: verdict.has_passed() }
        } else {
            Self::Recorded(Box::new(verdict.clone()))
        }
    }

    /// Whether the candidate may go on.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        match self {
            Self::Derived { passed, .. } => *passed,
            Self::Recorded(verdict) => verdict.has_passed(),
        }
    }

    /// The verdict on this candidate, to the letter.
    #[must_use]
    pub fn to_verdict(&self, measured: &ScoredCandidate) -> GateVerdict {
        match self {
            Self::Derived { rules, .. } => derive_verdict(*rules, measured),
            Self::Recorded(verdict) => (**verdict).clone(),
        }
    }
}

fn derive_verdict(rules: GateLimits, measured: &ScoredCandidate) -> GateVerdict {
    let Candidate { files_changed, approval, .. } = measured.work;
    rules.judge(&measured.scored, files_changed, approval)
}
