//! `treebeam best`: shows the path to the best node, and the gain of each idea on it. Reads only.

use super::OutputFormat;
use crate::failure::{CommandExit, CommandFailure};
use crate::resume_command;
use crate::run_location::RunLocation;
use crate::terminal;
use serde_json::{Value, json};
use treebeam_core::event::LeftoverKind;
use treebeam_core::evidence::Comparison;
use treebeam_core::facts::{Eval, Facts, Node, NodeOrigin};
use treebeam_core::id::CodePlace;
use treebeam_run::figures;
use treebeam_view::best::{REPORT_PAGE_FILE, best_path_nodes, is_removed};

pub(super) fn run_best(
    found: &RunLocation,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    show_best(found, &resume_command::treebeam_command(), output)
}

/// Shows the best path, with the given program name in hints.
pub(super) fn show_best(
    found: &RunLocation,
    program: &str,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let opened = treebeam_store::open_to_read(&found.run)?;
    terminal::print_notes(&opened.notes);
    let directory = found.run.root().display().to_string();
    match output {
        OutputFormat::Json => terminal::print_json(&render_best_json(&opened.state, &directory))?,
        OutputFormat::Text => {
            terminal::print_text(&treebeam_view::render_best(&opened.state, &directory, program))?;
        }
    }
    Ok(CommandExit::Done)
}

fn render_best_json(facts: &Facts, directory: &str) -> Value {
    let score = &facts.settings.score;
    let path: Vec<_> =
        best_path_nodes(facts).into_iter().map(|node| render_path_node_json(facts, node)).collect();
    let mut document = json!({
        "schema": "treebeam.best/1",
        "run_id": facts.run,
        "stop_reason": facts.stop_reason().map(|stop| stop.to_string()),
        "best": CodePlace::Node(facts.best_node()),
        "primary": { "column": score.primary, "direction": score.primary_direction() },
        "path": path,
        "report": REPORT_PAGE_FILE,
        "run_dir": directory,
    });
    if let Some(control) = figures::control_json(facts) {
        document["control"] = control;
    }
    document
}

/// Renders a node of the path. Removed parts are null.
fn render_path_node_json(facts: &Facts, node: &Node) -> Value {
    let place = CodePlace::Node(node.id);
    let is_kept = |kind| !is_removed(facts, node, kind);
    let eval = match node.origin {
        NodeOrigin::Root => None,
        NodeOrigin::Promoted { from, .. } => facts.eval(from),
    };
    let eval = eval.as_deref();
    let scored = eval.and_then(Eval::scored_candidate).map(|measured| measured.scored);
    let scored = scored.as_ref();
    json!({
        "node": place,
        "eval": eval.map(|eval| CodePlace::Candidate(eval.id)),
        "idea": eval.map(|eval| json!({ "id": eval.idea.chain_id(), "title": eval.idea.title })),
        "commit": node.commit,
        "ref_name": is_kept(LeftoverKind::Branch).then(|| place.ref_name(&facts.run)),
        "worktree_path": is_kept(LeftoverKind::Worktree).then(|| place.worktree_path()),
        "results": facts.baseline_of(node),
        "parent_relative": scored.map(|scored| render_gain_json(&scored.vs_parent)),
        "root_relative": scored.map(|scored| render_gain_json(&scored.vs_root)),
    })
}

fn render_gain_json(comparison: &Comparison) -> Value {
    let recommendation = &comparison.recommendation;
    let score = (recommendation.metrics_used > 0).then_some(recommendation.score);
    json!({ "score": score, "primary_delta": comparison.primary_delta })
}
