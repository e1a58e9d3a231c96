//! Draws the tree of nodes and evals from left to right, with the best path in bold. Shape and
//! colour show the status, size the gain. Each mark links to the page of its node or eval. If a
//! node has many pruned evals, most are counted in one mark.

mod layout;

use super::plot::{format_px, to_float};
use super::status_mark;
use super::visible_text::{short_line, short_title};
use crate::figure::format_change;
use crate::lookup;
use crate::outcome::{EvalCounts, EvalStatus, brief_reason};
use layout::{LayoutItem, LayoutSpot, layout_tree};
use maud::{Markup, html};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use treebeam_core::facts::{Eval, Facts, Node};
use treebeam_core::id::NodeId;
use treebeam_core::num::Finite;

/// Number of evals above which marks have no titles.
const MAX_TITLED_EVALS: usize = 60;
/// Maximum number of leaves of a node; further ones are counted in one mark.
const MAX_LEAVES: usize = 12;
/// Maximum length of a title beside a mark.
const MAX_TITLE_CHARS: usize = 34;
/// Maximum length of texts in a mark's tooltip.
const MAX_REASON_CHARS: usize = 72;
/// Horizontal and vertical margin of the drawing.
const DRAWING_MARGIN: (f64, f64) = (56.0, 16.0);

/// The object that a mark represents.
enum MarkTarget<'a> {
    Node(&'a Node),
    Leaf(&'a Eval),
    /// Leaves of a node that are only counted.
    More(&'a Node, Vec<&'a Eval>),
}

/// A mark: its object, and the index of its parent.
struct DrawnMark<'a> {
    thing: MarkTarget<'a>,
    parent: Option<usize>,
}

/// Style of the drawing: with or without titles.
#[derive(Clone, Copy)]
enum TreeStyle {
    Titled,
    Bare,
}

impl TreeStyle {
    /// Distance between two levels.
    const fn level_width(self) -> f64 {
        match self {
            Self::Titled => 290.0,
            Self::Bare => 120.0,
        }
    }

    /// Vertical space before and after a mark's position: a node's name is above it.
    const fn space_around(self, thing: &MarkTarget<'_>) -> (f64, f64) {
        match (self, thing) {
            (_, MarkTarget::Node(_)) => (34.0, 16.0),
            (Self::Titled, MarkTarget::Leaf(_) | MarkTarget::More(..)) => (11.0, 11.0),
            (Self::Bare, MarkTarget::Leaf(_)) => (7.5, 7.5),
            (Self::Bare, MarkTarget::More(..)) => (10.0, 10.0),
        }
    }

    /// Radius of a mark without a gain, and the maximum increase by a gain.
    const fn mark_radius(self) -> (f64, f64) {
        match self {
            Self::Titled => (4.0, 5.0),
            Self::Bare => (3.2, 3.0),
        }
    }
}

/// Data shared by all marks of a drawing.
struct TreeDrawing<'a> {
    facts: &'a Facts,
    style: TreeStyle,
    best: NodeId,
    path: BTreeSet<NodeId>,
    most: f64,
}

/// Renders the tree with its legend.
#[must_use]
pub fn render_tree(facts: &Facts) -> Markup {
    let style =
        if facts.evals.len() > MAX_TITLED_EVALS { TreeStyle::Bare } else { TreeStyle::Titled };
    let best = facts.best_node();
    let path = facts.lineage(best).map(|node| node.id).collect();
    let evals: Vec<_> = facts.evals.iter().collect();
    let gains = evals.iter().filter_map(|eval| lookup::rank_score(eval)).map(Finite::get);
    let most = gains.fold(0.0, f64::max);
    let drawing = TreeDrawing { facts, style, best, path, most };
    let marks = tree_marks(facts, &evals);
    let items: Vec<LayoutItem> = marks
        .iter()
        .map(|mark| LayoutItem { parent: mark.parent, room: style.space_around(&mark.thing) })
        .collect();
    let spots = layout_tree(&items);
    html! {
        (render_legend(facts))
        div.scroll #tree tabindex="0" role="region" aria-label="Tree; arrow keys move, enter opens" {
            (drawing.render_svg(&marks, &spots))
        }
    }
}

/// Renders the legend of the statuses that occur, with a note on size and path.
fn render_legend(facts: &Facts) -> Markup {
    let counts = EvalCounts::overall(facts);
    let seen = EvalStatus::ALL.into_iter().filter(|outcome| counts.get(*outcome) > 0);
    html! {
        (status_mark::status_legend(seen))
        p.note { "The larger a mark, the larger its gain over the root. Bold: the best path." }
    }
}

