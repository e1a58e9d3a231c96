//! Renders the screen of `treebeam show`: the record of one node or eval. Plain text; file names
//! are relative to the run directory. Computes no figure, and does not check that files exist.

mod conversation;
mod eval;
mod node;

pub(crate) use conversation::format_lineage;

use crate::figure::format_change;
use crate::lookup;
use crate::safe_text::{format_field, one_line};
use crate::words;
use jiff::Timestamp;
use treebeam_core::evidence::{Artifact, CandidateScore};
use treebeam_core::facts::{Eval, Facts, Stage};
use treebeam_core::id::{CodePlace, NodeId};

/// Renders a node or an eval of a run in this directory; `None` if it does not exist.
#[must_use]
pub fn render_show(facts: &Facts, place: CodePlace, directory: &str) -> Option<String> {
    let mut lines = match place {
        CodePlace::Node(id) => node::node_lines(facts, facts.node(id)?),
        CodePlace::Candidate(id) => eval::eval_lines(facts, &*facts.eval(id)?),
    };
    lines.push(format_field("below", directory));
    Some(lines.join("\n") + "\n")
}

/// Renders the conversation of a node of a run in this directory; `None` if the node does not
/// exist.
#[must_use]
pub fn render_conversation(facts: &Facts, node: NodeId, directory: &str) -> Option<String> {
    let mut lines = conversation::conversation_lines(facts, facts.node(node)?);
    lines.push(format_field("below", directory));
    Some(lines.join("\n") + "\n")
}

/// Returns when an eval was begun.
#[must_use]
pub fn started_at(eval: &Eval) -> Option<Timestamp> {
    match eval.stage {
        Stage::Implementing(at) | Stage::Failed { started_at: at, .. } => Some(at),
        Stage::Unfinished { started_at, .. } => started_at,
        Stage::Queued
        | Stage::Implemented(_)
        | Stage::Sweeping(_)
        | Stage::Swept(..)
        | Stage::Scored(_)
        | Stage::Decided(..)
        | Stage::Superseded(..)
        | Stage::SetAside => eval.candidate().map(|work| work.started_at),
    }
}

/// Returns when an eval was scored or failed.
#[must_use]
pub fn ended_at(eval: &Eval) -> Option<Timestamp> {
    match eval.stage {
        Stage::Failed { at, .. } => Some(at),
        Stage::Queued
        | Stage::Implementing(_)
        | Stage::Implemented(_)
        | Stage::Sweeping(_)
        | Stage::Swept(..)
        | Stage::Scored(_)
        | Stage::Decided(..)
        | Stage::Unfinished { .. }
        | Stage::Superseded(..)
        | Stage::SetAside => eval.scored_candidate().map(|measured| measured.at),
    }
}

/// Returns an eval's place in the beam of its depth, counted from 1.
#[must_use]
pub fn place_in_beam(facts: &Facts, eval: &Eval) -> Option<usize> {
    let closed = facts.closed.iter().find(|closed| eval.id < closed.evals_end)?;
    closed.beam.iter().position(|id| *id == eval.id).map(|index| index + 1)
}

/// Formats an artifact with its digest.
fn format_artifact(artifact: &Artifact) -> String {
    let digest = artifact.sha256.to_string();
    let given =
        words::user_results_note(artifact).map_or_else(String::new, |given| format!(", {given}"));
    format!("{}, sha256 {}…{given}", artifact.path, digest.get(..12).unwrap_or(&digest))
}

/// Formats the scores and gains of an idea that led to a node.
pub(crate) fn format_idea_gain(eval: &Eval) -> String {
    let scored = lookup::candidate_score(eval);
    let score = |pick: &dyn Fn(&CandidateScore) -> _| format_change(scored.as_ref().and_then(pick));
    format!(
        "score {} against its parent, {} against the root; gain {} and {}",
        score(&|scored| lookup::comparison_score(&scored.vs_parent)),
        score(&|scored| lookup::comparison_score(&scored.vs_root)),
        score(&|scored| scored.vs_parent.primary_delta),
        score(&|scored| scored.vs_root.primary_delta),
    )
}

fn eval_title(eval: &Eval) -> String {
    one_line(&eval.idea.title)
}
