//! What several views look up in the facts and the facts hold in two steps. Reads, never decides.

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

/// A node's name as it is typed: `n0003`.
pub(crate) fn node_name(id: NodeId) -> String {
    CodePlace::Node(id).to_string()
}

/// An eval's name as it is typed: `e0012`.
pub(crate) fn eval_name(eval: &Eval) -> String {
    CodePlace::Candidate(eval.id).to_string()
}

/// Whose ideas these are, as it is typed, where it can be: `n0003`, `control`.
pub(crate) fn source_name(source: IdeaSource) -> String {
    match source {
        IdeaSource::Node(id) => node_name(id),
        IdeaSource::Control => source.to_string(),
    }
}

/// A node's conversation: `c0003`.
pub(crate) fn conversation_name(id: NodeId) -> String {
    format!("c{id}")
}

/// Where an idea comes from: the turn of its node's conversation, or the user.
pub(crate) fn idea_source(eval: &Eval) -> String {
    match (eval.turn_id(), eval.group) {
        (Some(turn), _) => turn.to_string(),
        (None, EvalGroup::Tree) => "added by the user".to_owned(),
        (None, EvalGroup::Control) => "asked for the control group".to_owned(),
    }
}

/// The eval that a node was; none for the root.
pub(crate) fn source_eval<'a>(facts: &'a Facts, node: &Node) -> Option<Cow<'a, Eval>> {
    match node.origin {
        NodeOrigin::Root => None,
        NodeOrigin::Promoted { from, .. } => facts.eval(from),
    }
}

/// An eval's figures.
pub(crate) fn candidate_score(eval: &Eval) -> Option<CandidateScore> {
    eval.scored_candidate().map(|measured| measured.scored)
}

/// The score, if any metric is behind it.
pub(crate) fn comparison_score(comparison: &Comparison) -> Option<Finite> {
    let recommendation = &comparison.recommendation;
    (recommendation.metrics_used > 0).then_some(recommendation.score)
}

/// What an eval is ranked by: as recorded, or, before that, as it will be.
pub(crate) fn rank_score(eval: &Eval) -> Option<Finite> {
    match eval.gate_verdict() {
        Some(verdict) => verdict.rank_score,
        None => candidate_score(eval).and_then(|scored| rank::rank_score(&scored.vs_root)),
    }
}

/// What a node is ranked by, the root counting as 0.
pub(crate) fn node_rank_score(facts: &Facts, node: &Node) -> Option<Finite> {
    match node.origin {
        NodeOrigin::Root => Some(Finite::ZERO),
        NodeOrigin::Promoted { from, .. } => facts.eval(from).and_then(|eval| rank_score(&eval)),
    }
}

/// The node that an eval has become.
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

/// The file that the root's figures are taken from; none: its sweep is run. The dry world takes none.
pub(crate) fn user_baseline(facts: &Facts) -> Option<&UserPath> {
    match facts.world {
        WorldKind::Real => facts.settings.measure.baseline_csv.as_ref(),
        WorldKind::Dry { .. } => None,
    }
}

/// The sweep that a candidate is compared with: its parent's own.
pub(crate) fn parent_baseline(facts: &Facts, eval: &Eval) -> Option<Artifact> {
    facts.baseline_of(facts.node(eval.parent)?)
}

/// Where an eval's prompts, replies, diffs and logs lie, once it has begun.
pub(crate) fn experiment_folder(eval: &Eval) -> Option<String> {
    let waits = matches!(
        eval.stage,
        Stage::Queued | Stage::Unfinished { started_at: None, .. } | Stage::SetAside
    );
    let begun = eval.attempt > 1 || !waits;
    begun.then(|| path::experiment_folder(eval.id).to_string())
}
