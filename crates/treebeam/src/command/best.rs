//! `treebeam best`: the path to the best node, and what each idea on it brought. Reads only.

use super::Output;
use crate::failure::{Exit, Failure};
use crate::terminal;
use crate::way_on;
use crate::wiring::Found;
use serde_json::{Value, json};
use treebeam_core::event::LeftoverKind;
use treebeam_core::evidence::Comparison;
use treebeam_core::facts::{Eval, Facts, Node, Origin};
use treebeam_core::id::Place;
use treebeam_edge::store;
use treebeam_run::figures;
use treebeam_view::best::{REPORT, is_removed, path};

pub(super) fn run(found: &Found, output: Output) -> Result<Exit, Failure> {
    show(found, &way_on::program(), output)
}

/// The same, with how the program is called.
pub(super) fn show(found: &Found, program: &str, output: Output) -> Result<Exit, Failure> {
    let opened = store::open_to_read(&found.run)?;
    terminal::notes(&opened.notes);
    let directory = found.run.root().display().to_string();
    match output {
        Output::Json => terminal::json(&document(&opened.state, &directory))?,
        Output::Text => terminal::show(&treebeam_view::best(&opened.state, &directory, program))?,
    }
    Ok(Exit::Done)
}

fn document(facts: &Facts, directory: &str) -> Value {
    let score = &facts.meaning.score;
    let path: Vec<_> = path(facts).into_iter().map(|node| step(facts, node)).collect();
    let mut document = json!({
        "schema": "treebeam.best/1",
        "run_id": facts.run,
        "stop_reason": facts.stop_reason().map(|stop| stop.to_string()),
        "best": Place::Node(facts.best()),
        "primary": { "column": score.primary, "direction": score.primary_direction() },
        "path": path,
        "report": REPORT,
        "run_dir": directory,
    });
    if let Some(control) = figures::control(facts) {
        document["control"] = control;
    }
    document
}

/// A node of the path. What is no longer there has no name.
fn step(facts: &Facts, node: &Node) -> Value {
    let place = Place::Node(node.id);
    let is_kept = |kind| !is_removed(facts, node, kind);
    let eval = match node.origin {
        Origin::Root => None,
        Origin::Promoted { from, .. } => facts.eval(from),
    };
    let eval = eval.as_deref();
    let scored = eval.and_then(Eval::measured).map(|measured| measured.scored);
    let scored = scored.as_ref();
    json!({
        "node": place,
        "eval": eval.map(|eval| Place::Candidate(eval.id)),
        "idea": eval.map(|eval| json!({ "id": eval.idea.id(), "title": eval.idea.title })),
        "commit": node.commit,
        "ref_name": is_kept(LeftoverKind::Branch).then(|| place.ref_name(&facts.run)),
        "worktree_path": is_kept(LeftoverKind::Worktree).then(|| place.worktree()),
        "results": facts.baseline_of(node),
        "parent_relative": scored.map(|scored| gain(&scored.vs_parent)),
        "root_relative": scored.map(|scored| gain(&scored.vs_root)),
    })
}

fn gain(comparison: &Comparison) -> Value {
    let recommendation = &comparison.recommendation;
    let score = (recommendation.metrics_used > 0).then_some(recommendation.score);
    json!({ "score": score, "primary_delta": comparison.primary_delta })
}
