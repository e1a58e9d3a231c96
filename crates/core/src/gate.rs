//! The gate: decides against the parent whether a candidate may go on, and records all figures.

use crate::approval::Approval;
use crate::evidence::{
    CandidateScore, Comparison, Grade, PairedDifference, ResultsForm, SweepCompleteness,
};
use crate::failure::EvalFailure;
use crate::num::Finite;
use crate::policy::FixedSettings;
use crate::rank;
use crate::rules_version::RulesVersion;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Verdict of the gate on one candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateVerdict {
    /// All checks, in order.
    pub checks: Vec<GateCheck>,
    /// Score that the candidate is ranked by; without one it is never promoted.
    pub rank_score: Option<Finite>,
}

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateCheck {
    /// Rule that is checked.
    pub rule: GateRule,
    /// True if the rule holds.
    pub passed: bool,
    /// Figures of the check, as text.
    pub figures: String,
}

/// Rules of the gate, in the order in which they are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateRule {
    /// Approved, committed, tests passed, sweep succeeded.
    Completed,
    /// The scored results are in `artifacts/`, with the recorded digest.
    Artifacts,
    /// No protected path was changed.
    Protected,
    /// All configurations are present and ok.
    Complete,
    /// The file has the form of a sweep, and no invariant column changed.
    WellFormed,
    /// The primary metric can be compared.
    PrimaryPresent,
    /// No metric lost a number that the parent has.
    NumbersKept,
    /// Worth exploring, or graded `mixed`.
    Promising,
    /// The primary metric did not get worse.
    PrimaryHeld,
    /// Some metric differs from the parent's.
    HasEffect,
    /// A rank score exists.
    Rankable,
}

impl GateRule {
    /// Returns the code that is reported when the rule does not hold.
    #[must_use]
    pub const fn failure_code(self) -> &'static str {
        match self {
            Self::Completed => "not_completed",
            Self::Artifacts => "artifacts_damaged",
            Self::Protected => "protected",
            Self::Complete => "incomplete",
            Self::WellFormed => "malformed",
            Self::PrimaryPresent => "primary_missing",
            Self::NumbersKept => "numbers_missing",
            Self::Promising => "not_promising",
            Self::PrimaryHeld => "primary_regressed",
            Self::HasEffect => "no_effect",
            Self::Rankable => "unrankable",
        }
    }
}

impl fmt::Display for GateRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Completed => "completed",
            Self::Artifacts => "artifacts",
            Self::Protected => "protected",
            Self::Complete => "complete",
            Self::WellFormed => "well_formed",
            Self::PrimaryPresent => "primary_present",
            Self::NumbersKept => "numbers_kept",
            Self::Promising => "promising",
            Self::PrimaryHeld => "primary_held",
            Self::HasEffect => "has_effect",
            Self::Rankable => "rankable",
        })
    }
}

impl GateVerdict {
    /// Returns true if the candidate may go on.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        self.first_failed_check().is_none()
    }

    /// Returns the first check that failed, which decided against the candidate.
    #[must_use]
    pub fn first_failed_check(&self) -> Option<&GateCheck> {
        self.checks.iter().find(|check| !check.passed)
    }

    /// Returns the first check that failed, or the reason for passing, in one line.
    #[must_use]
    pub fn reason(&self) -> String {
        if let Some(check) = self.first_failed_check() {
            return format!("{}: {}", check.rule.failure_code(), check.figures);
        }
        let promising = self.checks.iter().find(|check| check.rule == GateRule::Promising);
        format!("passed: {}", promising.map_or("", |check| &check.figures))
    }
}

/// Settings of a run that the gate depends on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateLimits {
    /// Minimum share of ok rows; `None` with a limit N, where all N configurations must be ok.
    min_ok_rate: Option<Finite>,
    /// Maximum loss of the primary metric against the parent.
    primary_tolerance: Finite,
}

impl GateLimits {
    /// Extracts the gate's limits from the settings of a run.
    #[must_use]
    pub fn from_settings(settings: &FixedSettings) -> Self {
        let is_limited = settings.sweep_config_limit.is_some();
        Self {
            min_ok_rate: (!is_limited).then_some(settings.gate.min_ok_rate),
            primary_tolerance: settings.gate.primary_tolerance,
        }
    }

    /// Judges a scored candidate by all rules.
    #[must_use]
    pub fn judge(
        self,
        scored: &CandidateScore,
        files_changed: u32,
        approval: Approval,
    ) -> GateVerdict {
        let completed = match approval {
            Approval::Unreviewed => "committed, swept, scored",
            Approval::Approved => "approved, committed, swept, scored",
            Approval::LetThrough => "rejected and let through, committed, swept, scored",
        };
        let verified = "sha256 of candidate, parent and root verified when scored";
        let touched = format!("files changed: {files_changed}, none of them protected");
        let mut checks = vec![
            new_check(GateRule::Completed, true, completed),
            new_check(GateRule::Artifacts, true, verified),
            new_check(GateRule::Protected, true, touched),
        ];
        checks.extend(self.check_results(scored));
        GateVerdict { checks, rank_score: rank::rank_score(&scored.vs_root) }
    }

