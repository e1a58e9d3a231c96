//! Comparison of two sweeps: deltas of shared columns, the recommendation, and all figures for gate
//! and rank. Decisions are made by [`treebeam_core::gate`] and [`treebeam_core::rank`].

use crate::paired::{PairCounts, compare_paired, gain_beyond_rounding, match_by_id};
use crate::sweep_csv::Sweep;
use treebeam_core::evidence::{
    CandidateScore, Comparison, Grade, LostNumbers, PrimaryMeans, Recommendation,
    RecommendationReason, ResultsForm,
};
use treebeam_core::num::Finite;
use treebeam_core::policy::{Direction, FixedSettings, Metric, ScorePolicy, ScoreThresholds};
use treebeam_core::rules_version::RulesVersion;

/// Baseline means up to this size are too near to 0 for a relative change.
const NEAR_ZERO_MEAN: f64 = 1e-12;

/// Error for two sweeps that cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScoreError {
    /// No column has numbers on both sides.
    #[error("`{baseline}` and `{candidate}` have no column with numbers in common")]
    NothingShared {
        /// Name of the baseline.
        baseline: String,
        /// Name of the candidate.
        candidate: String,
    },
}

impl ScoreError {
    /// Returns advice for the user.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::NothingShared { .. } => {
                "both files must be of the same sweep: compare their headers"
            }
        }
    }
}

/// Comparison of a candidate with one baseline, with all figures.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonDetails {
    /// Figures that decisions rest on.
    pub comparison: Comparison,
    /// All shared columns, in the order of the baseline's header.
    pub columns: Vec<ColumnDelta>,
    /// Configured metrics that both sides have, in the policy's order.
    pub metrics: Vec<MetricUse>,
}

/// Delta of one shared column.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDelta {
    /// Name of the column.
    pub column: String,
    /// Mean of the baseline.
    pub baseline_mean: f64,
    /// Mean of the candidate.
    pub candidate_mean: f64,
    /// Candidate's mean minus the baseline's; infinite on overflow.
    pub delta: f64,
}

/// Metric that entered the score.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricUse {
    /// Name of the metric.
    pub column: String,
    /// Direction in which the metric is better.
    pub direction: Direction,
    /// Weight of the metric in the score.
    pub weight: Finite,
    /// Mean of the baseline.
    pub baseline_mean: f64,
    /// Mean of the candidate.
    pub candidate_mean: f64,
    /// Improvement of the mean; infinite on overflow.
    pub raw_improvement: f64,
    /// Improvement relative to the baseline, not clamped.
    pub relative_improvement: f64,
    /// Counts by configuration; `None` with fewer than two pairs, or too many rows to keep.
    pub paired: Option<PairCounts>,
}

/// Comparison of a candidate with its parent and the root.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoringDetails {
    /// Figures that the gate and the rank depend on.
    pub scored: CandidateScore,
    /// All figures against the parent.
    pub vs_parent: ComparisonDetails,
    /// All figures against the root.
    pub vs_root: ComparisonDetails,
}

/// Compares a candidate with a baseline, by the latest rules.
///
/// # Errors
/// If rows are selected on both sides and no column has numbers on both.
pub fn compare_sweeps(
    baseline: &Sweep,
    candidate: &Sweep,
    policy: &ScorePolicy,
) -> Result<ComparisonDetails, ScoreError> {
    compare_sweeps_by(RulesVersion::LATEST, baseline, candidate, policy)
}

fn compare_sweeps_by(
    rules: RulesVersion,
    baseline: &Sweep,
    candidate: &Sweep,
    policy: &ScorePolicy,
) -> Result<ComparisonDetails, ScoreError> {
    let columns = column_deltas(baseline, candidate);
    if columns.is_empty() && baseline.rows_used() > 0 && candidate.rows_used() > 0 {
        let (baseline, candidate) = (baseline.name().to_owned(), candidate.name().to_owned());
        return Err(ScoreError::NothingShared { baseline, candidate });
    }
    let of = |(at, metric)| MetricUse::new(at, metric, baseline, candidate);
    let metrics: Vec<MetricUse> = policy.metrics.iter().enumerate().filter_map(of).collect();
    let direction = policy.primary_direction();
    let primary = mean_pair(&policy.primary, baseline, candidate);
    let comparison = Comparison {
        baseline_rows_used: baseline.rows_used(),
        candidate_rows_used: candidate.rows_used(),
        recommendation: build_recommendation(&metrics, primary, policy, rules),
        primary_delta: primary.and_then(|pair| Finite::new(gain_beyond_rounding(pair, direction))),
        paired: compare_paired(baseline, candidate, direction),
        primary_means: match rules {
            RulesVersion::First => None,
            RulesVersion::Second => primary.and_then(finite_means),
        },
    };
    Ok(ComparisonDetails { comparison, columns, metrics })
}

