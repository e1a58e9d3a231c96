//! The screen of `treebeam best`: the path from the root to the best node, what each idea on it brought, and where its code
//! lies. Plain text; names of files are relative to the run directory. Does not look whether anything is there.

use crate::figure::change;
use crate::line::{field, list, one_line};
use crate::outcome::Counts;
use crate::read;
use crate::show::gain;
use crate::versus;
use crate::words::{self, count};
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::facts::{Facts, Node};
use treebeam_core::id::{NodeId, Place};

/// The best path of a run in this directory, on one screen. What can be typed begins with how the program is called.
#[must_use]
pub fn best(facts: &Facts, directory: &str, program: &str) -> String {
    let mut lines = vec![
        field("run", facts.run.as_str()),
        field("phase", &words::phase(facts)),
        field("evals", &evals(facts)),
        field("best", &name(facts)),
        field("primary", &primary(facts)),
    ];
    lines.extend(list("path", path(facts).into_iter().flat_map(|node| step(facts, node))));
    if let Some(node) = facts.node(facts.best()).filter(|node| node.id != NodeId::ROOT) {
        lines.extend(code(facts, node, program));
    }
    lines
        .extend(list("control", versus::verdict(facts).into_iter().chain(versus::spending(facts))));
    lines.push(field("report", &report(facts)));
    lines.push(field("below", directory));
    lines.join("\n") + "\n"
}

/// The report of a run, in its directory.
pub const REPORT: &str = "report.html";

/// The nodes from the root to the best one.
#[must_use]
pub fn path(facts: &Facts) -> Vec<&Node> {
    let mut path: Vec<_> = facts.lineage(facts.best()).collect();
    path.reverse();
    path
}

/// Whether something of a node was removed on request.
#[must_use]
pub fn is_removed(facts: &Facts, node: &Node, kind: LeftoverKind) -> bool {
    facts.removed.contains(&Leftover { place: Place::Node(node.id), kind })
}

fn report(facts: &Facts) -> String {
    let later = if facts.stop_reason().is_some() { "" } else { " (written when the run stops)" };
    format!("{REPORT}{later}")
}

fn evals(facts: &Facts) -> String {
    let counts = Counts::overall(facts);
    match counts.total() {
        0 => "none yet".to_owned(),
        total => format!("{total}: {counts}"),
    }
}

fn name(facts: &Facts) -> String {
    let best = facts.best();
    let so_far = if facts.stop_reason().is_some() { "" } else { " so far" };
    if best == NodeId::ROOT {
        let name = read::node_name(best);
        return format!("{name}{so_far}, the root: no node ranks above it");
    }
    let score = facts.node(best).and_then(|node| read::node_rank_score(facts, node));
    let ideas = count(facts.idea_chain(best).len(), "idea");
    format!(
        "{}{so_far}, rank score {}, {ideas} from the root",
        read::node_name(best),
        change(score)
    )
}

fn primary(facts: &Facts) -> String {
    let score = &facts.meaning.score;
    let column = one_line(&score.primary);
    let direction = words::direction(score.primary_direction());
    format!("{column}, {direction}; a gain is positive")
}

/// A node of the path, and what the idea brought that made it.
fn step(facts: &Facts, node: &Node) -> Vec<String> {
    let (name, commit) = (read::node_name(node.id), node.commit.short());
    match read::source(facts, node) {
        None => vec![format!("{name} {commit} the root")],
        Some(eval) => {
            let (eval_name, title) = (read::eval_name(&eval), one_line(&eval.idea.title));
            vec![format!("{name} {commit} {eval_name} {title}"), format!("      {}", gain(&eval))]
        }
    }
}

/// Where the best code is, and what can be done with it.
fn code(facts: &Facts, node: &Node, program: &str) -> Vec<String> {
    let place = Place::Node(node.id);
    let gone = |kind| if is_removed(facts, node, kind) { " (removed)" } else { "" };
    let ref_name = place.ref_name(&facts.run);
    let mut lines = vec![
        field("commit", node.commit.as_str()),
        field("ref", &format!("{ref_name}{}", gone(LeftoverKind::Branch))),
        field("worktree", &format!("{}{}", place.worktree(), gone(LeftoverKind::Worktree))),
    ];
    let results = facts.baseline_of(node).map(|results| results.path.to_string());
    lines.extend(results.map(|path| field("results", &path)));
    let run = &facts.run;
    lines.push(field("diff", &format!("{program} diff {run} {place} --root")));
    if !is_removed(facts, node, LeftoverKind::Branch) {
        lines.push(field("export", &format!("{program} export {run} --branch NAME")));
    }
    lines
}
