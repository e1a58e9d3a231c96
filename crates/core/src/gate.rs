//! May this candidate go on? Decided against its parent; every check is recorded with its figures.

mod word;

pub use word::Word;

use crate::event::{Approval, Failure};
use crate::evidence::{Comparison, Completeness, Form, Grade, Paired, Scored};
use crate::num::Finite;
use crate::policy::Meaning;
use crate::rank;
use crate::rules_version::RulesVersion;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The gate's word on one candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// All checks, in order.
    pub checks: Vec<Check>,
    /// What the candidate is ranked by; none: it is never promoted.
    pub rank_score: Option<Finite>,
}

/// One thing that a candidate must fulfil.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What is checked.
    pub rule: Rule,
    /// Whether it holds.
    pub passed: bool,
    /// The figures, in words.
    pub figures: String,
}

/// What is checked, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Approved, committed, tests passed, sweep succeeded.
    Completed,
    /// What was scored lies in `artifacts/`, with the recorded digest.
    Artifacts,
    /// Nothing protected was touched.
    Protected,
    /// All configurations are there and ok.
    Complete,
    /// The file is what a sweep writes, and what may not change did not.
    WellFormed,
    /// The primary metric can be compared.
    PrimaryPresent,
    /// No metric lost a number that the parent has.
    NumbersKept,
    /// Worth exploring, or mixed.
    Promising,
    /// The primary metric did not get worse.
    PrimaryHeld,
    /// Something changed at all.
    HasEffect,
    /// It can be ranked.
    Rankable,
}

impl Rule {
    /// What is said when the rule does not hold.
    #[must_use]
    pub const fn failure(self) -> &'static str {
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

impl fmt::Display for Rule {
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

impl Verdict {
    /// Whether the candidate may go on.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.first_failed().is_none()
    }

    /// The check that decided against it.
    #[must_use]
    pub fn first_failed(&self) -> Option<&Check> {
        self.checks.iter().find(|check| !check.passed)
    }

    /// The first check that failed, or why it passed, in one line.
    #[must_use]
    pub fn reason(&self) -> String {
        if let Some(check) = self.first_failed() {
            return format!("{}: {}", check.rule.failure(), check.figures);
        }
        let promising = self.checks.iter().find(|check| check.rule == Rule::Promising);
        format!("passed: {}", promising.map_or("", |check| &check.figures))
    }
}

/// What of a run's meaning the gate goes by.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    /// The smallest part of the rows that must be ok; none where each of N configurations must be.
    min_ok_rate: Option<Finite>,
    /// How far the primary may fall below the parent's.
    primary_tolerance: Finite,
}

impl Rules {
    /// Those of a run.
    #[must_use]
    pub fn of(meaning: &Meaning) -> Self {
        let is_limited = meaning.sweep_config_limit.is_some();
        Self {
            min_ok_rate: (!is_limited).then_some(meaning.gate.min_ok_rate),
            primary_tolerance: meaning.gate.primary_tolerance,
        }
    }

    /// Judges a scored candidate.
    #[must_use]
    pub fn judge(self, scored: &Scored, files_changed: u32, approval: Approval) -> Verdict {
        let completed = match approval {
            Approval::Unreviewed => "committed, swept, scored",
            Approval::Approved => "approved, committed, swept, scored",
            Approval::LetThrough => "rejected and let through, committed, swept, scored",
        };
        let verified = "sha256 of candidate, parent and root verified when scored";
        let touched = format!("files changed: {files_changed}, none of them protected");
        let mut checks = vec![
            check(Rule::Completed, true, completed),
            check(Rule::Artifacts, true, verified),
            check(Rule::Protected, true, touched),
        ];
        checks.extend(self.results(scored));
        Verdict { checks, rank_score: rank::score(&scored.vs_root) }
    }

    /// Whether so many rows, of which these are ok, are a whole sweep.
    #[must_use]
    pub fn are_complete(self, rows: u32, found: Completeness) -> bool {
        let Completeness { expected_count, ok_count, .. } = found;
        match self.min_ok_rate {
            None => rows == expected_count && ok_count == expected_count,
            Some(least) => {
                let rate = f64::from(ok_count) / f64::from(rows.max(1));
                rows >= expected_count && rate >= least.get()
            }
        }
    }

