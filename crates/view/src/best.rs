//! Renders the screen of `treebeam best`: the path from the root to the best node and its code.
//! Each idea on the path is shown with its gain. Plain text; file names are relative to the run
//! directory. Does not check that files exist.

use crate::figure::format_change;
use crate::lookup;
use crate::outcome::EvalCounts;
use crate::safe_text::{field_lines, format_field, one_line};
use crate::show::format_idea_gain;
use crate::versus;
use crate::words::{self, format_count};
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::facts::{Facts, Node};
use treebeam_core::id::{CodePlace, NodeId};

/// Renders the best path of a run in this directory on one screen. Commands to type begin with
/// `program`.
#[must_use]
pub fn render_best(facts: &Facts, directory: &str, program: &str) -> String {
    let mut lines = vec![
        format_field("run", facts.run.as_str()),
        format_field("phase", &words::describe_phase(facts)),
        format_field("evals", &format_evals(facts)),
        format_field("best", &format_best(facts)),
        format_field("primary", &format_primary(facts)),
    ];
    lines.extend(field_lines(
        "path",
        best_path_nodes(facts).into_iter().flat_map(|node| step_lines(facts, node)),
    ));
    if let Some(node) = facts.node(facts.best_node()).filter(|node| node.id != NodeId::ROOT) {
        lines.extend(code_lines(facts, node, program));
    }
    lines.extend(field_lines(
        "control",
        versus::control_verdict(facts).into_iter().chain(versus::control_spending(facts)),
    ));
    lines.push(format_field("report", &format_report_path(facts)));
    lines.push(format_field("below", directory));
    lines.join("\n") + "\n"
}

/// File name of a run's report, in the run directory.
pub const REPORT_PAGE_FILE: &str = "report.html";

/// Returns the nodes from the root to the best one.
#[must_use]
pub fn best_path_nodes(facts: &Facts) -> Vec<&Node> {
    let mut path: Vec<_> = facts.lineage(facts.best_node()).collect();
    path.reverse();
    path
}

/// Returns true if this worktree or ref of a node was removed on request.
#[must_use]
pub fn is_removed(facts: &Facts, node: &Node, kind: LeftoverKind) -> bool {
    facts.removed.contains(&Leftover { place: CodePlace::Node(node.id), kind })
}

fn format_report_path(facts: &Facts) -> String {
    let later = if facts.stop_reason().is_some() { "" } else { " (written when the run stops)" };
    format!("{REPORT_PAGE_FILE}{later}")
}

fn format_evals(facts: &Facts) -> String {
    let counts = EvalCounts::overall(facts);
    match counts.total() {
        0 => "none yet".to_owned(),
        total => format!("{total}: {counts}"),
    }
}

fn format_best(facts: &Facts) -> String {
    let best = facts.best_node();
    let so_far = if facts.stop_reason().is_some() { "" } else { " so far" };
    if best == NodeId::ROOT {
        let name = lookup::node_name(best);
        return format!("{name}{so_far}, the root: no node ranks above it");
    }
    let score = facts.node(best).and_then(|node| lookup::node_rank_score(facts, node));
    let ideas = format_count(facts.idea_chain(best).len(), "idea");
    format!(
        "{}{so_far}, rank score {}, {ideas} from the root",
        lookup::node_name(best),
        format_change(score)
    )
}

fn format_primary(facts: &Facts) -> String {
    let score = &facts.settings.score;
    let column = one_line(&score.primary);
    let direction = words::describe_direction(score.primary_direction());
    format!("{column}, {direction}; a gain is positive")
}

/// Returns the lines of a node of the path, with the gain of the idea that made it.
fn step_lines(facts: &Facts, node: &Node) -> Vec<String> {
    let (name, commit) = (lookup::node_name(node.id), node.commit.short_name());
    match lookup::source_eval(facts, node) {
        None => vec![format!("{name} {commit} the root")],
        Some(eval) => {
            let (eval_name, title) = (lookup::eval_name(&eval), one_line(&eval.idea.title));
            vec![
                format!("{name} {commit} {eval_name} {title}"),
                format!("      {}", format_idea_gain(&eval)),
            ]
        }
    }
}

/// Returns the lines that locate the best code, with commands for it.
fn code_lines(facts: &Facts, node: &Node, program: &str) -> Vec<String> {
    let place = CodePlace::Node(node.id);
    let gone = |kind| if is_removed(facts, node, kind) { " (removed)" } else { "" };
    let ref_name = place.ref_name(&facts.run);
    let mut lines = vec![
        format_field("commit", node.commit.as_str()),
        format_field("ref", &format!("{ref_name}{}", gone(LeftoverKind::Branch))),
        format_field(
            "worktree",
            &format!("{}{}", place.worktree_path(), gone(LeftoverKind::Worktree)),
        ),
    ];
    let results = facts.baseline_of(node).map(|results| results.path.to_string());
    lines.extend(results.map(|path| format_field("results", &path)));
    let run = &facts.run;
    lines.push(format_field("diff", &format!("{program} diff {run} {place} --root")));
    if !is_removed(facts, node, LeftoverKind::Branch) {
        lines.push(format_field("export", &format!("{program} export {run} --branch NAME")));
    }
    lines
}
