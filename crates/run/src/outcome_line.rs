//! The outcome of an idea on one line, for idea generators and reviewers of conversations.

use treebeam_core::evidence::Comparison;
use treebeam_core::facts::{Eval, Facts, NodeOrigin, ScoredCandidate, Stage};
use treebeam_core::gate::{self, GateVerdict};
use treebeam_core::id::NodeId;
use treebeam_core::num::Finite;
use treebeam_core::rules_version::RulesVersion;
use treebeam_score::versus;

/// Returns the outcome of an idea on one line, with the figures of the node that it was tried on
/// beside its own: the difference is the effect of the idea.
pub(crate) fn outcome_line(facts: &Facts, eval: &Eval) -> String {
    let (title, on) = (&eval.idea.title, eval.parent);
    if let Some((measured, verdict)) = scored_verdict(facts, eval) {
        let [score, delta] = root_figures(&measured.scored.vs_root);
        let [score_before, delta_before] = node_figures(facts, on);
        let grade = measured.scored.vs_root.recommendation.grade;
        let gain = gain_word(measured.scored.rules_version);
        let reason = verdict.reason();
        return format!(
            "{title}: on n{on}, {grade} against the root, score {score} (n{on}: {score_before}), \
             primary {gain} {delta} (n{on}: {delta_before}); {reason}"
        );
    }
    match &eval.stage {
        Stage::Failed { failure, .. } => {
            format!("{title}: on n{on}, {}", gate::verdict_on_failure(failure).reason())
        }
        Stage::Unfinished { .. } => format!("{title}: on n{on}, not tried to its end"),
        Stage::Queued
        | Stage::Implementing(_)
        | Stage::Implemented(_)
        | Stage::Sweeping(_)
        | Stage::Swept(..)
        | Stage::Scored(_)
        | Stage::Decided(..)
        | Stage::Superseded(..)
        | Stage::SetAside => format!("{title}: under way"),
    }
}

/// Returns the outcome of an idea in short: title, score, and the first word of the reason.
pub(crate) fn short_outcome_line(facts: &Facts, eval: &Eval) -> String {
    let (title, on) = (&eval.idea.title, eval.parent);
    let Some((measured, verdict)) = scored_verdict(facts, eval) else {
        let unfinished = matches!(eval.stage, Stage::Unfinished { .. });
        let what = if unfinished { "not tried to its end" } else { "failed" };
        return format!("{title}: on n{on}, {what}");
    };
    let ([score, _], [before, _]) =
        (root_figures(&measured.scored.vs_root), node_figures(facts, on));
    let reason = verdict.reason();
    let word = reason.split(':').next().unwrap_or_default();
    format!("{title}: on n{on}, score {score} (n{on}: {before}); {word}")
}

/// Returns the figures of an eval and the verdict of the gate on them.
fn scored_verdict(facts: &Facts, eval: &Eval) -> Option<(ScoredCandidate, GateVerdict)> {
    Some((eval.scored_candidate()?, versus::side_verdict(facts, eval)?))
}

/// Returns the word for the primary gain: older runs keep theirs, so that recorded answers fit.
const fn gain_word(rules: RulesVersion) -> &'static str {
    match rules {
        RulesVersion::First => "delta",
        RulesVersion::Second => "gain",
    }
}

/// Returns the score and the gain in the primary, as text.
fn root_figures(comparison: &Comparison) -> [String; 2] {
    let delta = comparison.primary_delta.map_or("n/a".to_owned(), Finite::to_short_string);
    [comparison.recommendation.score.to_short_string(), delta]
}

/// Returns the score and the primary gain of a node's eval; 0 for the root.
fn node_figures(facts: &Facts, node: NodeId) -> [String; 2] {
    let eval = facts.node(node).and_then(|node| match node.origin {
        NodeOrigin::Root => None,
        NodeOrigin::Promoted { from, .. } => facts.eval(from),
    });
    match eval.as_ref().map(|eval| &eval.stage) {
        Some(Stage::Decided(measured, ..)) => root_figures(&measured.scored.vs_root),
        Some(_) | None => ["0".to_owned(), "0".to_owned()],
    }
}
