//! What was measured: the figures that decisions rest on. Plain facts, no judgement.

use crate::id::{RunPath, Sha256};
use crate::measure::UserPath;
use crate::num::Finite;
use crate::rules_version::RulesVersion;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A copy of a file that a decision rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Where the copy lies, below `artifacts/`.
    pub path: RunPath,
    /// Its digest.
    pub sha256: Sha256,
    /// What it was copied from: a path in the run, or one of the user's, seen from the repository's top, after `repo:`.
    pub source: String,
}

/// What a source begins with that the run did not measure.
const USER_SOURCE_PREFIX: &str = "repo:";

impl Artifact {
    /// The same, as a copy of a file of the user's.
    #[must_use]
    pub fn with_user_source(self, file: &UserPath) -> Self {
        Self { source: format!("{USER_SOURCE_PREFIX}{file}"), ..self }
    }

    /// The file of the user's that it was copied from; none: the run measured it.
    #[must_use]
    pub fn user_source(&self) -> Option<&str> {
        self.source.strip_prefix(USER_SOURCE_PREFIX)
    }
}

/// How good a candidate looks against one baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// Clearly better.
    Strong,
    /// Better.
    Promising,
    /// About the same.
    Mixed,
    /// Worse.
    Weak,
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Strong => "strong",
            Self::Promising => "promising",
            Self::Mixed => "mixed",
            Self::Weak => "weak",
        })
    }
}

/// Why a recommendation is as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecommendationReason {
    /// The primary metric is worse by more than its threshold.
    PrimaryMetricRegressed,
    /// These guarded columns are worse by more than their threshold.
    RiskRegressed(Vec<String>),
    /// Enough got better.
    NetImprovement,
    /// Not enough got better.
    InsufficientSignal,
}

impl RecommendationReason {
    /// What it is called, whatever the columns.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::PrimaryMetricRegressed => "primary_metric_regressed",
            Self::RiskRegressed(_) => "risk_regressed",
            Self::NetImprovement => "net_improvement",
            Self::InsufficientSignal => "insufficient_signal",
        }
    }
}

impl fmt::Display for RecommendationReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::RiskRegressed(columns) => write!(f, ": {}", columns.join(", ")),
            Self::PrimaryMetricRegressed | Self::NetImprovement | Self::InsufficientSignal => {
                Ok(())
            }
        }
    }
}

/// The verdict of the metrics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recommendation {
    /// Whether to go on from here.
    pub should_explore: bool,
    /// How good it looks.
    pub grade: Grade,
    /// The weighted relative improvement; 0 with no metric behind it.
    pub score: Finite,
    /// How many metrics got better.
    pub positive_signals: u32,
    /// How many got worse.
    pub negative_signals: u32,
    /// How many both sides had.
    pub metrics_used: u32,
    /// Why.
    pub reasons: Vec<RecommendationReason>,
}

impl Recommendation {
    /// Whether the primary metric regressed beyond its threshold.
    #[must_use]
    pub fn has_primary_regression(&self) -> bool {
        self.reasons.contains(&RecommendationReason::PrimaryMetricRegressed)
    }
    /// Whether a guarded metric regressed beyond its threshold.
    #[must_use]
    pub fn has_risk_regression(&self) -> bool {
        self.reasons.iter().any(|reason| matches!(reason, RecommendationReason::RiskRegressed(_)))
    }
}

/// The primary metric compared configuration by configuration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairedDifference {
    /// How many configurations both sides have.
    pub pairs: u32,
    /// The mean difference, positive is better.
    pub mean_difference: Finite,
    /// How many got better.
    pub wins: u32,
    /// How many got worse.
    pub losses: u32,
    /// The lower end of the 95 % bootstrap interval of the mean difference.
    pub low: Finite,
    /// Its upper end.
    pub high: Finite,
}

/// A candidate against one baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// How many rows of the baseline were used.
    pub baseline_rows_used: u32,
    /// How many rows of the candidate were used.
    pub candidate_rows_used: u32,
    /// The verdict of the metrics.
    pub recommendation: Recommendation,
    /// The primary's change, positive is better whatever its direction.
    pub primary_delta: Option<Finite>,
    /// Configuration by configuration; none with fewer than two pairs.
    pub paired: Option<PairedDifference>,
    /// The primary's means. Figures of the first rules do not have them.
    #[serde(default)]
    pub primary_means: Option<PrimaryMeans>,
}

/// The primary metric's mean on both sides of a comparison, whatever its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrimaryMeans {
    /// The baseline's.
    pub baseline: Finite,
    /// The candidate's.
    pub candidate: Finite,
}

/// How many configurations were expected, and what became of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepCompleteness {
    /// With a limit N: N; without: the fewest rows that will do.
    pub expected_count: u32,
    /// Distinct expected configurations that are ok.
    pub ok_count: u32,
    /// Selected rows that are not ok.
    pub error_count: u32,
}

/// Whether a candidate's CSV has the form of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultsForm {
    /// Rows that are shorter or longer than the header.
    pub ragged_rows: u32,
    /// Rows that repeat an id.
    pub duplicate_ids: u32,
    /// Ids that the root does not have.
    #[serde(default)]
    pub unknown_ids: u32,
    /// Invariant columns that differ from the root's.
    pub changed_invariants: Vec<String>,
    /// Configured metrics without a number in a configuration in which the parent has one.
    #[serde(default)]
    pub lost_numbers: Vec<LostNumbers>,
    /// Columns of the form that the root has and the candidate lacks.
    #[serde(default)]
    pub missing_columns: Vec<String>,
    /// The lines of the first rows that are shorter or longer than the header.
    #[serde(default)]
    pub ragged_lines: Vec<u64>,
    /// The first ids that rows repeat.
    #[serde(default)]
    pub repeated_ids: Vec<String>,
}

/// A metric that has no number where the parent has one. Its mean is that of the others: it may look better for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostNumbers {
    /// The metric.
    pub column: String,
    /// In how many configurations.
    pub rows: u32,
}

/// Everything that the gate and the rank look at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CandidateScore {
    /// Against the parent node's own sweep.
    pub vs_parent: Comparison,
    /// Against the root's.
    pub vs_root: Comparison,
    /// Whether all configurations are there.
    pub completeness: SweepCompleteness,
    /// Whether the file is what a sweep writes.
    pub form: ResultsForm,
    /// Whether any configured metric differs from the parent's in any row.
    pub has_effect: bool,
    /// The version of the rules that these figures were made by.
    #[serde(default = "RulesVersion::of_older_records")]
    pub rules_version: RulesVersion,
}
