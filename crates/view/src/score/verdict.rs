//! Describes the verdict of the metrics and of the gate on a comparison, in words.

use super::{ColourMode, ScoreReport, ScoreTone, SweepSide};
use crate::figure::{NOT_AVAILABLE, format_change, format_figure};
use crate::primary::primary_change;
use crate::safe_text::{field_lines, format_field, one_line};
use crate::words::format_count;
use treebeam_core::evidence::{Grade, PairedDifference, Recommendation, RecommendationReason};
use treebeam_core::gate::{GateCheck, GateRule, GateVerdict};
use treebeam_core::num::Finite;
use treebeam_core::policy::ScoreThresholds;

/// Caveat on the paired comparison.
const PAIRED_CAVEAT: &str = "it speaks of this data set alone: configurations of one sweep can be near copies of each other";

/// Note on why the gate accepts what the verdict does not recommend.
const MIXED_GRADE_NOTE: &str = "mixed is enough for the gate while the primary holds: a beam may need a step that is no gain yet";

pub(super) fn recommendation_lines(scoring: &ScoreReport<'_>, colour: ColourMode) -> Vec<String> {
    let comparison = &scoring.judgement.vs_parent.comparison;
    let recommendation = &comparison.recommendation;
    let Recommendation { should_explore, grade, score, .. } = recommendation;
    let tone = match grade {
        Grade::Strong | Grade::Promising => ScoreTone::Good,
        Grade::Mixed => ScoreTone::Even,
        Grade::Weak => ScoreTone::Bad,
    };
    let explore = if *should_explore { "worth exploring" } else { "not worth exploring" };
    let grade = colour.paint(tone, &grade.to_string());
    let mut lines = vec![
        format_field(
            "verdict",
            &format!("{grade}, score {}: {explore}", format_change(Some(*score))),
        ),
        format_field("", &format_signals(recommendation)),
    ];
    let thresholds = &scoring.policy.thresholds;
    let reasons = recommendation.reasons.iter();
    lines.extend(
        reasons
            .map(|reason| format_field("", &describe_reason(reason, recommendation, thresholds))),
    );
    lines.extend(missing_primary(scoring).map(|words| format_field("", &words)));
    let primary = one_line(&scoring.policy.primary);
    let gain = format_change(comparison.primary_delta);
    let own = primary_change(scoring.policy, comparison);
    let direction = scoring.policy.primary_direction();
    let primary = format!("{primary} ({direction} is better)");
    lines.push(format_field("primary", &format!("{primary} {own}; gain {gain}")));
    lines
}

/// Names the sides that have rows, but no number of the primary.
fn missing_primary(scoring: &ScoreReport<'_>) -> Option<String> {
    let sides = [&scoring.baseline, &scoring.candidate].into_iter();
    let lacks = |side: &&SweepSide<'_>| side.rows_used > 0 && side.primary.is_none();
    let names: Vec<String> = sides.filter(lacks).map(|side| one_line(side.name)).collect();
    if names.is_empty() {
        return None;
    }
    let primary = one_line(&scoring.policy.primary);
    Some(format!("the primary `{primary}` has no number in {}", names.join(" and in ")))
}

fn format_signals(recommendation: &Recommendation) -> String {
    let Recommendation { positive_signals, negative_signals, metrics_used, .. } = recommendation;
    let used = format_count(*metrics_used, "metric");
    format!("{used} compared: {positive_signals} better, {negative_signals} worse")
}

