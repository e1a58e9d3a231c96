//! Renders `TREE_GRAPH.md`: the tree as a Mermaid drawing, with conversation forks at the edges.
//! Nodes are boxes; evals that did not become nodes are leaves. Git hosts refuse big drawings, so
//! in a big run the leaves are counted, and in a very big one also the nodes that are neither on
//! the best path nor among the first.

use crate::figure::format_change;
use crate::lookup;
use crate::outcome::{EvalCounts, EvalStatus, brief_reason};
use crate::safe_text::{one_line, shorten_text};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use treebeam_core::facts::{Eval, ExpansionIdeas, Facts, Node, NodeOrigin};
use treebeam_core::id::NodeId;

/// Number of leaves above which they are counted, as a reader could not tell them apart.
const MAX_LEAVES: usize = 120;
/// Limits of a drawing: Git hosts refuse more than 50,000 characters or 500 edges.
const MAX_DRAWING_CHARS: usize = 49_000;
const MAX_EDGES: usize = 480;
/// Depth up to which the tree is drawn from left to right: trees are broader than deep.
const MAX_WIDE_DEPTH: u32 = 5;
/// Numbers of drawn nodes to try if all are too many; the first that fits is used.
const NODE_LIMITS: [usize; 3] = [120, 40, 10];
/// Maximum length of a title at an edge.
const MAX_TITLE_CHARS: usize = 40;
/// Maximum length of a reason in a leaf.
const MAX_REASON_CHARS: usize = 64;

const CLASS_STYLES: [&str; 6] = [
    "best fill:#c3fae8,stroke:#087f5b,stroke-width:3px,color:#000",
    "promoted fill:#d3f9d8,stroke:#2b8a3e,color:#000",
    "passed fill:#fff9db,stroke:#e67700,color:#000",
    "rejected fill:#f1f3f5,stroke:#868e96,color:#000",
    "failed fill:#ffe3e3,stroke:#c92a2a,color:#000",
    "open fill:#e7f5ff,stroke:#1971c2,color:#000",
];

const GRAPH_LEGEND: &str = "\
- **Box**: a node, with its rank score against the root. A thick border and thick arrows mark the best path.
- **Rounded leaf**: an eval that did not become a node. Yellow passed the gate and was not in the beam, grey was
  rejected by the gate, evaluated again under another id, set aside or tried for comparison, blue is not decided yet.
- **Red hexagon**: an eval that failed, with no score. In a big run one leaf counts all that is not drawn below a node.
- **Arrow**: the idea that was tried. `c0000-t1 → c0001` is a fork: conversation c0001 goes on from turn 1 of c0000.
";

/// Renders the tree as Markdown with a Mermaid drawing.
#[must_use]
pub fn render_graph(facts: &Facts) -> String {
    let best = BestPath::from_facts(facts);
    let fewer = NODE_LIMITS.iter().map(|most| DrawnNodes::some_nodes(facts, &best, *most));
    let mut drawings = std::iter::once(DrawnNodes::all_nodes(facts))
        .chain(fewer)
        .map(|shown| render_drawing(facts, &best, &shown));
    let last = drawings.next_back().unwrap_or_default();
    let drawing = drawings.find(|drawing| fits_limits(drawing)).unwrap_or(last);
    let run = &facts.run;
    format!("# Tree graph {run}\n\n```mermaid\n{drawing}```\n\n{GRAPH_LEGEND}")
}

/// Returns true if a drawing is within the limits of Git hosts. Labels contain no arrows.
fn fits_limits(drawing: &str) -> bool {
    let edges = drawing.lines().filter(|line| line.contains("->") || line.contains("=>")).count();
    edges <= MAX_EDGES && drawing.encode_utf16().count() <= MAX_DRAWING_CHARS
}

