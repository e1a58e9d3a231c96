//! What the metrics and the gate make of a comparison, in words.

use super::{Colour, Scoring, Side, Tone};
use crate::figure::{NONE, change, figure};
use crate::line::{field, list, one_line};
use crate::primary::primary_change;
use crate::words::count;
use treebeam_core::evidence::{Grade, Paired, Reason, Recommendation};
use treebeam_core::gate::{Check, Rule, Verdict};
use treebeam_core::num::Finite;
use treebeam_core::policy::Thresholds;

/// What a reader of the paired comparison has to know.
const CAVEAT: &str = "it speaks of this data set alone: configurations of one sweep can be near copies of each other";

/// Why the gate is open to what the verdict does not recommend.
const MIXED: &str = "mixed is enough for the gate while the primary holds: a beam may need a step that is no gain yet";

pub(super) fn recommendation(scoring: &Scoring<'_>, colour: Colour) -> Vec<String> {
    let comparison = &scoring.judgement.vs_parent.comparison;
    let recommendation = &comparison.recommendation;
    let Recommendation { should_explore, grade, score, .. } = recommendation;
    let tone = match grade {
        Grade::Strong | Grade::Promising => Tone::Good,
        Grade::Mixed => Tone::Even,
        Grade::Weak => Tone::Bad,
    };
    let explore = if *should_explore { "worth exploring" } else { "not worth exploring" };
    let grade = colour.paint(tone, &grade.to_string());
    let mut lines = vec![
        field("verdict", &format!("{grade}, score {}: {explore}", change(Some(*score)))),
        field("", &signals(recommendation)),
    ];
    let thresholds = &scoring.policy.thresholds;
    let reasons = recommendation.reasons.iter();
    lines.extend(reasons.map(|reason| field("", &in_words(reason, recommendation, thresholds))));
    lines.extend(no_primary(scoring).map(|words| field("", &words)));
    let primary = one_line(&scoring.policy.primary);
    let gain = change(comparison.primary_delta);
    let own = primary_change(scoring.policy, comparison);
    let direction = scoring.policy.primary_direction();
    let primary = format!("{primary} ({direction} is better)");
    lines.push(field("primary", &format!("{primary} {own}; gain {gain}")));
    lines
}

/// Which side has rows and no number of the primary in them.
fn no_primary(scoring: &Scoring<'_>) -> Option<String> {
    let sides = [&scoring.baseline, &scoring.candidate].into_iter();
    let lacks = |side: &&Side<'_>| side.rows_used > 0 && side.primary.is_none();
    let names: Vec<String> = sides.filter(lacks).map(|side| one_line(side.name)).collect();
    if names.is_empty() {
        return None;
    }
    let primary = one_line(&scoring.policy.primary);
    Some(format!("the primary `{primary}` has no number in {}", names.join(" and in ")))
}

fn signals(recommendation: &Recommendation) -> String {
    let Recommendation { positive_signals, negative_signals, metrics_used, .. } = recommendation;
    let used = count(*metrics_used, "metric");
    format!("{used} compared: {positive_signals} better, {negative_signals} worse")
}

fn in_words(reason: &Reason, recommendation: &Recommendation, thresholds: &Thresholds) -> String {
    let percent = |part: Finite| figure(Finite::new(part.get() * 100.0));
    let words = match reason {
        Reason::PrimaryMetricRegressed => {
            let most = percent(thresholds.primary_regression);
            format!("the primary is worse by more than {most} % of the baseline")
        }
        Reason::RiskRegressed(columns) => {
            let most = percent(thresholds.risk_regression);
            format!("guarded and worse by more than {most} %: {}", columns.join(", "))
        }
        Reason::NetImprovement if recommendation.score >= thresholds.promising => {
            format!("the score is at least {}", figure(Some(thresholds.promising)))
        }
        Reason::NetImprovement => "two or more metrics more got better than worse".to_owned(),
        Reason::InsufficientSignal if recommendation.reasons.len() > 1 => {
            "whatever else got better does not count then".to_owned()
        }
        Reason::InsufficientSignal => {
            let enough = figure(Some(thresholds.promising));
            format!("the score is below {enough}, and too few metrics got better")
        }
    };
    format!("{}: {}", reason.name(), one_line(&words))
}

/// The primary compared configuration by configuration.
pub(crate) fn paired(paired: Option<Paired>) -> Vec<String> {
    list("paired", paired_words(paired))
}

/// The same as sentences.
pub(crate) fn paired_words(paired: Option<Paired>) -> Vec<String> {
    let Some(paired) = paired else {
        let why = "fewer than 2 configurations have a primary on both sides";
        return vec![format!("{NONE}: {why}")];
    };
    let Paired { pairs, mean_difference, wins, losses, low, high } = paired;
    let mean = change(Some(mean_difference));
    let (low, high) = (change(Some(low)), change(Some(high)));
    let drawn = pairs.saturating_sub(wins).saturating_sub(losses);
    vec![
        format!("the gain in the primary, in {}:", count(pairs, "pair")),
        format!("mean gain {mean}, 95 % interval {low} to {high}"),
        format!("{wins} won, {losses} lost, {drawn} drawn"),
    ]
}

/// The same, with what one should know about it.
pub(super) fn paired_with_caveat(scoring: &Scoring<'_>) -> Vec<String> {
    let found = scoring.judgement.vs_parent.comparison.paired;
    let mut lines = paired(found);
    lines.extend(found.map(|_| field("", CAVEAT)));
    lines
}

pub(super) fn gate(scoring: &Scoring<'_>, colour: Colour) -> Vec<String> {
    let (word, tone, reason) = if let Some(check) = scoring.verdict.first_failed() {
        ("would not pass", Tone::Bad, format!("{}: {}", check.rule.failure(), check.figures))
    } else {
        let mut checks = scoring.verdict.checks.iter();
        let promising = checks.find(|check| check.rule == Rule::Promising);
        let reason = promising.map_or_else(String::new, |check| check.figures.clone());
        ("would pass", Tone::Good, reason)
    };
    let word = colour.paint(tone, word);
    let mut lines = vec![field("gate", &format!("{word}: {}", one_line(&reason)))];
    let explore = scoring.judgement.vs_parent.comparison.recommendation.should_explore;
    if scoring.verdict.passed() && !explore {
        lines.push(field("", MIXED));
    }
    lines.extend(checks(scoring.verdict, colour));
    lines
}

/// Every check of the gate with its figures.
pub(crate) fn checks(verdict: &Verdict, colour: Colour) -> impl Iterator<Item = String> {
    verdict.checks.iter().map(move |check| field("", &one_check(check, colour)))
}

fn one_check(check: &Check, colour: Colour) -> String {
    let (word, tone) = if check.passed { ("ok  ", Tone::Good) } else { ("FAIL", Tone::Bad) };
    let rule = check.rule.to_string();
    format!("{} {rule:<16}{}", colour.paint(tone, word), one_line(&check.figures))
}
