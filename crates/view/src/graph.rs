//! `TREE_GRAPH.md`: the tree as a Mermaid drawing, with the conversation forks at the edges. Nodes are boxes; evals
//! that did not become nodes are leaves. A drawing tool refuses big drawings, so in a big run the leaves are counted.

use crate::figure::change;
use crate::line::{one_line, shorten};
use crate::outcome::{Counts, Outcome, reason};
use crate::read;
use std::collections::{BTreeMap, BTreeSet};
use treebeam_core::facts::{Eval, Facts, Ideas, Node, Origin};
use treebeam_core::id::NodeId;

/// Mermaid draws at most 500 edges and 50,000 characters; with more leaves than this they are counted.
const MOST_LEAVES: usize = 120;
/// The longest title at an edge.
const TITLE_CHARS: usize = 40;
/// The longest reason in a leaf.
const REASON_CHARS: usize = 64;

const CLASSES: [&str; 6] = [
    "best fill:#c3fae8,stroke:#087f5b,stroke-width:3px,color:#000",
    "promoted fill:#d3f9d8,stroke:#2b8a3e,color:#000",
    "passed fill:#fff9db,stroke:#e67700,color:#000",
    "rejected fill:#f1f3f5,stroke:#868e96,color:#000",
    "failed fill:#ffe3e3,stroke:#c92a2a,color:#000",
    "open fill:#e7f5ff,stroke:#1971c2,color:#000",
];

const LEGEND: &str = "\
- **Box**: a node, with its rank score against the root. A thick border and thick arrows mark the best path.
- **Rounded leaf**: an eval that did not become a node. Yellow passed the gate and was not in the beam, grey was
  rejected by the gate, evaluated again under another id, set aside or tried for comparison, blue is not decided yet.
- **Red hexagon**: an eval that failed, with no score.
- **Arrow**: the idea that was tried. `c0000-t1 → c0001` is a fork: conversation c0001 goes on from turn 1 of c0000.
";

/// The tree as Markdown with a Mermaid drawing.
#[must_use]
pub fn graph(facts: &Facts) -> String {
    let best = BestPath::of(facts);
    let mut drawing = String::from("graph TD\n");
    for node in &facts.nodes {
        drawing.push_str(&node_box(facts, node, &best));
    }
    for node in &facts.nodes {
        drawing.push_str(&arrow(facts, node, &best));
    }
    drawing.push_str(&leaves(facts));
    drawing.extend(CLASSES.map(|class| format!("    classDef {class}\n")));
    let run = &facts.run;
    format!("# Tree graph {run}\n\n```mermaid\n{drawing}```\n\n{LEGEND}")
}

/// The best node and what led to it.
struct BestPath {
    end: NodeId,
    nodes: BTreeSet<NodeId>,
}

impl BestPath {
    fn of(facts: &Facts) -> Self {
        let end = facts.best();
        Self { end, nodes: facts.lineage(end).map(|node| node.id).collect() }
    }
}

fn node_box(facts: &Facts, node: &Node, best: &BestPath) -> String {
    let name = read::node_name(node.id);
    let mut label = name.clone();
    if node.id == NodeId::ROOT {
        label.push_str(" · root");
    }
    if node.id == best.end {
        label.push_str(" · best");
    }
    label.push_str("<br/>rank score ");
    label.push_str(&safe(&change(read::node_rank_score(facts, node))));
    if node.expansions.last().is_some_and(|e| matches!(e.ideas, Ideas::Failed { .. })) {
        label.push_str("<br/>no ideas came");
    }
    let class = if best.nodes.contains(&node.id) { "best" } else { "promoted" };
    format!("    {name}[\"{label}\"]:::{class}\n")
}

/// From a node's parent to the node.
fn arrow(facts: &Facts, node: &Node, best: &BestPath) -> String {
    let Origin::Promoted { parent, forked_at, .. } = node.origin else { return String::new() };
    let idea = read::source(facts, node).map(title).unwrap_or_default();
    let stroke = if best.nodes.contains(&node.id) { "==>" } else { "-->" };
    let (from, to) = (read::node_name(parent), read::node_name(node.id));
    let fork = format!("{forked_at} → {}", read::conversation(node.id));
    format!("    {from} {stroke}|\"{idea}<br/>{fork}\"| {to}\n")
}

fn title(eval: &Eval) -> String {
    let title = shorten(&one_line(&eval.idea.title), TITLE_CHARS);
    format!("{} {}", read::eval_name(eval), safe(&title))
}

fn leaves(facts: &Facts) -> String {
    let leaves = facts.evals.iter().filter(|eval| read::promoted_to(eval).is_none());
    let leaves: Vec<_> = leaves.collect();
    if leaves.len() > MOST_LEAVES {
        return counted(&leaves);
    }
    leaves.into_iter().map(leaf).collect()
}

fn leaf(eval: &Eval) -> String {
    let name = read::eval_name(eval);
    let outcome = Outcome::of(eval);
    let why = reason(eval);
    let why = why.strip_prefix(outcome.word()).unwrap_or(&why).trim_start_matches([':', ' ']);
    let why = safe(&shorten(why, REASON_CHARS));
    let label = format!("{name} · {outcome}<br/>{why}");
    let parent = read::node_name(eval.parent);
    let shape = shape(outcome, &label);
    let class = class(outcome);
    format!("    {parent} -.->|\"{}\"| {name}{shape}:::{class}\n", title(eval))
}

fn shape(outcome: Outcome, label: &str) -> String {
    if outcome == Outcome::Failed {
        format!("{{{{\"{label}\"}}}}")
    } else {
        format!("([\"{label}\"])")
    }
}

const fn class(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Promoted | Outcome::Chosen => "promoted",
        Outcome::Passed => "passed",
        Outcome::Rejected
        | Outcome::Unfinished
        | Outcome::Control
        | Outcome::Superseded
        | Outcome::SetAside => "rejected",
        Outcome::Failed => "failed",
        Outcome::Scored | Outcome::Running | Outcome::Queued => "open",
    }
}

/// One leaf per node, with the numbers.
fn counted(leaves: &[&Eval]) -> String {
    let mut by_parent: BTreeMap<NodeId, Vec<&Eval>> = BTreeMap::new();
    for eval in leaves {
        by_parent.entry(eval.parent).or_default().push(eval);
    }
    let leaf = |(parent, evals): (NodeId, Vec<&Eval>)| {
        let counts = Counts::of(evals);
        format!("    n{parent} -.-> l{parent}([\"{counts}\"]):::rejected\n")
    };
    by_parent.into_iter().map(leaf).collect()
}

/// Text inside a quoted Mermaid label: what is neither a letter, a digit nor harmless becomes a character code.
fn safe(text: &str) -> String {
    let mut label = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => label.push_str("#quot;"),
            '<' => label.push_str("#lt;"),
            '>' => label.push_str("#gt;"),
            _ if c.is_alphanumeric() || " -+_.,/()=…–".contains(c) => label.push(c),
            _ => label.extend(["#", &u32::from(c).to_string(), ";"]),
        }
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_cannot_end_itself() {
        assert_eq!(safe("say \"hi\" | `x` <b>"), "say #quot;hi#quot; #124; #96;x#96; #lt;b#gt;");
        assert_eq!(safe("a:#1;%%{x}"), "a#58;#35;1#59;#37;#37;#123;x#125;");
        assert_eq!(safe("Über-smooth, +0.5 (漢字)"), "Über-smooth, +0.5 (漢字)");
    }
}