fn render_drawing(facts: &Facts, best: &BestPath, shown: &DrawnNodes) -> String {
    let nodes = || facts.nodes.iter().filter(|node| shown.contains(node.id));
    let deepest = nodes().map(|node| node.depth.0).max().unwrap_or_default();
    let direction = if deepest > MAX_WIDE_DEPTH { "TD" } else { "LR" };
    let mut drawing = format!("graph {direction}\n");
    for node in nodes() {
        drawing.push_str(&node_box(facts, node, best));
    }
    for node in nodes() {
        drawing.push_str(&render_arrow(facts, node, best));
    }
    drawing.push_str(&render_leaves(facts, shown));
    drawing.extend(CLASS_STYLES.map(|class| format!("    classDef {class}\n")));
    drawing
}

/// The best node and its ancestors.
struct BestPath {
    end: NodeId,
    nodes: BTreeSet<NodeId>,
}

impl BestPath {
    fn from_facts(facts: &Facts) -> Self {
        let end = facts.best_node();
        Self { end, nodes: facts.lineage(end).map(|node| node.id).collect() }
    }
}

/// For each node the drawn node that represents it: itself, or its nearest drawn ancestor.
struct DrawnNodes(Vec<NodeId>);

impl DrawnNodes {
    fn all_nodes(facts: &Facts) -> Self {
        Self(facts.nodes.iter().map(|node| node.id).collect())
    }

    /// Selects `most` nodes: those on the best path, then the first ones. Parents precede their
    /// children, so the parent of a selected node is selected too.
    fn some_nodes(facts: &Facts, best: &BestPath, most: usize) -> Self {
        let others = facts.nodes.iter().map(|node| node.id);
        let others = others.filter(|id| !best.nodes.contains(id));
        let kept: BTreeSet<NodeId> = best.nodes.iter().copied().chain(others).take(most).collect();
        let mut shown = Self(Vec::with_capacity(facts.nodes.len()));
        for node in &facts.nodes {
            let above = node.parent().map_or(NodeId::ROOT, |parent| shown.drawn_instead_of(parent));
            shown.0.push(if kept.contains(&node.id) { node.id } else { above });
        }
        shown
    }

    fn drawn_instead_of(&self, id: NodeId) -> NodeId {
        let place = usize::try_from(id.number()).ok();
        place.and_then(|place| self.0.get(place)).copied().unwrap_or(NodeId::ROOT)
    }

    fn contains(&self, id: NodeId) -> bool {
        self.drawn_instead_of(id) == id
    }

    fn has_all_nodes(&self) -> bool {
        (0..).map(NodeId::new).zip(&self.0).all(|(id, shown)| id == *shown)
    }
}

fn node_box(facts: &Facts, node: &Node, best: &BestPath) -> String {
    let name = lookup::node_name(node.id);
    let mut label = name.clone();
    if node.id == NodeId::ROOT {
        label.push_str(" · root");
    }
    if node.id == best.end {
        label.push_str(" · best");
    }
    label.push_str("<br/>rank score ");
    label.push_str(&escape_label(&format_change(lookup::node_rank_score(facts, node))));
    if node.expansions.last().is_some_and(|e| matches!(e.ideas, ExpansionIdeas::Failed { .. })) {
        label.push_str("<br/>no ideas came");
    }
    let class = if best.nodes.contains(&node.id) { "best" } else { "promoted" };
    format!("    {name}[\"{label}\"]:::{class}\n")
}

/// Renders the arrow from a node's parent to the node.
fn render_arrow(facts: &Facts, node: &Node, best: &BestPath) -> String {
    let NodeOrigin::Promoted { parent, forked_at, .. } = node.origin else { return String::new() };
    let idea =
        lookup::source_eval(facts, node).map(|eval| format_eval_title(&eval)).unwrap_or_default();
    let stroke = if best.nodes.contains(&node.id) { "==>" } else { "-->" };
    let (from, to) = (lookup::node_name(parent), lookup::node_name(node.id));
    let fork = format!("{forked_at} → {}", lookup::conversation_name(node.id));
    format!("    {from} {stroke}|\"{idea}<br/>{fork}\"| {to}\n")
}