fn finite_means((baseline, candidate): (f64, f64)) -> Option<PrimaryMeans> {
    let (baseline, candidate) = (Finite::new(baseline)?, Finite::new(candidate)?);
    Some(PrimaryMeans { baseline, candidate })
}

/// Compares a candidate with its parent and the root by the latest rules, only once if these are
/// the same sweep. Without a limit and a configured minimum it needs `root_rows` rows.
///
/// # Errors
/// If one of the two comparisons is not possible.
pub fn score_candidate(
    parent: &Sweep,
    root: &Sweep,
    candidate: &Sweep,
    settings: &FixedSettings,
    root_rows: u32,
) -> Result<ScoringDetails, ScoreError> {
    score_candidate_by(RulesVersion::LATEST, [parent, root], candidate, settings, root_rows)
}

/// Compares a candidate with its parent and the root, in this order, by these rules.
///
/// # Errors
/// If one of the two comparisons is not possible.
pub fn score_candidate_by(
    rules: RulesVersion,
    [parent, root]: [&Sweep; 2],
    candidate: &Sweep,
    settings: &FixedSettings,
    root_rows: u32,
) -> Result<ScoringDetails, ScoreError> {
    let vs_parent = compare_sweeps_by(rules, parent, candidate, &settings.score)?;
    let vs_root = if std::ptr::eq(parent, root) {
        vs_parent.clone()
    } else {
        compare_sweeps_by(rules, root, candidate, &settings.score)?
    };
    let limit = settings.sweep_config_limit.map(Into::into);
    let scored = CandidateScore {
        vs_parent: vs_parent.comparison.clone(),
        vs_root: vs_root.comparison.clone(),
        completeness: candidate.completeness(limit, settings.gate.min_rows.unwrap_or(root_rows)),
        form: check_form([parent, root], candidate, &settings.score, rules),
        has_effect: match rules {
            RulesVersion::First => parent.metrics_fingerprint() != candidate.metrics_fingerprint(),
            RulesVersion::Second => parent.differs_beyond_rounding(candidate, &settings.score),
        },
        rules_version: rules,
    };
    Ok(ScoringDetails { scored, vs_parent, vs_root })
}

fn check_form(
    [parent, root]: [&Sweep; 2],
    candidate: &Sweep,
    policy: &ScorePolicy,
    rules: RulesVersion,
) -> ResultsForm {
    let first = ResultsForm {
        ragged_rows: candidate.ragged_rows(),
        duplicate_ids: candidate.duplicate_ids(),
        unknown_ids: root.count_unknown_ids(candidate),
        changed_invariants: changed_invariants(root, candidate, policy),
        lost_numbers: lost_numbers(parent, candidate, policy),
        ..ResultsForm::default()
    };
    match rules {
        RulesVersion::First => first,
        RulesVersion::Second => ResultsForm {
            missing_columns: missing_columns(root, candidate, policy),
            ragged_lines: candidate.ragged_lines().to_vec(),
            repeated_ids: candidate.repeated_ids(),
            ..first
        },
    }
}

/// Returns the required columns that the root has and the candidate lacks: id, status, invariants
/// and every configured metric.
fn missing_columns(root: &Sweep, candidate: &Sweep, policy: &ScorePolicy) -> Vec<String> {
    let named = [&policy.id_column, &policy.status_column];
    let metrics = policy.metrics.iter().map(|metric| &metric.column);
    let all = named.into_iter().chain(&policy.invariant_columns).chain([&policy.primary]);
    let mut missing: Vec<String> = Vec::new();
    for column in all.chain(metrics) {
        let is_missing = root.has_column(column) && !candidate.has_column(column);
        if is_missing && !missing.contains(column) {
            missing.push(column.clone());
        }
    }
    missing
}

