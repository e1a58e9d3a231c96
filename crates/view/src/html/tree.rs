//! The tree drawn: nodes and evals from left to right, shape and colour by outcome, size by gain, the best path in bold. Each
//! mark leads to the page of what it stands for. What was pruned is counted in one mark where there is much of it.

mod layout;

use super::mark;
use super::plot::{float, px};
use super::text::{brief, title};
use crate::figure::change;
use crate::outcome::{Counts, Outcome, brief_reason};
use crate::read;
use layout::{Item, Spot, layout};
use maud::{Markup, html};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use treebeam_core::facts::{Eval, Facts, Node};
use treebeam_core::id::NodeId;
use treebeam_core::num::Finite;

/// With more evals than this, marks have no titles beside them.
const MOST_TITLED: usize = 60;
/// A node with more leaves than this has the others counted in one mark.
const MOST_LEAVES: usize = 12;
/// The longest title beside a mark.
const TITLE_CHARS: usize = 34;
/// The longest reason of a mark.
const REASON_CHARS: usize = 72;
/// Beside the drawing, and above and below it.
const MARGIN: (f64, f64) = (56.0, 16.0);

/// What a mark stands for.
enum Thing<'a> {
    Node(&'a Node),
    Leaf(&'a Eval),
    /// Leaves of a node that are only counted.
    More(&'a Node, Vec<&'a Eval>),
}

/// One mark: what it stands for, and where it hangs.
struct Mark<'a> {
    thing: Thing<'a>,
    parent: Option<usize>,
}

/// How much room there is.
#[derive(Clone, Copy)]
enum Style {
    Titled,
    Bare,
}

impl Style {
    /// From one level to the next.
    const fn step(self) -> f64 {
        match self {
            Self::Titled => 290.0,
            Self::Bare => 120.0,
        }
    }

    /// Before its place and after it: the name of a node stands above it.
    const fn room(self, thing: &Thing<'_>) -> (f64, f64) {
        match (self, thing) {
            (_, Thing::Node(_)) => (34.0, 16.0),
            (Self::Titled, Thing::Leaf(_) | Thing::More(..)) => (11.0, 11.0),
            (Self::Bare, Thing::Leaf(_)) => (7.5, 7.5),
            (Self::Bare, Thing::More(..)) => (10.0, 10.0),
        }
    }

    /// The radius of a mark without a gain, and how much a gain may add to it.
    const fn radius(self) -> (f64, f64) {
        match self {
            Self::Titled => (4.0, 5.0),
            Self::Bare => (3.2, 3.0),
        }
    }
}

/// What all marks need to know.
struct Drawing<'a> {
    facts: &'a Facts,
    style: Style,
    best: NodeId,
    path: BTreeSet<NodeId>,
    most: f64,
}

/// The tree.
#[must_use]
pub fn tree(facts: &Facts) -> Markup {
    let style = if facts.evals.len() > MOST_TITLED { Style::Bare } else { Style::Titled };
    let best = facts.best();
    let path = facts.lineage(best).map(|node| node.id).collect();
    let evals: Vec<_> = facts.evals.iter().collect();
    let gains = evals.iter().filter_map(|eval| read::rank_score(eval)).map(Finite::get);
    let most = gains.fold(0.0, f64::max);
    let drawing = Drawing { facts, style, best, path, most };
    let marks = marks(facts, &evals);
    let items: Vec<Item> = marks
        .iter()
        .map(|mark| Item { parent: mark.parent, room: style.room(&mark.thing) })
        .collect();
    let spots = layout(&items);
    html! {
        (legend(facts))
        div.scroll #tree tabindex="0" role="region" aria-label="Tree; arrow keys move, enter opens" {
            (drawing.svg(&marks, &spots))
        }
    }
}

/// Of the outcomes that there are, and of what is not an outcome.
fn legend(facts: &Facts) -> Markup {
    let counts = Counts::overall(facts);
    let seen = Outcome::ALL.into_iter().filter(|outcome| counts.get(*outcome) > 0);
    html! {
        (mark::legend(seen))
        p.note { "The larger a mark, the larger its gain over the root. Bold: the best path." }
    }
}

