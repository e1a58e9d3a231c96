//! Looks up facts that several views need and that take two steps. Reads, never decides.

use std::borrow::Cow;
use treebeam_core::event::WorldKind;
use treebeam_core::evidence::{Artifact, CandidateScore, Comparison};
use treebeam_core::facts::{CandidateFate, Eval, Facts, Node, NodeOrigin, Stage};
use treebeam_core::group::{EvalGroup, IdeaSource};
use treebeam_core::id::{CodePlace, NodeId};
use treebeam_core::measure::UserPath;
use treebeam_core::num::Finite;
use treebeam_core::path;
use treebeam_core::rank;

/// Returns a node's name as users type it: `n0003`.
pub(crate) fn node_name(id: NodeId) -> String {
    CodePlace::Node(id).to_string()
}

/// Returns an eval's name as users type it: `e0012`.
pub(crate) fn eval_name(eval: &Eval) -> String {
    CodePlace::Candidate(eval.id).to_string()
}

/// Returns the name of a source of ideas: `n0003`, `control`.
pub(crate) fn source_name(source: IdeaSource) -> String {
    match source {
        IdeaSource::Node(id) => node_name(id),
        IdeaSource::Control => source.to_string(),
    }
}

/// Returns the name of a node's conversation: `c0003`.
pub(crate) fn conversation_name(id: NodeId) -> String {
    format!("c{id}")
}

/// Returns the origin of an idea: a turn of its node's conversation, the user, or the control
/// group.
pub(crate) fn idea_source(eval: &Eval) -> String {
    match (eval.turn_id(), eval.group) {
        (Some(turn), _) => turn.to_string(),
        (None, EvalGroup::Tree) => "added by the user".to_owned(),
        (None, EvalGroup::Control) => "asked for the control group".to_owned(),
    }
}

/// Returns the eval that was promoted to a node; `None` for the root.
pub(crate) fn source_eval<'a>(facts: &'a Facts, node: &Node) -> Option<Cow<'a, Eval>> {
    match node.origin {
        NodeOrigin::Root => None,
        NodeOrigin::Promoted { from, .. } => facts.eval(from),
    }
}

/// Returns an eval's scores.
pub(crate) fn candidate_score(eval: &Eval) -> Option<CandidateScore> {
    eval.scored_candidate().map(|measured| measured.scored)
}

/// Returns the score of a comparison, if it is based on any metric.
pub(crate) fn comparison_score(comparison: &Comparison) -> Option<Finite> {
    let recommendation = &comparison.recommendation;
    (recommendation.metrics_used > 0).then_some(recommendation.score)
}

/// Returns an eval's rank score: the recorded one, or before that the one that will be recorded.
pub(crate) fn rank_score(eval: &Eval) -> Option<Finite> {
    match eval.gate_verdict() {
        Some(verdict) => verdict.rank_score,
        None => candidate_score(eval).and_then(|scored| rank::rank_score(&scored.vs_root)),
    }
}

/// Returns a node's rank score; the root counts as 0.
pub(crate) fn node_rank_score(facts: &Facts, node: &Node) -> Option<Finite> {
    match node.origin {
        NodeOrigin::Root => Some(Finite::ZERO),
        NodeOrigin::Promoted { from, .. } => facts.eval(from).and_then(|eval| rank_score(&eval)),
    }
}

/// Returns the node that an eval was promoted to.
pub(crate) fn promoted_to(eval: &Eval) -> Option<NodeId> {
    match eval.stage {
        Stage::Decided(_, _, CandidateFate::Promoted(node)) => Some(node),
        Stage::Decided(_, _, CandidateFate::Dropped | CandidateFate::Chosen)
        | Stage::Queued
        | Stage::Implementing(_)
        | Stage::Implemented(_)
        | Stage::Sweeping(_)
        | Stage::Swept(..)
        | Stage::Scored(_)
        | Stage::Failed { .. }
        | Stage::Unfinished { .. }
        | Stage::Superseded(..)
        | Stage::SetAside => None,
    }
}

/// Returns the file that the root's results are taken from; `None` if the root is swept. The dry
/// world takes none.
pub(crate) fn user_baseline(facts: &Facts) -> Option<&UserPath> {
    match facts.world {
        WorldKind::Real => facts.settings.measure.baseline_csv.as_ref(),
        WorldKind::Dry { .. } => None,
    }
}

/// Returns the sweep that a candidate is compared with: that of its parent.
pub(crate) fn parent_baseline(facts: &Facts, eval: &Eval) -> Option<Artifact> {
    facts.baseline_of(facts.node(eval.parent)?)
}

/// Returns the folder of an eval's prompts, replies, diffs and logs, once it has begun.
pub(crate) fn experiment_folder(eval: &Eval) -> Option<String> {
    let waits = matches!(
        eval.stage,
        Stage::Queued | Stage::Unfinished { started_at: None, .. } | Stage::SetAside
    );
    let begun = eval.attempt > 1 || !waits;
    begun.then(|| path::experiment_folder(eval.id).to_string())
}