/// Returns all marks, parents before their children, children in the order of their ids.
fn tree_marks<'a>(facts: &'a Facts, evals: &'a [Cow<'_, Eval>]) -> Vec<DrawnMark<'a>> {
    let mut children: BTreeMap<NodeId, Vec<&Eval>> = BTreeMap::new();
    for eval in evals {
        children.entry(eval.parent).or_default().push(eval);
    }
    let roots = facts
        .node(NodeId::ROOT)
        .map(|node| DrawnMark { thing: MarkTarget::Node(node), parent: None });
    let mut marks: Vec<DrawnMark<'_>> = roots.into_iter().collect();
    let mut at = 0;
    while let Some(mark) = marks.get(at) {
        if let MarkTarget::Node(node) = mark.thing {
            let evals = children.remove(&node.id).unwrap_or_default();
            let below = node_children(facts, node, evals).into_iter();
            marks.extend(below.map(|thing| DrawnMark { thing, parent: Some(at) }));
        }
        at += 1;
    }
    marks
}

/// Returns the children of a node: promoted evals as nodes, other evals, and counted ones.
fn node_children<'a>(
    facts: &'a Facts,
    node: &'a Node,
    evals: Vec<&'a Eval>,
) -> Vec<MarkTarget<'a>> {
    let is_leaf = |eval: &&Eval| lookup::promoted_to(eval).is_none();
    let mut leaves: Vec<_> = evals.iter().copied().filter(is_leaf).collect();
    leaves.sort_by_key(|eval| {
        (EvalStatus::from_eval(eval), std::cmp::Reverse(lookup::rank_score(eval)), eval.id)
    });
    let shown = if leaves.len() > MAX_LEAVES { MAX_LEAVES - 1 } else { leaves.len() };
    let mut more = leaves.split_off(shown);
    more.sort_by_key(|eval| eval.id);
    let hidden: BTreeSet<_> = more.iter().map(|eval| eval.id).collect();
    let shown = evals.into_iter().filter(|eval| !hidden.contains(&eval.id));
    let thing = |eval: &'a Eval| match lookup::promoted_to(eval).and_then(|id| facts.node(id)) {
        Some(node) => MarkTarget::Node(node),
        None => MarkTarget::Leaf(eval),
    };
    let mut things: Vec<_> = shown.map(thing).collect();
    if !more.is_empty() {
        things.push(MarkTarget::More(node, more));
    }
    things
}