/// Every mark, parents before their children, children in the order of their ids.
fn marks<'a>(facts: &'a Facts, evals: &'a [Cow<'_, Eval>]) -> Vec<Mark<'a>> {
    let mut children: BTreeMap<NodeId, Vec<&Eval>> = BTreeMap::new();
    for eval in evals {
        children.entry(eval.parent).or_default().push(eval);
    }
    let roots =
        facts.node(NodeId::ROOT).map(|node| Mark { thing: Thing::Node(node), parent: None });
    let mut marks: Vec<Mark<'_>> = roots.into_iter().collect();
    let mut at = 0;
    while let Some(mark) = marks.get(at) {
        if let Thing::Node(node) = mark.thing {
            let evals = children.remove(&node.id).unwrap_or_default();
            let below = hung(facts, node, evals).into_iter();
            marks.extend(below.map(|thing| Mark { thing, parent: Some(at) }));
        }
        at += 1;
    }
    marks
}

/// What hangs on a node.
fn hung<'a>(facts: &'a Facts, node: &'a Node, evals: Vec<&'a Eval>) -> Vec<Thing<'a>> {
    let is_leaf = |eval: &&Eval| read::promoted_to(eval).is_none();
    let mut leaves: Vec<_> = evals.iter().copied().filter(is_leaf).collect();
    leaves.sort_by_key(|eval| {
        (Outcome::of(eval), std::cmp::Reverse(read::rank_score(eval)), eval.id)
    });
    let shown = if leaves.len() > MOST_LEAVES { MOST_LEAVES - 1 } else { leaves.len() };
    let mut more = leaves.split_off(shown);
    more.sort_by_key(|eval| eval.id);
    let hidden: BTreeSet<_> = more.iter().map(|eval| eval.id).collect();
    let shown = evals.into_iter().filter(|eval| !hidden.contains(&eval.id));
    let thing = |eval: &'a Eval| match read::promoted_to(eval).and_then(|id| facts.node(id)) {
        Some(node) => Thing::Node(node),
        None => Thing::Leaf(eval),
    };
    let mut things: Vec<_> = shown.map(thing).collect();
    if !more.is_empty() {
        things.push(Thing::More(node, more));
    }
    things
}