fn describe_reason(
    reason: &RecommendationReason,
    recommendation: &Recommendation,
    thresholds: &ScoreThresholds,
) -> String {
    let percent = |part: Finite| format_figure(Finite::new(part.get() * 100.0));
    let words = match reason {
        RecommendationReason::PrimaryMetricRegressed => {
            let most = percent(thresholds.primary_regression);
            format!("the primary is worse by more than {most} % of the baseline")
        }
        RecommendationReason::RiskRegressed(columns) => {
            let most = percent(thresholds.risk_regression);
            format!("guarded and worse by more than {most} %: {}", columns.join(", "))
        }
        RecommendationReason::NetImprovement if recommendation.score >= thresholds.promising => {
            format!("the score is at least {}", format_figure(Some(thresholds.promising)))
        }
        RecommendationReason::NetImprovement => {
            "two or more metrics more got better than worse".to_owned()
        }
        RecommendationReason::InsufficientSignal if recommendation.reasons.len() > 1 => {
            "whatever else got better does not count then".to_owned()
        }
        RecommendationReason::InsufficientSignal => {
            let enough = format_figure(Some(thresholds.promising));
            format!("the score is below {enough}, and too few metrics got better")
        }
    };
    format!("{}: {}", reason.name(), one_line(&words))
}

/// Formats the paired comparison of the primary as lines.
pub(crate) fn paired_lines(paired: Option<PairedDifference>) -> Vec<String> {
    field_lines("paired", paired_sentences(paired))
}

/// Describes the paired comparison of the primary in sentences.
pub(crate) fn paired_sentences(paired: Option<PairedDifference>) -> Vec<String> {
    let Some(paired) = paired else {
        let why = "fewer than 2 configurations have a primary on both sides";
        return vec![format!("{NOT_AVAILABLE}: {why}")];
    };
    let PairedDifference { pairs, mean_difference, wins, losses, low, high } = paired;
    let mean = format_change(Some(mean_difference));
    let (low, high) = (format_change(Some(low)), format_change(Some(high)));
    let drawn = pairs.saturating_sub(wins).saturating_sub(losses);
    vec![
        format!("the gain in the primary, in {}:", format_count(pairs, "pair")),
        format!("mean gain {mean}, 95 % interval {low} to {high}"),
        format!("{wins} won, {losses} lost, {drawn} drawn"),
    ]
}

/// Formats the paired comparison as lines, followed by its caveat.
pub(super) fn paired_with_caveat(scoring: &ScoreReport<'_>) -> Vec<String> {
    let found = scoring.judgement.vs_parent.comparison.paired;
    let mut lines = paired_lines(found);
    lines.extend(found.map(|_| format_field("", PAIRED_CAVEAT)));
    lines
}

pub(super) fn gate_lines(scoring: &ScoreReport<'_>, colour: ColourMode) -> Vec<String> {
    let (word, tone, reason) = if let Some(check) = scoring.verdict.first_failed_check() {
        (
            "would not pass",
            ScoreTone::Bad,
            format!("{}: {}", check.rule.failure_code(), check.figures),
        )
    } else {
        let mut checks = scoring.verdict.checks.iter();
        let promising = checks.find(|check| check.rule == GateRule::Promising);
        let reason = promising.map_or_else(String::new, |check| check.figures.clone());
        ("would pass", ScoreTone::Good, reason)
    };
    let word = colour.paint(tone, word);
    let mut lines = vec![format_field("gate", &format!("{word}: {}", one_line(&reason)))];
    let explore = scoring.judgement.vs_parent.comparison.recommendation.should_explore;
    if scoring.verdict.has_passed() && !explore {
        lines.push(format_field("", MIXED_GRADE_NOTE));
    }
    lines.extend(check_lines(scoring.verdict, colour));
    lines
}

/// Formats every check of the gate with its figures.
pub(crate) fn check_lines(
    verdict: &GateVerdict,
    colour: ColourMode,
) -> impl Iterator<Item = String> {
    verdict.checks.iter().map(move |check| format_field("", &check_line(check, colour)))
}

fn check_line(check: &GateCheck, colour: ColourMode) -> String {
    let (word, tone) =
        if check.passed { ("ok  ", ScoreTone::Good) } else { ("FAIL", ScoreTone::Bad) };
    let rule = check.rule.to_string();
    format!("{} {rule:<16}{}", colour.paint(tone, word), one_line(&check.figures))
}
