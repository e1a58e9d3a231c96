//! One node: its code, the ideas that led to it and what each brought, what was tried on it, and its conversation.

use super::eval;
use super::text::{brief, title};
use crate::figure::change;
use crate::line::REASON_CHARS;
use crate::markdown::percent;
use crate::outcome::Counts;
use crate::read;
use crate::show::{gain, lineage};
use crate::words::{self, count};
use maud::{Markup, html};
use treebeam_core::facts::{Eval, Expansion, Facts, Ideas, Node};
use treebeam_core::id::{NodeId, Place};
use treebeam_core::path;

/// So many of the ideas that led to a node are shown: what came before stands with its ancestors.
const MOST_IDEAS: usize = 12;

/// A line of a list: its name, the idea that made it, and its score.
#[must_use]
pub fn row(facts: &Facts, node: &Node) -> Markup {
    let is_best = node.id == facts.best();
    html! {
        span.id { (read::node_name(node.id)) }
        span.idea { (idea(facts, node)) }
        span.outcome { @if is_best { "best" } @else if node.id == NodeId::ROOT { "root" } @else { "node" } }
        span.figure title="depth" { "depth " (node.depth) }
        span.figure title="rank score: against the root" { (change(read::node_rank_score(facts, node))) }
    }
}

fn idea(facts: &Facts, node: &Node) -> String {
    let source = read::source(facts, node);
    source.map_or_else(
        || "the commit that the run began with".to_owned(),
        |eval| title(&eval.idea.title),
    )
}

/// All of it.
#[must_use]
pub fn page(facts: &Facts, node: &Node) -> Markup {
    html! {
        (record(facts, node))
        (chain(facts, node))
        @for expansion in &node.expansions { (tried(facts, expansion)) }
        @if node.expansions.is_empty() { p.note { "Nothing was tried on it." } }
    }
}

fn record(facts: &Facts, node: &Node) -> Markup {
    let bills = words::bills(&node.spent());
    html! {
        dl.facts {
            dt { "commit" } dd { code { (node.commit) } }
            dt { "ref" } dd { code { (Place::Node(node.id).ref_name(&facts.run)) } }
            dt { "since" } dd { (format!("{:.0}", node.created_at)) ", depth " (node.depth) }
            @if let Some(eval) = read::source(facts, node) {
                @let (parent, eval) = (read::node_name(eval.parent), read::eval_name(&eval));
                dt { "promoted from" }
                dd { a href={ "#" (eval) } { (eval) } ", tried on " a href={ "#" (parent) } { (parent) } }
            }
            @if let Some(results) = facts.baseline_of(node) {
                dt { "results" }
                dd {
                    a href=(percent(results.path.as_str())) { (results.path) }
                    @if let Some(given) = words::given(&results) { ", " (given) }
                }
            }
            dt { "conversation" } dd { (lineage(facts, node)) }
            @if !bills.is_empty() { dt { "answers" } dd { @for line in bills { div { (line) } } } }
            @if !node.expansions.is_empty() {
                @let folder = path::node_ideas(node.id);
                dt { "ideas" } dd { a href={ (percent(folder.as_str())) "/" } { (folder) } }
            }
        }
    }
}

/// The last ideas that led here, and what each of them brought.
fn chain(facts: &Facts, node: &Node) -> Markup {
    let ideas = facts.idea_chain(node.id);
    let (before, ideas) = ideas.split_at(ideas.len().saturating_sub(MOST_IDEAS));
    html! {
        @if !ideas.is_empty() {
            h3 { "How it came about" }
            @if let Some(last) = before.last() { p.note { (count(before.len(), "idea")) " before, the last of them " (named(last)) } }
            ol.chain { @for eval in ideas { li { (named(eval)) div.note { (gain(eval)) } } } }
        }
    }
}

fn named(eval: &Eval) -> Markup {
    let name = read::eval_name(eval);
    html! { a href={ "#" (name) } { (name) } " " (title(&eval.idea.title)) }
}

/// What was tried on it, once.
fn tried(facts: &Facts, expansion: &Expansion) -> Markup {
    let evals: Vec<_> = expansion.evals().filter_map(|id| facts.eval(*id)).collect();
    html! {
        h3 { "Tried at depth " (expansion.depth) ": " (Counts::of(&evals)) }
        @if let Ideas::Failed { why, .. } = &expansion.ideas {
            p { "No ideas came: " (brief(why, REASON_CHARS)) }
        }
        ul.rows { @for eval in &evals { li { a.row href={ "#" (read::eval_name(eval)) } { (eval::row(eval)) } } } }
        @if let Ideas::Proposed { untried, .. } = &expansion.ideas {
            @for idea in untried { p.note { "Left untried: " (title(&idea.title)) } }
        }
    }
}
