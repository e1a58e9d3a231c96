//! `TREE_GRAPH.md`: the tree as a Mermaid drawing, with the conversation forks at the edges. Nodes are boxes; evals
//! that did not become nodes are leaves. Git hosts refuse big drawings, so in a big run the leaves are counted, and in a very
//! big one what is neither on the best path nor among the first nodes is.

use crate::figure::change;
use crate::line::{one_line, shorten};
use crate::outcome::{Counts, Outcome, brief_reason};
use crate::read;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use treebeam_core::facts::{Eval, Facts, Ideas, Node, Origin};
use treebeam_core::id::NodeId;

/// With more leaves than this they are counted: nobody could read them.
const MOST_LEAVES: usize = 120;
/// A drawing of more than 50,000 characters or 500 edges is refused.
const MOST_CHARS: usize = 49_000;
const MOST_EDGES: usize = 480;
/// Trees are broader than deep: from left to right they can be read on a page, up to this depth.
const WIDEST: u32 = 5;
/// How many nodes are drawn where all are too many: the first of these that fits.
const FEWER_NODES: [usize; 3] = [120, 40, 10];
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
- **Red hexagon**: an eval that failed, with no score. In a big run one leaf counts all that is not drawn below a node.
- **Arrow**: the idea that was tried. `c0000-t1 → c0001` is a fork: conversation c0001 goes on from turn 1 of c0000.
";

/// The tree as Markdown with a Mermaid drawing.
#[must_use]
pub fn graph(facts: &Facts) -> String {
    let best = BestPath::of(facts);
    let fewer = FEWER_NODES.iter().map(|most| Shown::some(facts, &best, *most));
    let mut drawings =
        std::iter::once(Shown::all(facts)).chain(fewer).map(|shown| drawn(facts, &best, &shown));
    let last = drawings.next_back().unwrap_or_default();
    let drawing = drawings.find(|drawing| fits(drawing)).unwrap_or(last);
    let run = &facts.run;
    format!("# Tree graph {run}\n\n```mermaid\n{drawing}```\n\n{LEGEND}")
}

/// Whether a git host draws it. A label holds no arrow.
fn fits(drawing: &str) -> bool {
    let edges = drawing.lines().filter(|line| line.contains("->") || line.contains("=>")).count();
    edges <= MOST_EDGES && drawing.encode_utf16().count() <= MOST_CHARS
}

fn drawn(facts: &Facts, best: &BestPath, shown: &Shown) -> String {
    let nodes = || facts.nodes.iter().filter(|node| shown.has(node.id));
    let deepest = nodes().map(|node| node.depth.0).max().unwrap_or_default();
    let direction = if deepest > WIDEST { "TD" } else { "LR" };
    let mut drawing = format!("graph {direction}\n");
    for node in nodes() {
        drawing.push_str(&node_box(facts, node, best));
    }
    for node in nodes() {
        drawing.push_str(&arrow(facts, node, best));
    }
    drawing.push_str(&leaves(facts, shown));
    drawing.extend(CLASSES.map(|class| format!("    classDef {class}\n")));
    drawing
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

/// For each node the one that stands for it: itself, or the nearest above it that is drawn.
struct Shown(Vec<NodeId>);

impl Shown {
    fn all(facts: &Facts) -> Self {
        Self(facts.nodes.iter().map(|node| node.id).collect())
    }

    /// So many: those on the best path, and then the first ones. A node's parent comes before it, so it is there too.
    fn some(facts: &Facts, best: &BestPath, most: usize) -> Self {
        let others = facts.nodes.iter().map(|node| node.id);
        let others = others.filter(|id| !best.nodes.contains(id));
        let kept: BTreeSet<NodeId> = best.nodes.iter().copied().chain(others).take(most).collect();
        let mut shown = Self(Vec::with_capacity(facts.nodes.len()));
        for node in &facts.nodes {
            let above = node.parent().map_or(NodeId::ROOT, |parent| shown.instead_of(parent));
            shown.0.push(if kept.contains(&node.id) { node.id } else { above });
        }
        shown
    }

    fn instead_of(&self, id: NodeId) -> NodeId {
        let place = usize::try_from(id.number()).ok();
        place.and_then(|place| self.0.get(place)).copied().unwrap_or(NodeId::ROOT)
    }

    fn has(&self, id: NodeId) -> bool {
        self.instead_of(id) == id
    }

    fn has_all(&self) -> bool {
        (0..).map(NodeId::new).zip(&self.0).all(|(id, shown)| id == *shown)
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
    let idea = read::source(facts, node).map(|eval| title(&eval)).unwrap_or_default();
    let stroke = if best.nodes.contains(&node.id) { "==>" } else { "-->" };
    let (from, to) = (read::node_name(parent), read::node_name(node.id));
    let fork = format!("{forked_at} → {}", read::conversation(node.id));
    format!("    {from} {stroke}|\"{idea}<br/>{fork}\"| {to}\n")
}

fn title(eval: &Eval) -> String {
    let title = shorten(&one_line(&eval.idea.title), TITLE_CHARS);
    format!("{} {}", read::eval_name(eval), safe(&title))
}

fn leaves(facts: &Facts, shown: &Shown) -> String {
    let is_drawn = |node: NodeId| shown.has(node);
    let leaves = facts.evals.iter().filter(|eval| !read::promoted_to(eval).is_some_and(is_drawn));
    let leaves: Vec<_> = leaves.collect();
    if leaves.len() > MOST_LEAVES || !shown.has_all() {
        return counted(&leaves, shown);
    }
    leaves.iter().map(|eval| leaf(eval)).collect()
}

fn leaf(eval: &Eval) -> String {
    let name = read::eval_name(eval);
    let outcome = Outcome::of(eval);
    let why = brief_reason(eval, REASON_CHARS + outcome.word().len());
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

/// One leaf per node, with the numbers of all that is not drawn below it.
fn counted(leaves: &[Cow<'_, Eval>], shown: &Shown) -> String {
    let mut by_parent: BTreeMap<NodeId, Vec<&Eval>> = BTreeMap::new();
    for eval in leaves {
        by_parent.entry(shown.instead_of(eval.parent)).or_default().push(eval);
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
            // Two in a row would begin a formula, and one that cannot be read spoils the whole drawing.
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
        assert_eq!(safe("say \"hi\" | `x` <b>"), "say #quot;hi#quot; #124; #96;x#96; #lt;b#gt;");
        assert_eq!(safe("a:#1;%%{x}"), "a#58;#35;1#59;#37;#37;#123;x#125;");
        assert_eq!(safe("$$$x$"), "#36; #36; #36;x#36;");
        assert_eq!(safe("Über-smooth, +0.5 (漢字)"), "Über-smooth, +0.5 (漢字)");
    }
}