    /// The checks that need nothing but the sweeps themselves: from [`Rule::Complete`] on.
    fn results(self, scored: &Scored) -> [Check; 8] {
        [
            complete(scored, self),
            well_formed(scored),
            primary_present(scored),
            numbers_kept(scored),
            promising(scored),
            primary_held(scored, self.primary_tolerance),
            has_effect(scored),
            rankable(rank::score(&scored.vs_root)),
        ]
    }
}

/// Judges a scored candidate.
#[must_use]
pub fn gate(scored: &Scored, files_changed: u32, approval: Approval, meaning: &Meaning) -> Verdict {
    Rules::of(meaning).judge(scored, files_changed, approval)
}

/// The checks that need nothing but the sweeps themselves: from [`Rule::Complete`] on.
#[must_use]
pub fn results(scored: &Scored, meaning: &Meaning) -> Vec<Check> {
    Rules::of(meaning).results(scored).into()
}

/// What the gate says about an eval that never got a score.
#[must_use]
pub fn failed(failure: &Failure) -> Verdict {
    let figures = format!("failed at {}: {}", failure.stage, failure.kind);
    Verdict { checks: vec![check(Rule::Completed, false, figures)], rank_score: None }
}

fn check(rule: Rule, passed: bool, figures: impl Into<String>) -> Check {
    Check { rule, passed, figures: figures.into() }
}

fn complete(scored: &Scored, rules: Rules) -> Check {
    let Completeness { expected_count, ok_count, error_count } = scored.completeness;
    let rows = scored.vs_parent.candidate_rows_used;
    let passed = rules.are_complete(rows, scored.completeness);
    let repeated = &scored.form.repeated_ids;
    let figures = if repeated.is_empty() {
        format!("{ok_count} of {expected_count} ok, {rows} rows used, {error_count} not ok")
    } else {
        let ids = repeated.join(", ");
        let ok = format!("{ok_count} of {expected_count} ok, {error_count} not ok");
        format!("{ok}, {rows} rows used, ids twice: {ids}{}", and_more(&scored.form))
    };
    check(Rule::Complete, passed, figures)
}

/// What follows the repeated ids where not all of them are named.
fn and_more(form: &Form) -> &'static str {
    let named = u32::try_from(form.repeated_ids.len()).unwrap_or(u32::MAX);
    if form.duplicate_ids > named { ", …" } else { "" }
}

fn well_formed(scored: &Scored) -> Check {
    let form = &scored.form;
    let Form { ragged_rows, duplicate_ids, unknown_ids, changed_invariants, .. } = form;
    let counts = [ragged_rows, duplicate_ids, unknown_ids];
    let columns = [changed_invariants, &form.missing_columns];
    let passed =
        counts.iter().all(|count| **count == 0) && columns.iter().all(|all| all.is_empty());
    let mut figures = String::new();
    if !form.missing_columns.is_empty() {
        let missing = named(&form.missing_columns, scored.rules_version);
        figures.push_str(&format!("lacks columns of the root: {missing}; "));
    }
    figures.push_str(&format!("ragged rows: {ragged_rows}"));
    if !form.ragged_lines.is_empty() {
        let lines: Vec<String> = form.ragged_lines.iter().map(ToString::to_string).collect();
        let more = if lines.len() < usize_of(*ragged_rows) { ", …" } else { "" };
        let plural = if lines.len() > 1 { "s" } else { "" };
        figures.push_str(&format!(" (line{plural} {}{more})", lines.join(", ")));
    }
    figures.push_str(&format!(", repeated ids: {duplicate_ids}"));
    if !form.repeated_ids.is_empty() {
        figures.push_str(&format!(" ({}{})", form.repeated_ids.join(", "), and_more(form)));
    }
    if *unknown_ids > 0 {
        figures.push_str(&format!(", ids that the root does not have: {unknown_ids}"));
    }
    if !changed_invariants.is_empty() {
        figures
            .push_str(&format!(", changed: {}", named(changed_invariants, scored.rules_version)));
    }
    check(Rule::WellFormed, passed, figures)
}