fn column_deltas(baseline: &Sweep, candidate: &Sweep) -> Vec<ColumnDelta> {
    let shared = baseline.column_means().filter_map(|(column, baseline_mean)| {
        let candidate_mean = candidate.column_mean(column)?;
        let delta = candidate_mean - baseline_mean;
        Some(ColumnDelta { column: column.to_owned(), baseline_mean, candidate_mean, delta })
    });
    shared.collect()
}

/// Returns the means of a column on both sides, the baseline's first.
fn mean_pair(column: &str, baseline: &Sweep, candidate: &Sweep) -> Option<(f64, f64)> {
    baseline.column_mean(column).zip(candidate.column_mean(column))
}

fn raw_improvement((baseline, candidate): (f64, f64), direction: Direction) -> f64 {
    match direction {
        Direction::Higher => candidate - baseline,
        Direction::Lower => baseline - candidate,
    }
}

/// Returns the improvement of a mean, as far as the rules count it.
fn counted_improvement(pair: (f64, f64), direction: Direction, rules: RulesVersion) -> f64 {
    match rules {
        RulesVersion::First => raw_improvement(pair, direction),
        RulesVersion::Second => gain_beyond_rounding(pair, direction),
    }
}

impl MetricUse {
    /// Returns the improvement of the metric; 0 if the means differ by no more than rounding.
    #[must_use]
    pub fn gain(&self) -> f64 {
        self.counted_improvement(RulesVersion::LATEST)
    }

    fn counted_improvement(&self, rules: RulesVersion) -> f64 {
        counted_improvement((self.baseline_mean, self.candidate_mean), self.direction, rules)
    }

    /// Creates the figures of the metric with this index; `None` unless both sides have its column.
    fn new(at: usize, metric: &Metric, baseline: &Sweep, candidate: &Sweep) -> Option<Self> {
        let pair = mean_pair(&metric.column, baseline, candidate)?;
        let raw_improvement = raw_improvement(pair, metric.direction);
        let size = pair.0.abs();
        let unit = if size <= NEAR_ZERO_MEAN { 1.0 } else { size };
        Some(Self {
            column: metric.column.clone(),
            direction: metric.direction,
            weight: metric.weight,
            baseline_mean: pair.0,
            candidate_mean: pair.1,
            raw_improvement,
            relative_improvement: raw_improvement / unit,
            paired: PairCounts::new(at, baseline, candidate, metric.direction),
        })
    }
}

fn build_recommendation(
    metrics: &[MetricUse],
    primary: Option<(f64, f64)>,
    policy: &ScorePolicy,
    rules: RulesVersion,
) -> Recommendation {
    let thresholds = &policy.thresholds;
    let score = weighted_score(metrics, thresholds.clamp.get());
    let positive_signals = count_signals(metrics, rules, |improvement| improvement > 0.0);
    let negative_signals = count_signals(metrics, rules, |improvement| improvement < 0.0);
    let mut reasons: Vec<RecommendationReason> = primary_regression(primary, policy, rules)
        .into_iter()
        .chain(risk_regression(metrics, policy, rules))
        .collect();
    let enough = score >= thresholds.promising
        || positive_signals >= negative_signals.saturating_add(2).max(2);
    let should_explore = reasons.is_empty() && enough;
    reasons.push(if should_explore {
        RecommendationReason::NetImprovement
    } else {
        RecommendationReason::InsufficientSignal
    });
    Recommendation {
        should_explore,
        grade: grade_score(score, thresholds),
        score,
        positive_signals,
        negative_signals,
        metrics_used: u32::try_from(metrics.len()).unwrap_or(u32::MAX),
        reasons,
    }
}