impl TreeDrawing<'_> {
    fn render_svg(&self, marks: &[DrawnMark<'_>], spots: &[LayoutSpot]) -> Markup {
        let deepest = spots.iter().map(|spot| spot.level).max().unwrap_or_default();
        let end = |(mark, spot): (&DrawnMark<'_>, &LayoutSpot)| {
            spot.across + self.style.space_around(&mark.thing).1
        };
        let last = marks.iter().zip(spots).map(end);
        let beside = match self.style {
            TreeStyle::Titled => 220.0,
            TreeStyle::Bare => 10.0,
        };
        let width = format_px(
            DRAWING_MARGIN.0.mul_add(2.0, to_float(deepest) * self.style.level_width()) + beside,
        );
        let height = format_px(DRAWING_MARGIN.1.mul_add(2.0, last.fold(0.0, f64::max)));
        let pairs = || marks.iter().zip(spots);
        html! {
            svg.tree width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) } role="group" aria-label="The tree" {
                @for class in ["edge faint", "edge", "edge best"] { path class=(class) d=(self.edges_path(class, marks, spots)) {} }
                @for (at, (mark, spot)) in pairs().enumerate() { (self.render_mark(at, mark, spot)) }
            }
        }
    }

    fn mark_position(&self, spot: &LayoutSpot) -> (f64, f64) {
        (
            to_float(spot.level).mul_add(self.style.level_width(), DRAWING_MARGIN.0),
            spot.across + DRAWING_MARGIN.1,
        )
    }

    /// Returns one path with all edges of a class.
    fn edges_path(&self, class: &str, marks: &[DrawnMark<'_>], spots: &[LayoutSpot]) -> String {
        let mut path = String::new();
        for (mark, spot) in
            marks.iter().zip(spots).filter(|(mark, _)| self.edge_class(&mark.thing) == class)
        {
            if let Some(above) = mark.parent.and_then(|parent| spots.get(parent)) {
                path.push_str(&self.edge_curve(above, spot));
            }
        }
        path
    }

    fn edge_class(&self, thing: &MarkTarget<'_>) -> &'static str {
        match thing {
            MarkTarget::Node(node) if self.path.contains(&node.id) => "edge best",
            MarkTarget::Node(_) => "edge",
            MarkTarget::Leaf(_) | MarkTarget::More(..) => "edge faint",
        }
    }

    fn edge_curve(&self, from: &LayoutSpot, to: &LayoutSpot) -> String {
        let ((x1, y1), (x2, y2)) = (self.mark_position(from), self.mark_position(to));
        let middle = format_px(x1.midpoint(x2));
        let (y1, y2) = (format_px(y1), format_px(y2));
        format!("M{} {y1}C{middle} {y1} {middle} {y2} {} {y2}", format_px(x1), format_px(x2))
    }

    /// Renders a linked shape; the first is reachable by the tab key, the others by arrow keys.
    fn render_mark(&self, at: usize, mark: &DrawnMark<'_>, spot: &LayoutSpot) -> Markup {
        let (x, y) = self.mark_position(spot);
        let stop = if at == 0 { "0" } else { "-1" };
        let to = format!("translate({} {})", format_px(x), format_px(y));
        let (class, target, tip) = self.describe_mark(&mark.thing);
        html! {
            a class={ "mark " (class) } href={ "#" (target) } transform=(to) tabindex=(stop) data-up=[mark.parent] {
                title { (tip) }
                (self.render_shape(&mark.thing))
            }
        }
    }

    /// Returns the class, link target and tooltip of a mark.
    fn describe_mark(&self, thing: &MarkTarget<'_>) -> (&'static str, String, String) {
        match thing {
            MarkTarget::Node(node) => {
                let name = lookup::node_name(node.id);
                let class = if self.path.contains(&node.id) { "node on-path" } else { "node kept" };
                (class, name, self.node_tip(node))
            }
            MarkTarget::Leaf(eval) => {
                let outcome = EvalStatus::from_eval(eval);
                (
                    status_mark::status_class(outcome),
                    lookup::eval_name(eval),
                    leaf_tip(eval, outcome),
                )
            }
            MarkTarget::More(node, evals) => {
                let counts = EvalCounts::from_evals(evals);
                let tip = format!("{} more: {counts}", evals.len());
                ("more", lookup::node_name(node.id), tip)
            }
        }
    }

    fn node_tip(&self, node: &Node) -> String {
        let name = lookup::node_name(node.id);
        let score = format_change(lookup::node_rank_score(self.facts, node));
        let best = if node.id == self.best { ", the best" } else { "" };
        match lookup::source_eval(self.facts, node) {
            None => format!("{name}, the root{best}"),
            Some(eval) => {
                let idea = short_title(&eval.idea.title);
                format!("{name}{best}: rank score {score}; {} {idea}", lookup::eval_name(&eval))
            }
        }
    }

    fn render_shape(&self, thing: &MarkTarget<'_>) -> Markup {
        match thing {
            MarkTarget::Node(node) => {
                let size = self.mark_size(lookup::node_rank_score(self.facts, node)) + 2.0;
                html! {
                    @if node.id == self.best { circle.halo r=(format_px(size + 4.0)) {} }
                    circle r=(format_px(size)) {}
                    (self.node_label(node, size))
                }
            }
            MarkTarget::Leaf(eval) => {
                let size = self.mark_size(lookup::rank_score(eval));
                html! { (status_mark::status_shape(EvalStatus::from_eval(eval), size)) (render_beside(&self.leaf_label(eval))) }
            }
            MarkTarget::More(_, evals) => html! {
                rect x="-11" y="-8" width="22" height="16" rx="8" {}
                text.in text-anchor="middle" dy="0.32em" { "+" (evals.len()) }
            },
        }
    }

    /// Returns the radius for a score: its area grows with the gain over the root.
    fn mark_size(&self, score: Option<Finite>) -> f64 {
        let gain = score.map_or(0.0, Finite::get).max(0.0);
        let part = if self.most > 0.0 { (gain / self.most).min(1.0) } else { 0.0 };
        let (least, more) = self.style.mark_radius();
        part.sqrt().mul_add(more, least)
    }

    /// Renders the label above a node: its name and its score.
    fn node_label(&self, node: &Node, size: f64) -> Markup {
        let y = format_px(-size - 6.0);
        let score = match node.id {
            NodeId::ROOT => "root".to_owned(),
            _ => format_change(lookup::node_rank_score(self.facts, node)),
        };
        html! {
            text.name y=(y) text-anchor="middle" { (lookup::node_name(node.id)) tspan.score { " " (score) } }
        }
    }

    fn leaf_label(&self, eval: &Eval) -> String {
        match self.style {
            TreeStyle::Bare => String::new(),
            TreeStyle::Titled => short_line(&eval.idea.title, MAX_TITLE_CHARS),
        }
    }
}

fn render_beside(words: &str) -> Markup {
    html! { @if !words.is_empty() { text.beside x="14" dy="0.32em" { (words) } } }
}

fn leaf_tip(eval: &Eval, outcome: EvalStatus) -> String {
    let (name, idea) = (lookup::eval_name(eval), short_line(&eval.idea.title, MAX_REASON_CHARS));
    let why = brief_reason(eval, MAX_REASON_CHARS);
    format!("{name} {outcome}: {idea} ({why})")
}
