//! Lists the tree as rows: each node is followed by its evals and child nodes, in the order of ids.
//! Which eval finished first does not matter.

use super::line::{ScreenLine, ScreenTone};
use crate::figure::format_change;
use crate::lookup;
use crate::outcome::EvalStatus;
use crate::safe_text::one_line;
use std::collections::BTreeMap;
use treebeam_core::facts::{Eval, Facts, Node};
use treebeam_core::id::{CodePlace, NodeId};

/// Maximum indentation level, so that a deep tree is not wider than a screen.
const MAX_INDENT_LEVEL: usize = 10;

/// A row of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TreeRow {
    pub(super) place: CodePlace,
    level: usize,
}

/// Returns the rows that contain a text, ignoring case.
pub(super) fn tree_rows(facts: &Facts, filter: &str) -> Vec<TreeRow> {
    let mut rows = all_rows(facts);
    if !filter.is_empty() {
        let wanted = filter.to_lowercase();
        let path = BestPathNodes::from_facts(facts);
        rows.retain(|row| tree_line(facts, *row, &path).text().to_lowercase().contains(&wanted));
    }
    rows
}

/// Returns the index of the cursor's row, or 0 if that is not among the rows.
pub(super) fn cursor_row(rows: &[TreeRow], cursor: CodePlace) -> usize {
    rows.iter().position(|row| row.place == cursor).unwrap_or(0)
}

fn all_rows(facts: &Facts) -> Vec<TreeRow> {
    let mut tried: BTreeMap<NodeId, Vec<CodePlace>> = BTreeMap::new();
    for eval in facts.evals.iter() {
        let place =
            lookup::promoted_to(&eval).map_or(CodePlace::Candidate(eval.id), CodePlace::Node);
        tried.entry(eval.parent).or_default().push(place);
    }
    let mut rows = Vec::new();
    let mut next = vec![TreeRow { place: CodePlace::Node(NodeId::ROOT), level: 0 }];
    while let Some(row) = next.pop() {
        rows.push(row);
        let CodePlace::Node(id) = row.place else { continue };
        let below = tried.remove(&id).unwrap_or_default();
        let level = row.level + 1;
        next.extend(below.into_iter().rev().map(|place| TreeRow { place, level }));
    }
    rows
}

/// Nodes on the path to the best one.
pub(super) struct BestPathNodes(Vec<NodeId>);

impl BestPathNodes {
    pub(super) fn from_facts(facts: &Facts) -> Self {
        Self(facts.lineage(facts.best_node()).map(|node| node.id).collect())
    }
}

/// Formats a row as a line.
pub(super) fn tree_line(facts: &Facts, row: TreeRow, path: &BestPathNodes) -> ScreenLine {
    let indent = " ".repeat(2 * row.level.min(MAX_INDENT_LEVEL));
    match row.place {
        CodePlace::Node(id) => {
            facts.node(id).map(|node| node_line(facts, node, path, &indent)).unwrap_or_default()
        }
        CodePlace::Candidate(id) => {
            facts.eval(id).map(|eval| eval_line(&eval, &indent)).unwrap_or_default()
        }
    }
}

fn node_line(
    facts: &Facts,
    node: &Node,
    BestPathNodes(path): &BestPathNodes,
    indent: &str,
) -> ScreenLine {
    let on_path = path.contains(&node.id);
    let (mark, tone) = if on_path { ("●", ScreenTone::Good) } else { ("○", ScreenTone::Plain) };
    let word = match node.id {
        id if path.first() == Some(&id) => "best",
        NodeId::ROOT => "root",
        id if facts.frontier.contains(&id) => "frontier",
        _ => "node",
    };
    let title = lookup::source_eval(facts, node).map_or_else(
        || format!("commit {}", node.commit.short_name()),
        |eval| format!("{} {}", lookup::eval_name(&eval), one_line(&eval.idea.title)),
    );
    let score = format_change(lookup::node_rank_score(facts, node));
    ScreenLine::new(tone, &format!("{indent}{mark} {} ", lookup::node_name(node.id)))
        .with_span(tone, &format!("{word:<10} {score:>10}  "))
        .with_span(ScreenTone::Strong, &title)
}

fn eval_line(eval: &Eval, indent: &str) -> ScreenLine {
    let outcome = EvalStatus::from_eval(eval);
    let score =
        lookup::rank_score(eval).map_or_else(String::new, |score| format_change(Some(score)));
    ScreenLine::new(ScreenTone::Plain, &format!("{indent}  {} ", lookup::eval_name(eval)))
        .with_span(status_tone(outcome), &format!("{outcome:<10} "))
        .with_span(ScreenTone::Plain, &format!("{score:>10}  {}", one_line(&eval.idea.title)))
}

const fn status_tone(outcome: EvalStatus) -> ScreenTone {
    match outcome {
        EvalStatus::Promoted | EvalStatus::Chosen | EvalStatus::Passed => ScreenTone::Good,
        EvalStatus::Failed => ScreenTone::Bad,
        EvalStatus::Running => ScreenTone::Busy,
        EvalStatus::Scored | EvalStatus::Control => ScreenTone::Plain,
        EvalStatus::Rejected
        | EvalStatus::Unfinished
        | EvalStatus::Queued
        | EvalStatus::Superseded
        | EvalStatus::SetAside => ScreenTone::Dim,
    }
}
