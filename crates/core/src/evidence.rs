//! Measured figures that decisions rest on. Plain facts, no judgement.

use crate::id::{RunPath, Sha256};
use crate::measure::UserPath;
use crate::num::Finite;
use crate::rules_version::RulesVersion;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Copy of a file that a decision rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Path of the copy, below `artifacts/`.
    pub path: RunPath,
    /// Digest of the copy.
    pub sha256: Sha256,
    /// Source of the copy: a path in the run, or `repo:` and a path from the repository's top.
    pub source: String,
}

/// Prefix of a source that the run did not measure.
const USER_SOURCE_PREFIX: &str = "repo:";

impl Artifact {
    /// Replaces the source with a file of the user's.
    #[must_use]
    pub fn with_user_source(self, file: &UserPath) -> Self {
        Self { source: format!("{USER_SOURCE_PREFIX}{file}"), ..self }
    }

    /// Returns the user's file that this is a copy of, or `None` if the run measured it.
    #[must_use]
    pub fn user_source(&self) -> Option<&str> {
        self.source.strip_prefix(USER_SOURCE_PREFIX)
    }
}

/// Grade of a candidate against one baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// Clearly better than the baseline.
    Strong,
    /// Better than the baseline.
    Promising,
    /// About as good as the baseline.
    Mixed,
    /// Worse than the baseline.
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

/// Reason for a recommendation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecommendationReason {
    /// The primary metric is worse by more than its threshold.
    PrimaryMetricRegressed,
    /// Guarded columns are worse by more than their threshold.
    RiskRegressed(Vec<String>),
    /// Enough metrics improved.
    NetImprovement,
    /// Too few metrics improved.
    InsufficientSignal,
}

impl RecommendationReason {
    /// Returns the name of the reason, without its columns.
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

/// Verdict of the metrics on a candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recommendation {
    /// True if the search should continue from this candidate.
    pub should_explore: bool,
    /// Grade of the candidate.
    pub grade: Grade,
    /// Weighted relative improvement; 0 if no metric was used.
    pub score: Finite,
    /// Number of metrics that improved.
    pub positive_signals: u32,
    /// Number of metrics that got worse.
    pub negative_signals: u32,
    /// Number of metrics that both sides have.
    pub metrics_used: u32,
    /// Reasons for the verdict.
    pub reasons: Vec<RecommendationReason>,
}

impl Recommendation {
    /// Returns true if the primary metric regressed beyond its threshold.
    #[must_use]
    pub fn has_primary_regression(&self) -> bool {
        self.reasons.contains(&RecommendationReason::PrimaryMetricRegressed)
    }
    /// Returns true if a guarded metric regressed beyond its threshold.
    #[must_use]
    pub fn has_risk_regression(&self) -> bool {
        self.reasons.iter().any(|reason| matches!(reason, RecommendationReason::RiskRegressed(_)))
    }
}

/// Comparison of the primary metric by configuration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairedDifference {
    /// Number of configurations that both sides have.
    pub pairs: u32,
    /// Mean difference; positive is better.
    pub mean_difference: Finite,
    /// Number of configurations that improved.
    pub wins: u32,
    /// Number of configurations that got worse.
    pub losses: u32,
    /// Lower end of the 95 % bootstrap interval of the mean difference.
    pub low: Finite,
    /// Upper end of the 95 % bootstrap interval of the mean difference.
    pub high: Finite,
}

/// Comparison of a candidate with one baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Number of rows of the baseline that were used.
    pub baseline_rows_used: u32,
    /// Number of rows of the candidate that were used.
    pub candidate_rows_used: u32,
    /// Verdict of the metrics.
    pub recommendation: Recommendation,
    /// Change of the primary metric; positive is better, whatever the metric's direction.
    pub primary_delta: Option<Finite>,
    /// Comparison by configuration; `None` with fewer than two pairs.
    pub paired: Option<PairedDifference>,
    /// Means of the primary metric. Records of the first rules lack them.
    #[serde(default)]
    pub primary_means: Option<PrimaryMeans>,
}

/// Mean of the primary metric on both sides of a comparison, in the metric's own direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrimaryMeans {
    /// Mean of the baseline.
    pub baseline: Finite,
    /// Mean of the candidate.
    pub candidate: Finite,
}

/// Counts of expected, successful and failed configurations of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepCompleteness {
    /// The limit N, or without a limit the minimum number of rows.
    pub expected_count: u32,
    /// Number of distinct expected configurations that are ok.
    pub ok_count: u32,
    /// Number of selected rows that are not ok.
    pub error_count: u32,
}

/// Deviations of a candidate's CSV from the form of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultsForm {
    /// Number of rows that are shorter or longer than the header.
    pub ragged_rows: u32,
    /// Number of rows that repeat an id.
    pub duplicate_ids: u32,
    /// Number of ids that the root does not have.
    #[serde(default)]
    pub unknown_ids: u32,
    /// Invariant columns that differ from the root's.
    pub changed_invariants: Vec<String>,
    /// Configured metrics without a number in a configuration where the parent has one.
    #[serde(default)]
    pub lost_numbers: Vec<LostNumbers>,
    /// Required columns that the root has and the candidate lacks.
    #[serde(default)]
    pub missing_columns: Vec<String>,
    /// Line numbers of the first rows that are shorter or longer than the header.
    #[serde(default)]
    pub ragged_lines: Vec<u64>,
    /// First ids that are repeated.
    #[serde(default)]
    pub repeated_ids: Vec<String>,
}

/// Metric without a number where the parent has one. Its mean is taken over the other rows, which
/// may make it look better.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostNumbers {
    /// Name of the metric.
    pub column: String,
    /// Number of configurations concerned.
    pub rows: u32,
}

/// All figures that the gate and the rank depend on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CandidateScore {
    /// Comparison with the parent node's own sweep.
    pub vs_parent: Comparison,
    /// Comparison with the root's sweep.
    pub vs_root: Comparison,
    /// Counts of the expected configurations.
    pub completeness: SweepCompleteness,
    /// Deviations from the form of a sweep.
    pub form: ResultsForm,
    /// True if any configured metric differs from the parent's in any row.
    pub has_effect: bool,
    /// Version of the rules that these figures were made by.
    #[serde(default = "RulesVersion::of_older_records")]
    pub rules_version: RulesVersion,
}
