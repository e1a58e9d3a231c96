//! Renders one node: its code, the ideas that led to it with their gains, evals on it, and its
//! conversation.

use super::eval;
use super::visible_text::short_title;
use crate::figure::format_change;
use crate::lookup;
use crate::markdown::percent_encode;
use crate::outcome::EvalCounts;
use crate::safe_text::{MAX_SHOWN_REASON_CHARS, format_failure};
use crate::show::{format_idea_gain, format_lineage};
use crate::words::{self, format_count};
use maud::{Markup, html};
use treebeam_core::facts::{Eval, Expansion, ExpansionIdeas, Facts, Node};
use treebeam_core::id::{CodePlace, NodeId};
use treebeam_core::path;

/// Maximum number of ideas shown; earlier ones are shown with the node's ancestors.
const MAX_SHOWN_IDEAS: usize = 12;

/// Renders a list row of a node: name, idea, kind, depth and rank score.
#[must_use]
pub fn render_node_row(facts: &Facts, node: &Node) -> Markup {
    let is_best = node.id == facts.best_node();
    html! {
        span.id { (lookup::node_name(node.id)) }
        span.idea { (source_idea_title(facts, node)) }
        span.outcome { @if is_best { "best" } @else if node.id == NodeId::ROOT { "root" } @else { "node" } }
        span.figure title="depth" { "depth " (node.depth) }
        span.figure title="rank score: against the root" { (format_change(lookup::node_rank_score(facts, node))) }
    }
}

fn source_idea_title(facts: &Facts, node: &Node) -> String {
    let source = lookup::source_eval(facts, node);
    source.map_or_else(
        || "the commit that the run began with".to_owned(),
        |eval| short_title(&eval.idea.title),
    )
}

/// Renders the full page of a node.
#[must_use]
pub fn render_node_page(facts: &Facts, node: &Node) -> Markup {
    html! {
        (render_record(facts, node))
        (render_idea_chain(facts, node))
        @for expansion in &node.expansions { (render_expansion(facts, expansion)) }
        @if node.expansions.is_empty() { p.note { "Nothing was tried on it." } }
    }
}

fn render_record(facts: &Facts, node: &Node) -> Markup {
    let bills = words::describe_bills(&node.total_spend());
    html! {
        dl.facts {
            dt { "commit" } dd { code { (node.commit) } }
            dt { "ref" } dd { code { (CodePlace::Node(node.id).ref_name(&facts.run)) } }
            dt { "since" } dd { (format!("{:.0}", node.created_at)) ", depth " (node.depth) }
            @if let Some(eval) = lookup::source_eval(facts, node) {
                @let (parent, eval) = (lookup::node_name(eval.parent), lookup::eval_name(&eval));
                dt { "promoted from" }
                dd { a href={ "#" (eval) } { (eval) } ", tried on " a href={ "#" (parent) } { (parent) } }
            }
            @if let Some(results) = facts.baseline_of(node) {
                dt { "results" }
                dd {
                    a href=(percent_encode(results.path.as_str())) { (results.path) }
                    @if let Some(given) = words::user_results_note(&results) { ", " (given) }
                }
            }
            dt { "conversation" } dd { (format_lineage(facts, node)) }
            @if !bills.is_empty() { dt { "answers" } dd { @for line in bills { div { (line) } } } }
            @if !node.expansions.is_empty() {
                @let folder = path::node_ideas_folder(node.id);
                dt { "ideas" } dd { a href={ (percent_encode(folder.as_str())) "/" } { (folder) } }
            }
        }
    }
}

/// Renders the last ideas that led to the node, with their gains.
fn render_idea_chain(facts: &Facts, node: &Node) -> Markup {
    let ideas = facts.idea_chain(node.id);
    let (before, ideas) = ideas.split_at(ideas.len().saturating_sub(MAX_SHOWN_IDEAS));
    html! {
        @if !ideas.is_empty() {
            h3 { "How it came about" }
            @if let Some(last) = before.last() { p.note { (format_count(before.len(), "idea")) " before, the last of them " (render_eval_link(last)) } }
            ol.chain { @for eval in ideas { li { (render_eval_link(eval)) div.note { (format_idea_gain(eval)) } } } }
        }
    }
}

fn render_eval_link(eval: &Eval) -> Markup {
    let name = lookup::eval_name(eval);
    html! { a href={ "#" (name) } { (name) } " " (short_title(&eval.idea.title)) }
}

/// Renders the evals of one expansion.
fn render_expansion(facts: &Facts, expansion: &Expansion) -> Markup {
    let evals: Vec<_> = expansion.eval_ids().filter_map(|id| facts.eval(*id)).collect();
    html! {
        h3 { "Tried at depth " (expansion.depth) ": " (EvalCounts::from_evals(&evals)) }
        @if let ExpansionIdeas::Failed { why, .. } = &expansion.ideas {
            p { (format_failure("No ideas came", why, MAX_SHOWN_REASON_CHARS)) }
        }
        ul.rows { @for eval in &evals { li { a.row href={ "#" (lookup::eval_name(eval)) } { (eval::render_eval_row(eval)) } } } }
        @if let ExpansionIdeas::Proposed { untried, .. } = &expansion.ideas {
            @for idea in untried { p.note { "Left untried: " (short_title(&idea.title)) } }
        }
    }
}
