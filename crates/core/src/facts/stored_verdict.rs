//! Gate verdicts as held in memory: without the checks' text if it follows from the figures. Any
//! other verdict is held as recorded.

use super::{Candidate, ScoredCandidate};
use crate::gate::{GateLimits, GateVerdict};
use crate::policy::FixedSettings;
use serde::{Deserialize, Serialize};

/// Gate verdict on a candidate, in compact form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum StoredVerdict {
    /// Verdict that follows from the candidate's figures by these limits.
    Derived {
        /// Limits that the verdict was made by.
        rules: GateLimits,
        /// True if the candidate may go on.
        passed: bool,
    },
    /// Verdict that does not follow from the figures.
    Recorded(Box<GateVerdict>),
}

impl StoredVerdict {
    /// Stores a verdict, in compact form if it follows from the candidate's figures.
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

    /// Returns true if the candidate may go on.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        match self {
            Self::Derived { passed, .. } => *passed,
            Self::Recorded(verdict) => verdict.has_passed(),
        }
    }

    /// Restores the exact verdict on the candidate.
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
