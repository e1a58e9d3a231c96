//! Serialised form of a comparison in the manifest: a candidate against its parent or the root.

use serde::{Deserialize, Serialize};
use treebeam_core::evidence::{
    Artifact, Comparison, Grade, PairedDifference, PrimaryMeans, Recommendation,
    RecommendationReason,
};
use treebeam_core::id::RunPath;
use treebeam_core::num::Finite;

/// A comparison with one baseline, as it is written to the manifest.
#[derive(Serialize, Deserialize)]
pub(super) struct ComparisonLine {
    recommendation_summary: RecommendationLine,
    primary_delta: Option<Finite>,
    #[serde(skip_deserializing)]
    baseline_csv_path: Option<RunPath>,
    baseline_rows_used: u32,
    candidate_rows_used: u32,
    paired: Option<PairedDifference>,
    /// Absent in older manifests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    primary_means: Option<PrimaryMeans>,
    #[serde(skip_deserializing)]
    summary_json_path: Option<RunPath>,
}

#[derive(Serialize, Deserialize)]
struct RecommendationLine {
    should_explore: bool,
    grade: Grade,
    score: Finite,
    reasons: Vec<String>,
    /// The columns of the reason `risk_regressed`, whose names may hold any character.
    #[serde(default)]
    risk_regressed_columns: Vec<String>,
    positive_signals: u32,
    negative_signals: u32,
    metrics_used: u32,
}

impl ComparisonLine {
    pub(super) fn from_comparison(
        comparison: &Comparison,
        baseline: Option<&Artifact>,
        summary: RunPath,
    ) -> Self {
        Self {
            recommendation_summary: RecommendationLine::from_recommendation(
                &comparison.recommendation,
            ),
            primary_delta: comparison.primary_delta,
            baseline_csv_path: baseline.map(|artifact| artifact.path.clone()),
            baseline_rows_used: comparison.baseline_rows_used,
            candidate_rows_used: comparison.candidate_rows_used,
            paired: comparison.paired,
            primary_means: comparison.primary_means,
            summary_json_path: Some(summary),
        }
    }

    pub(super) fn into_comparison(self) -> Result<Comparison, String> {
        Ok(Comparison {
            baseline_rows_used: self.baseline_rows_used,
            candidate_rows_used: self.candidate_rows_used,
            recommendation: self.recommendation_summary.into_recommendation()?,
            primary_delta: self.primary_delta,
            paired: self.paired,
            primary_means: self.primary_means,
        })
    }
}

impl RecommendationLine {
    fn from_recommendation(recommendation: &Recommendation) -> Self {
        let columns = recommendation.reasons.iter().find_map(|reason| match reason {
            RecommendationReason::RiskRegressed(columns) => Some(columns.clone()),
            RecommendationReason::PrimaryMetricRegressed
            | RecommendationReason::NetImprovement
            | RecommendationReason::InsufficientSignal => None,
        });
        Self {
            should_explore: recommendation.should_explore,
            grade: recommendation.grade,
            score: recommendation.score,
            reasons: recommendation.reasons.iter().map(ToString::to_string).collect(),
            risk_regressed_columns: columns.unwrap_or_default(),
            positive_signals: recommendation.positive_signals,
            negative_signals: recommendation.negative_signals,
            metrics_used: recommendation.metrics_used,
        }
    }

    fn into_recommendation(mut self) -> Result<Recommendation, String> {
        let columns = &mut self.risk_regressed_columns;
        let reason = |text: &String| match text.as_str() {
            "primary_metric_regressed" => Ok(RecommendationReason::PrimaryMetricRegressed),
            "net_improvement" => Ok(RecommendationReason::NetImprovement),
            "insufficient_signal" => Ok(RecommendationReason::InsufficientSignal),
            text if text.starts_with("risk_regressed: ") => {
                Ok(RecommendationReason::RiskRegressed(std::mem::take(columns)))
            }
            _ => Err(format!("`reasons` has {text:?}")),
        };
        Ok(Recommendation {
            reasons: self.reasons.iter().map(reason).collect::<Result<_, _>>()?,
            should_explore: self.should_explore,
            grade: self.grade,
            score: self.score,
            positive_signals: self.positive_signals,
            negative_signals: self.negative_signals,
            metrics_used: self.metrics_used,
        })
    }
}