fn format_eval_title(eval: &Eval) -> String {
    let title = shorten_text(&one_line(&eval.idea.title), MAX_TITLE_CHARS);
    format!("{} {}", lookup::eval_name(eval), escape_label(&title))
}

fn render_leaves(facts: &Facts, shown: &DrawnNodes) -> String {
    let is_drawn = |node: NodeId| shown.contains(node);
    let leaves = facts.evals.iter().filter(|eval| !lookup::promoted_to(eval).is_some_and(is_drawn));
    let leaves: Vec<_> = leaves.collect();
    if leaves.len() > MAX_LEAVES || !shown.has_all_nodes() {
        return render_counted_leaves(&leaves, shown);
    }
    leaves.iter().map(|eval| render_leaf(eval)).collect()
}

fn render_leaf(eval: &Eval) -> String {
    let name = lookup::eval_name(eval);
    let outcome = EvalStatus::from_eval(eval);
    let why = brief_reason(eval, MAX_REASON_CHARS + outcome.word().len());
    let why = why.strip_prefix(outcome.word()).unwrap_or(&why).trim_start_matches([':', ' ']);
    let why = escape_label(&shorten_text(why, MAX_REASON_CHARS));
    let label = format!("{name} · {outcome}<br/>{why}");
    let parent = lookup::node_name(eval.parent);
    let shape = leaf_shape(outcome, &label);
    let class = leaf_class(outcome);
    format!("    {parent} -.->|\"{}\"| {name}{shape}:::{class}\n", format_eval_title(eval))
}

fn leaf_shape(outcome: EvalStatus, label: &str) -> String {
    if outcome == EvalStatus::Failed {
        format!("{{{{\"{label}\"}}}}")
    } else {
        format!("([\"{label}\"])")
    }
}

const fn leaf_class(outcome: EvalStatus) -> &'static str {
    match outcome {
        EvalStatus::Promoted | EvalStatus::Chosen => "promoted",
        EvalStatus::Passed => "passed",
        EvalStatus::Rejected
        | EvalStatus::Unfinished
        | EvalStatus::Control
        | EvalStatus::Superseded
        | EvalStatus::SetAside => "rejected",
        EvalStatus::Failed => "failed",
        EvalStatus::Scored | EvalStatus::Running | EvalStatus::Queued => "open",
    }
}

/// Renders one leaf per node, with counts of everything below it that is not drawn.
fn render_counted_leaves(leaves: &[Cow<'_, Eval>], shown: &DrawnNodes) -> String {
    let mut by_parent: BTreeMap<NodeId, Vec<&Eval>> = BTreeMap::new();
    for eval in leaves {
        by_parent.entry(shown.drawn_instead_of(eval.parent)).or_default().push(eval);
    }
    let leaf = |(parent, evals): (NodeId, Vec<&Eval>)| {
        let counts = EvalCounts::from_evals(evals);
        format!("    n{parent} -.-> l{parent}([\"{counts}\"]):::rejected\n")
    };
    by_parent.into_iter().map(leaf).collect()
}

/// Escapes text for a quoted Mermaid label: every character except letters, digits and a few
/// harmless ones becomes a character code.
fn escape_label(text: &str) -> String {
    let mut label = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => label.push_str("#quot;"),
            '<' => label.push_str("#lt;"),
            '>' => label.push_str("#gt;"),
            // Two dollar signs in a row would begin a formula, and an invalid one breaks the whole
            // drawing.
            '$' if label.ends_with("#36;") => label.push_str(" #36;"),
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
        assert_eq!(
            escape_label("say \"hi\" | `x` <b>"),
            "say #quot;hi#quot; #124; #96;x#96; #lt;b#gt;"
        );
        assert_eq!(escape_label("a:#1;%%{x}"), "a#58;#35;1#59;#37;#37;#123;x#125;");
        assert_eq!(escape_label("$$$x$"), "#36; #36; #36;x#36;");
        assert_eq!(escape_label("Über-smooth, +0.5 (漢字)"), "Über-smooth, +0.5 (漢字)");
    }
}
