//! The tree as rows: a node, what was tried on it, and where that became a node, its own row and those below it. In the
//! order of ids, whatever finished first.

use super::line::{Line, Tone};
use crate::figure::change;
use crate::line::one_line;
use crate::outcome::Outcome;
use crate::read;
use std::collections::BTreeMap;
use treebeam_core::facts::{Eval, Facts, Node};
use treebeam_core::id::{NodeId, Place};

/// How far a row is set in at most; a deep tree is not wider than a screen.
const DEEPEST: usize = 10;

/// A row of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) place: Place,
    level: usize,
}

/// All rows in which a text occurs, whatever its case.
pub(super) fn rows(facts: &Facts, filter: &str) -> Vec<Row> {
    let mut rows = all(facts);
    if !filter.is_empty() {
        let wanted = filter.to_lowercase();
        let path = Path::to_best(facts);
        rows.retain(|row| line(facts, *row, &path).text().to_lowercase().contains(&wanted));
    }
    rows
}

/// Which of these rows is the cursor's: its own or, where that is not among them, the first.
pub(super) fn chosen(rows: &[Row], cursor: Place) -> usize {
    rows.iter().position(|row| row.place == cursor).unwrap_or(0)
}

fn all(facts: &Facts) -> Vec<Row> {
    let mut tried: BTreeMap<NodeId, Vec<Place>> = BTreeMap::new();
    for eval in facts.evals.iter() {
        let place = read::promoted_to(&eval).map_or(Place::Candidate(eval.id), Place::Node);
        tried.entry(eval.parent).or_default().push(place);
    }
    let mut rows = Vec::new();
    let mut next = vec![Row { place: Place::Node(NodeId::ROOT), level: 0 }];
    while let Some(row) = next.pop() {
        rows.push(row);
        let Place::Node(id) = row.place else { continue };
        let below = tried.remove(&id).unwrap_or_default();
        let level = row.level + 1;
        next.extend(below.into_iter().rev().map(|place| Row { place, level }));
    }
    rows
}

/// The nodes on the path to the best one.
pub(super) struct Path(Vec<NodeId>);

impl Path {
    pub(super) fn to_best(facts: &Facts) -> Self {
        Self(facts.lineage(facts.best()).map(|node| node.id).collect())
    }
}

/// A row as a line.
pub(super) fn line(facts: &Facts, row: Row, path: &Path) -> Line {
    let indent = " ".repeat(2 * row.level.min(DEEPEST));
    match row.place {
        Place::Node(id) => {
            facts.node(id).map(|node| of_node(facts, node, path, &indent)).unwrap_or_default()
        }
        Place::Candidate(id) => {
            facts.eval(id).map(|eval| of_eval(&eval, &indent)).unwrap_or_default()
        }
    }
}

fn of_node(facts: &Facts, node: &Node, Path(path): &Path, indent: &str) -> Line {
    let on_path = path.contains(&node.id);
    let (mark, tone) = if on_path { ("●", Tone::Good) } else { ("○", Tone::Plain) };
    let word = match node.id {
        id if path.first() == Some(&id) => "best",
        NodeId::ROOT => "root",
        id if facts.frontier.contains(&id) => "frontier",
        _ => "node",
    };
    let title = read::source(facts, node).map_or_else(
        || format!("commit {}", node.commit.short()),
        |eval| format!("{} {}", read::eval_name(&eval), one_line(&eval.idea.title)),
    );
    let score = change(read::node_rank_score(facts, node));
    Line::of(tone, &format!("{indent}{mark} {} ", read::node_name(node.id)))
        .add(tone, &format!("{word:<10} {score:>10}  "))
        .add(Tone::Strong, &title)
}

fn of_eval(eval: &Eval, indent: &str) -> Line {
    let outcome = Outcome::of(eval);
    let score = read::rank_score(eval).map_or_else(String::new, |score| change(Some(score)));
    Line::of(Tone::Plain, &format!("{indent}  {} ", read::eval_name(eval)))
        .add(tone(outcome), &format!("{outcome:<10} "))
        .add(Tone::Plain, &format!("{score:>10}  {}", one_line(&eval.idea.title)))
}

const fn tone(outcome: Outcome) -> Tone {
    match outcome {
        Outcome::Promoted | Outcome::Chosen | Outcome::Passed => Tone::Good,
        Outcome::Failed => Tone::Bad,
        Outcome::Running => Tone::Busy,
        Outcome::Scored | Outcome::Control => Tone::Plain,
        Outcome::Rejected
        | Outcome::Unfinished
        | Outcome::Queued
        | Outcome::Superseded
        | Outcome::SetAside => Tone::Dim,
    }
}