    /// Returns true if this number of rows, with these counts, is a complete sweep.
    #[must_use]
    pub fn are_rows_complete(self, rows: u32, found: SweepCompleteness) -> bool {
        let SweepCompleteness { expected_count, ok_count, .. } = found;
        match self.min_ok_rate {
            None => rows == expected_count && ok_count == expected_count,
            Some(least) => {
                let rate = f64::from(ok_count) / f64::from(rows.max(1));
                rows >= expected_count && rate >= least.get()
            }
        }
    }

    /// Runs the checks that need only the sweeps themselves: from [`GateRule::Complete`] on.
    fn check_results(self, scored: &CandidateScore) -> [GateCheck; 8] {
        [
            check_complete(scored, self),
            check_well_formed(scored),
            check_primary_present(scored),
            check_numbers_kept(scored),
            check_promising(scored),
            check_primary_held(scored, self.primary_tolerance),
            check_effect(scored),
            check_rankable(rank::rank_score(&scored.vs_root)),
        ]
    }
}

/// Judges a scored candidate by the settings of its run.
#[must_use]
pub fn judge_candidate(
    scored: &CandidateScore,
    files_changed: u32,
    approval: Approval,
    settings: &FixedSettings,
) -> GateVerdict {
    GateLimits::from_settings(settings).judge(scored, files_changed, approval)
}

/// Runs the checks that need only the sweeps themselves: from [`GateRule::Complete`] on.
#[must_use]
pub fn check_results(scored: &CandidateScore, settings: &FixedSettings) -> Vec<GateCheck> {
    GateLimits::from_settings(settings).check_results(scored).into()
}

/// Returns the verdict on an eval that failed before it was scored.
#[must_use]
pub fn verdict_on_failure(failure: &EvalFailure) -> GateVerdict {
    let figures = format!("failed at {}: {}", failure.stage, failure.kind);
    GateVerdict { checks: vec![new_check(GateRule::Completed, false, figures)], rank_score: None }
}

fn new_check(rule: GateRule, passed: bool, figures: impl Into<String>) -> GateCheck {
    GateCheck { rule, passed, figures: figures.into() }
}

fn check_complete(scored: &CandidateScore, rules: GateLimits) -> GateCheck {
    let SweepCompleteness { expected_count, ok_count, error_count } = scored.completeness;
    let rows = scored.vs_parent.candidate_rows_used;
    let passed = rules.are_rows_complete(rows, scored.completeness);
    let repeated = &scored.form.repeated_ids;
    let figures = if repeated.is_empty() {
        format!("{ok_count} of {expected_count} ok, {rows} rows used, {error_count} not ok")
    } else {
        let ids = repeated.join(", ");
        let ok = format!("{ok_count} of {expected_count} ok, {error_count} not ok");
        format!("{ok}, {rows} rows used, ids twice: {ids}{}", more_ids_suffix(&scored.form))
    };
    new_check(GateRule::Complete, passed, figures)
}

/// Returns the suffix of a list of repeated ids that is not complete.
fn more_ids_suffix(form: &ResultsForm) -> &'static str {
    let named = u32::try_from(form.repeated_ids.len()).unwrap_or(u32::MAX);
    if form.duplicate_ids > named { ", …" } else { "" }
}

fn check_well_formed(scored: &CandidateScore) -> GateCheck {
    let form = &scored.form;
    let ResultsForm { ragged_rows, duplicate_ids, unknown_ids, changed_invariants, .. } = form;
    let counts = [ragged_rows, duplicate_ids, unknown_ids];
    let columns = [changed_invariants, &form.missing_columns];
    let passed =
        counts.iter().all(|count| **count == 0) && columns.iter().all(|all| all.is_empty());
    let mut figures = String::new();
    if !form.missing_columns.is_empty() {
        let missing = format_columns(&form.missing_columns, scored.rules_version);
        figures.push_str(&format!("lacks columns of the root: {missing}; "));
    }
    figures.push_str(&format!("ragged rows: {ragged_rows}"));
    if !form.ragged_lines.is_empty() {
        let lines: Vec<String> = form.ragged_lines.iter().map(ToString::to_string).collect();
        let more = if lines.len() < to_usize(*ragged_rows) { ", …" } else { "" };
        let plural = if lines.len() > 1 { "s" } else { "" };
        figures.push_str(&format!(" (line{plural} {}{more})", lines.join(", ")));
    }
    figures.push_str(&format!(", repeated ids: {duplicate_ids}"));
    if !form.repeated_ids.is_empty() {
        figures.push_str(&format!(" ({}{})", form.repeated_ids.join(", "), more_ids_suffix(form)));
    }
    if *unknown_ids > 0 {
        figures.push_str(&format!(", ids that the root does not have: {unknown_ids}"));
    }
    if !changed_invariants.is_empty() {
        figures.push_str(&format!(
            ", changed: {}",
            format_columns(changed_invariants, scored.rules_version)
        ));
    }
    new_check(GateRule::WellFormed, passed, figures)
}