fn usize_of(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// So many columns are named where something is wrong with them.
const MAX_NAMED_COLUMNS: usize = 5;

/// The names of some columns, not all of them where there are many. Verdicts by the first rules name all.
fn named(columns: &[String], rules: RulesVersion) -> String {
    let more = columns.len().saturating_sub(MAX_NAMED_COLUMNS);
    match columns.get(..MAX_NAMED_COLUMNS) {
        Some(first) if more > 0 && rules > RulesVersion::First => {
            format!("{} and {more} more", first.join(", "))
        }
        _ => columns.join(", "),
    }
}

fn primary_present(scored: &Scored) -> Check {
    let delta = scored.vs_parent.primary_delta;
    check(Rule::PrimaryPresent, delta.is_some(), gain_in_words(scored))
}

/// The primary's gain. Verdicts by the first rules call it its delta.
fn gain_in_words(scored: &Scored) -> String {
    let name = match scored.rules_version {
        RulesVersion::First => "delta",
        RulesVersion::Second => "gain",
    };
    scored.vs_parent.primary_delta.map_or_else(
        || format!("no primary {name}"),
        |gain| format!("primary {name} {}", gain.short()),
    )
}

fn numbers_kept(scored: &Scored) -> Check {
    let lost = &scored.form.lost_numbers;
    let each = lost.iter().map(|lost| format!("{} (rows: {})", lost.column, lost.rows));
    let figures = if lost.is_empty() {
        "every number that its parent has".to_owned()
    } else {
        format!("no number where its parent has one: {}", each.collect::<Vec<_>>().join(", "))
    };
    check(Rule::NumbersKept, lost.is_empty(), figures)
}

fn promising(scored: &Scored) -> Check {
    let recommendation = &scored.vs_parent.recommendation;
    let passed = recommendation.should_explore || recommendation.grade == Grade::Mixed;
    let reasons: Vec<_> = recommendation.reasons.iter().map(ToString::to_string).collect();
    let score = recommendation.score.short();
    let figures = format!("{} {score} ({})", recommendation.grade, reasons.join("; "));
    check(Rule::Promising, passed, figures)
}

fn primary_held(scored: &Scored, tolerance: Finite) -> Check {
    let delta = scored.vs_parent.primary_delta;
    let like_for_like = like_for_like(&scored.vs_parent);
    let holds = |delta: Finite| delta.get() >= -tolerance.get();
    let passed = delta.is_some_and(holds)
        && like_for_like.is_none_or(|paired| holds(paired.mean_difference))
        && !scored.vs_parent.recommendation.primary_regressed();
    let mut figures = format!("{}, tolerance {}", gain_in_words(scored), tolerance.short());
    if let Some(Paired { pairs, mean_difference, .. }) = like_for_like {
        let mean = mean_difference.short();
        figures.push_str(&format!(", {mean} over the {pairs} configurations that both have"));
    }
    check(Rule::PrimaryHeld, passed, figures)
}

/// The configurations that both sides have, where these are not all: a mean over others may rise while each of them falls.
fn like_for_like(comparison: &Comparison) -> Option<&Paired> {
    let Comparison { baseline_rows_used, candidate_rows_used, paired, .. } = comparison;
    let rows = baseline_rows_used.max(candidate_rows_used);
    paired.as_ref().filter(|paired| paired.pairs < *rows)
}

fn rankable(rank_score: Option<Finite>) -> Check {
    let missing = || "no score against the root".to_owned();
    let figures = rank_score.map_or_else(missing, |score| format!("rank score {}", score.short()));
    check(Rule::Rankable, rank_score.is_some(), figures)
}

fn has_effect(scored: &Scored) -> Check {
    let figures = if scored.has_effect {
        "differs from its parent"
    } else {
        "every metric of every row equals its parent's"
    };
    check(Rule::HasEffect, scored.has_effect, figures)
}