/// Returns the weighted mean of the clamped relative improvements; 0 with no weight behind it.
fn weighted_score(metrics: &[MetricUse], clamp: f64) -> Finite {
    let (mut sum, mut weights) = (0.0, 0.0);
    for metric in metrics {
        sum += metric.weight.get() * metric.relative_improvement.min(clamp).max(-clamp);
        weights += metric.weight.get();
    }
    Finite::new(sum / weights).unwrap_or_default()
}

fn count_signals(metrics: &[MetricUse], rules: RulesVersion, counts: fn(f64) -> bool) -> u32 {
    let counted = metrics.iter().filter(|metric| counts(metric.counted_improvement(rules))).count();
    u32::try_from(counted).unwrap_or(u32::MAX)
}

fn primary_regression(
    primary: Option<(f64, f64)>,
    policy: &ScorePolicy,
    rules: RulesVersion,
) -> Option<RecommendationReason> {
    let pair = primary?;
    let allowed = policy.thresholds.primary_regression.get() * pair.0.abs();
    let regressed = counted_improvement(pair, policy.primary_direction(), rules) < -allowed;
    regressed.then_some(RecommendationReason::PrimaryMetricRegressed)
}

fn risk_regression(
    metrics: &[MetricUse],
    policy: &ScorePolicy,
    rules: RulesVersion,
) -> Option<RecommendationReason> {
    let allowed = policy.thresholds.risk_regression.get();
    let guarded = |used: &&MetricUse| {
        policy.metrics.iter().any(|metric| metric.guard && metric.column == used.column)
    };
    let regressed: Vec<String> = metrics
        .iter()
        .filter(guarded)
        .filter(|used| used.baseline_mean.abs() > NEAR_ZERO_MEAN)
        .filter(|used| used.counted_improvement(rules) < -(allowed * used.baseline_mean.abs()))
        .map(|used| used.column.clone())
        .collect();
    (!regressed.is_empty()).then_some(RecommendationReason::RiskRegressed(regressed))
}

fn grade_score(score: Finite, thresholds: &ScoreThresholds) -> Grade {
    if score >= thresholds.strong {
        Grade::Strong
    } else if score >= thresholds.promising {
        Grade::Promising
    } else if score >= thresholds.mixed {
        Grade::Mixed
    } else {
        Grade::Weak
    }
}

/// Returns the invariant columns that differ from the root's in a configuration that both have.
fn changed_invariants(root: &Sweep, candidate: &Sweep, policy: &ScorePolicy) -> Vec<String> {
    let changed = |at: usize| {
        let (expected, found) =
            (root.invariant_fingerprints(at), candidate.invariant_fingerprints(at));
        match_by_id(expected.iter().copied(), found.iter().copied())
            .any(|(expected, found)| expected != found)
    };
    let columns = policy.invariant_columns.iter().enumerate();
    columns.filter(|(at, _)| changed(*at)).map(|(_, column)| column.clone()).collect()
}

/// Returns the metrics without a number in an ok configuration in which the parent has one.
fn lost_numbers(parent: &Sweep, candidate: &Sweep, policy: &ScorePolicy) -> Vec<LostNumbers> {
    let metrics = policy.metrics.iter().enumerate();
    let rows = metrics.map(|(at, metric)| {
        let column = metric.column.clone();
        LostNumbers { rows: lost_number_rows(at, &column, parent, candidate), column }
    });
    rows.filter(|lost| lost.rows > 0).collect()
}

/// Counts the configurations in which a metric lost its number. Without the column, or with too
/// many missing numbers to keep, it returns the difference of the total counts.
fn lost_number_rows(metric: usize, column: &str, parent: &Sweep, candidate: &Sweep) -> u32 {
    let had = parent.number_count(column);
    match (
        parent.rows_without_number(metric, column),
        candidate.rows_without_number(metric, column),
    ) {
        _ if had == 0 => 0,
        (Some(before), Some(after)) => {
            let expected =
                |id| candidate.is_row_ok(id) == Some(true) && parent.is_row_ok(id).is_some();
            let lost = after
                .iter()
                .filter(|(_, id)| expected(*id) && before.binary_search(&(metric, *id)).is_err());
            u32::try_from(lost.count()).unwrap_or(u32::MAX)
        }
        _ => had.saturating_sub(candidate.number_count(column)),
    }
}