impl Drawing<'_> {
    fn svg(&self, marks: &[Mark<'_>], spots: &[Spot]) -> Markup {
        let deepest = spots.iter().map(|spot| spot.level).max().unwrap_or_default();
        let end = |(mark, spot): (&Mark<'_>, &Spot)| spot.across + self.style.room(&mark.thing).1;
        let last = marks.iter().zip(spots).map(end);
        let beside = match self.style {
            Style::Titled => 220.0,
            Style::Bare => 10.0,
        };
        let width = px(MARGIN.0.mul_add(2.0, float(deepest) * self.style.step()) + beside);
        let height = px(MARGIN.1.mul_add(2.0, last.fold(0.0, f64::max)));
        let pairs = || marks.iter().zip(spots);
        html! {
            svg.tree width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) } role="group" aria-label="The tree" {
                @for class in ["edge faint", "edge", "edge best"] { path class=(class) d=(self.edges(class, marks, spots)) {} }
                @for (at, (mark, spot)) in pairs().enumerate() { (self.mark(at, mark, spot)) }
            }
        }
    }

    fn place(&self, spot: &Spot) -> (f64, f64) {
        (float(spot.level).mul_add(self.style.step(), MARGIN.0), spot.across + MARGIN.1)
    }

    /// All edges of a class in one path.
    fn edges(&self, class: &str, marks: &[Mark<'_>], spots: &[Spot]) -> String {
        let mut path = String::new();
        for (mark, spot) in
            marks.iter().zip(spots).filter(|(mark, _)| self.edge(&mark.thing) == class)
        {
            if let Some(above) = mark.parent.and_then(|parent| spots.get(parent)) {
                path.push_str(&self.curve(above, spot));
            }
        }
        path
    }

    fn edge(&self, thing: &Thing<'_>) -> &'static str {
        match thing {
            Thing::Node(node) if self.path.contains(&node.id) => "edge best",
            Thing::Node(_) => "edge",
            Thing::Leaf(_) | Thing::More(..) => "edge faint",
        }
    }

    fn curve(&self, from: &Spot, to: &Spot) -> String {
        let ((x1, y1), (x2, y2)) = (self.place(from), self.place(to));
        let middle = px(x1.midpoint(x2));
        let (y1, y2) = (px(y1), px(y2));
        format!("M{} {y1}C{middle} {y1} {middle} {y2} {} {y2}", px(x1), px(x2))
    }

    /// A link with a shape; the first one can be reached by the tab key, the others by arrows.
    fn mark(&self, at: usize, mark: &Mark<'_>, spot: &Spot) -> Markup {
        let (x, y) = self.place(spot);
        let stop = if at == 0 { "0" } else { "-1" };
        let to = format!("translate({} {})", px(x), px(y));
        let (class, target, tip) = self.about(&mark.thing);
        html! {
            a class={ "mark " (class) } href={ "#" (target) } transform=(to) tabindex=(stop) data-up=[mark.parent] {
                title { (tip) }
                (self.shape(&mark.thing))
            }
        }
    }

    /// Its class, the page that it leads to, and what is said of it.
    fn about(&self, thing: &Thing<'_>) -> (&'static str, String, String) {
        match thing {
            Thing::Node(node) => {
                let name = read::node_name(node.id);
                let class = if self.path.contains(&node.id) { "node on-path" } else { "node kept" };
                (class, name, self.node_tip(node))
            }
            Thing::Leaf(eval) => {
                let outcome = Outcome::of(eval);
                (mark::class(outcome), read::eval_name(eval), leaf_tip(eval, outcome))
            }
            Thing::More(node, evals) => {
                let counts = Counts::of(evals);
                let tip = format!("{} more: {counts}", evals.len());
                ("more", read::node_name(node.id), tip)
            }
        }
    }

    fn node_tip(&self, node: &Node) -> String {
        let name = read::node_name(node.id);
        let score = change(read::node_rank_score(self.facts, node));
        let best = if node.id == self.best { ", the best" } else { "" };
        match read::source(self.facts, node) {
            None => format!("{name}, the root{best}"),
            Some(eval) => {
                let idea = title(&eval.idea.title);
                format!("{name}{best}: rank score {score}; {} {idea}", read::eval_name(&eval))
            }
        }
    }

    fn shape(&self, thing: &Thing<'_>) -> Markup {
        match thing {
            Thing::Node(node) => {
                let size = self.size(read::node_rank_score(self.facts, node)) + 2.0;
                html! {
                    @if node.id == self.best { circle.halo r=(px(size + 4.0)) {} }
                    circle r=(px(size)) {}
                    (self.node_words(node, size))
                }
            }
            Thing::Leaf(eval) => {
                let size = self.size(read::rank_score(eval));
                html! { (mark::shape(Outcome::of(eval), size)) (beside(&self.leaf_words(eval))) }
            }
            Thing::More(_, evals) => html! {
                rect x="-11" y="-8" width="22" height="16" rx="8" {}
                text.in text-anchor="middle" dy="0.32em" { "+" (evals.len()) }
            },
        }
    }

    /// As large as its gain over the root.
    fn size(&self, score: Option<Finite>) -> f64 {
        let gain = score.map_or(0.0, Finite::get).max(0.0);
        let part = if self.most > 0.0 { (gain / self.most).min(1.0) } else { 0.0 };
        let (least, more) = self.style.radius();
        part.sqrt().mul_add(more, least)
    }

    /// Above a node: its name and its score.
    fn node_words(&self, node: &Node, size: f64) -> Markup {
        let y = px(-size - 6.0);
        let score = match node.id {
            NodeId::ROOT => "root".to_owned(),
            _ => change(read::node_rank_score(self.facts, node)),
        };
        html! {
            text.name y=(y) text-anchor="middle" { (read::node_name(node.id)) tspan.score { " " (score) } }
        }
    }

    fn leaf_words(&self, eval: &Eval) -> String {
        match self.style {
            Style::Bare => String::new(),
            Style::Titled => brief(&eval.idea.title, TITLE_CHARS),
        }
    }
}

fn beside(words: &str) -> Markup {
    html! { @if !words.is_empty() { text.beside x="14" dy="0.32em" { (words) } } }
}

fn leaf_tip(eval: &Eval, outcome: Outcome) -> String {
    let (name, idea) = (read::eval_name(eval), brief(&eval.idea.title, REASON_CHARS));
    let why = brief_reason(eval, REASON_CHARS);
    format!("{name} {outcome}: {idea} ({why})")
}