fn to_usize(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Maximum number of columns that a check names.
const MAX_NAMED_COLUMNS: usize = 5;

/// Formats column names, abbreviated if there are many. Verdicts by the first rules name all.
fn format_columns(columns: &[String], rules: RulesVersion) -> String {
    let more = columns.len().saturating_sub(MAX_NAMED_COLUMNS);
    match columns.get(..MAX_NAMED_COLUMNS) {
        Some(first) if more > 0 && rules > RulesVersion::First => {
            format!("{} and {more} more", first.join(", "))
        }
        _ => columns.join(", "),
    }
}

fn check_primary_present(scored: &CandidateScore) -> GateCheck {
    let delta = scored.vs_parent.primary_delta;
    new_check(GateRule::PrimaryPresent, delta.is_some(), format_gain(scored))
}

/// Formats the gain of the primary metric. Verdicts by the first rules call it its delta.
fn format_gain(scored: &CandidateScore) -> String {
    let name = match scored.rules_version {
        RulesVersion::First => "delta",
        RulesVersion::Second => "gain",
    };
    scored.vs_parent.primary_delta.map_or_else(
        || format!("no primary {name}"),
        |gain| format!("primary {name} {}", gain.to_short_string()),
    )
}

fn check_numbers_kept(scored: &CandidateScore) -> GateCheck {
    let lost = &scored.form.lost_numbers;
    let each = lost.iter().map(|lost| format!("{} (rows: {})", lost.column, lost.rows));
    let figures = if lost.is_empty() {
        "every number that its parent has".to_owned()
    } else {
        format!("no number where its parent has one: {}", each.collect::<Vec<_>>().join(", "))
    };
    new_check(GateRule::NumbersKept, lost.is_empty(), figures)
}

fn check_promising(scored: &CandidateScore) -> GateCheck {
    let recommendation = &scored.vs_parent.recommendation;
    let passed = recommendation.should_explore || recommendation.grade == Grade::Mixed;
    let reasons: Vec<_> = recommendation.reasons.iter().map(ToString::to_string).collect();
    let score = recommendation.score.to_short_string();
    let figures = format!("{} {score} ({})", recommendation.grade, reasons.join("; "));
    new_check(GateRule::Promising, passed, figures)
}

fn check_primary_held(scored: &CandidateScore, tolerance: Finite) -> GateCheck {
    let delta = scored.vs_parent.primary_delta;
    let like_for_like = shared_configurations(&scored.vs_parent);
    let holds = |delta: Finite| delta.get() >= -tolerance.get();
    let passed = delta.is_some_and(holds)
        && like_for_like.is_none_or(|paired| holds(paired.mean_difference))
        && !scored.vs_parent.recommendation.has_primary_regression();
    let mut figures = format!("{}, tolerance {}", format_gain(scored), tolerance.to_short_string());
    if let Some(PairedDifference { pairs, mean_difference, .. }) = like_for_like {
        let mean = mean_difference.to_short_string();
        figures.push_str(&format!(", {mean} over the {pairs} configurations that both have"));
    }
    new_check(GateRule::PrimaryHeld, passed, figures)
}

/// Returns the comparison over shared configurations, if these are not all: a mean over different
/// ones may rise while every shared one falls.
fn shared_configurations(comparison: &Comparison) -> Option<&PairedDifference> {
    let Comparison { baseline_rows_used, candidate_rows_used, paired, .. } = comparison;
    let rows = baseline_rows_used.max(candidate_rows_used);
    paired.as_ref().filter(|paired| paired.pairs < *rows)
}

fn check_rankable(rank_score: Option<Finite>) -> GateCheck {
    let missing = || "no score against the root".to_owned();
    let figures =
        rank_score.map_or_else(missing, |score| format!("rank score {}", score.to_short_string()));
    new_check(GateRule::Rankable, rank_score.is_some(), figures)
}

fn check_effect(scored: &CandidateScore) -> GateCheck {
    let figures = if scored.has_effect {
        "differs from its parent"
    } else {
        "every metric of every row equals its parent's"
    };
    new_check(GateRule::HasEffect, scored.has_effect, figures)
}
