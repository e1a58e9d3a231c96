//! Renders `report.html`, the whole run in one self-contained file. The most important evals are
//! shown in full, best path first; once the page is large enough, the others are shown in short.

use super::page::{PageAssets, render_page};
use super::page_material::SweepComparison;
use super::visible_text::short_title;
use super::{
    PageMaterial, compare, eval, node, render_costs, render_findings, render_lineage,
    render_run_head, render_timeline, render_tree, render_trust, scores, status_mark,
};
use crate::lookup;
use crate::outcome::{EvalCounts, EvalStatus};
use crate::words::format_count;
use maud::{Markup, PreEscaped, html};
use std::collections::{BTreeMap, BTreeSet};
use std::iter::{once, once_with};
use treebeam_core::audit::AuditFinding;
use treebeam_core::facts::{Eval, Facts, Node};
use treebeam_core::id::EvalId;
use treebeam_score::compare::ComparisonDetails;

/// Maximum total size of full eval pages, in bytes; the remaining evals are shown in short.
pub const MAX_EVAL_PAGES_BYTES: usize = 8 << 20;

/// Data of a run beyond its record and its evals.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReportExtra<'a> {
    /// Findings of a validation; `None` if there was none.
    pub findings: Option<&'a [AuditFinding]>,
    /// Best against root, on the search's results and on hold-out results.
    pub holdout: Option<(&'a ComparisonDetails, &'a ComparisonDetails)>,
}

const REPORT_SECTIONS: [(&str, &str); 8] = [
    ("overview", "Overview"),
    ("tree-section", "Tree"),
    ("scores", "Scores"),
    ("evals", "Evals"),
    ("nodes", "Nodes"),
    ("costs", "Costs"),
    ("slots", "Time line"),
    ("checks", "Checks"),
];

/// Placeholder in a frame for content that is added piece by piece; no text of a run contains it.
const BODY_PLACEHOLDER: &str = "\0";

/// Renders the report in pieces, so that it is never in memory as a whole. Calls `material` at most
/// once for each eval.
pub fn render_report<'a>(
    facts: &'a Facts,
    extra: ReportExtra<'a>,
    material: &mut dyn FnMut(&Eval) -> PageMaterial,
) -> impl Iterator<Item = String> + 'a {
    let (mut pages, best) = render_eval_pages(facts, material);
    let name = format!("Run {}", short_title(facts.run.as_str()));
    let hole = PreEscaped(BODY_PLACEHOLDER.to_owned());
    let [begin, end] =
        split_at_placeholder(render_page(&name, PageAssets::Embedded, &REPORT_SECTIONS, &hole));
    let each_eval =
        facts.evals.iter().map(move |eval| render_eval_item(facts, &eval, pages.remove(&eval.id)));
    let each_node = facts.nodes.iter().map(|node| render_node_item(facts, node));
    let [begin_evals, end_evals] = split_at_placeholder(render_evals_frame(facts));
    let [begin_nodes, end_nodes] = split_at_placeholder(render_nodes_frame(facts));
    let pieces = once_with(move || render_overview(facts, extra, best.as_ref()))
        .chain(once_with(|| render_tree_section(facts)))
        .chain(once_with(|| render_scores_section(facts)))
        .chain(once(begin_evals))
        .chain(each_eval)
        .chain([end_evals, begin_nodes])
        .chain(each_node)
        .chain(once(end_nodes))
        .chain(once_with(|| render_spending_sections(facts)))
        .chain(once_with(move || render_checks_section(facts, extra)));
    once(begin).chain(pieces).chain(once(end)).map(Markup::into_string)
}

/// Returns the parts of a frame before and after the placeholder.
fn split_at_placeholder(frame: Markup) -> [Markup; 2] {
    let frame = frame.into_string();
    let (before, after) = frame.split_once(BODY_PLACEHOLDER).unwrap_or((&frame, ""));
    [before, after].map(|part| PreEscaped(part.to_owned()))
}

fn render_overview(
    facts: &Facts,
    extra: ReportExtra<'_>,
    best: Option<&SweepComparison>,
) -> Markup {
    html! {
        section #overview aria-label="Overview" {
            (render_run_head(facts))
            (render_trust(facts, extra.holdout))
            @if let Some(best) = compare::render_best_comparison(facts, best) { h2 { "The best against the root" } (best) }
        }
    }
}

fn render_tree_section(facts: &Facts) -> Markup {
    html! { section #tree-section aria-labelledby="h-tree" { h2 #h-tree { "Tree" } (render_tree(facts)) } }
}

fn render_scores_section(facts: &Facts) -> Markup {
    html! { section #scores aria-labelledby="h-scores" { h2 #h-scores { "Scores" } (scores::render_scores_by_eval(facts)) (scores::render_scores_by_depth(facts)) } }
}

fn render_spending_sections(facts: &Facts) -> Markup {
    html! {
        section #costs aria-labelledby="h-costs" { h2 #h-costs { "What answers took" } (render_costs(facts)) }
        section #slots aria-labelledby="h-slots" { h2 #h-slots { "What ran when" } (render_timeline(facts)) }
    }
}

fn render_checks_section(facts: &Facts, extra: ReportExtra<'_>) -> Markup {
    html! {
        section #checks aria-labelledby="h-checks" {
            h2 #h-checks { "Conversations" } (render_lineage(facts))
            h2 { "Validation" } (render_findings(facts.run.as_str(), extra.findings))
        }
    }
}

/// Renders the full pages of the most important evals; also returns the best one against the root.
fn render_eval_pages(
    facts: &Facts,
    material: &mut dyn FnMut(&Eval) -> PageMaterial,
) -> (BTreeMap<EvalId, Markup>, Option<SweepComparison>) {
    let best = facts.idea_chain(facts.best_node()).last().map(|eval| eval.id);
    let (mut pages, mut against) = (BTreeMap::new(), None);
    let mut room = MAX_EVAL_PAGES_BYTES;
    for eval in evals_by_weight(facts).into_iter().filter_map(|id| facts.eval(id)) {
        let material = material(&eval);
        let mut page = eval::render_eval_page(facts, &eval, &material);
        if best == Some(eval.id) {
            against = material.vs_root;
        }
        // The first page that does not fit ends the loop, so that later ones are not tried.
        let Some(left) = room.checked_sub(page.0.len()) else { break };
        room = left;
        page.0.shrink_to_fit();
        pages.insert(eval.id, page);
    }
    (pages, against)
}

/// Returns all evals: the best path first, then by status.
fn evals_by_weight(facts: &Facts) -> Vec<EvalId> {
    let path: BTreeSet<EvalId> =
        facts.idea_chain(facts.best_node()).iter().map(|eval| eval.id).collect();
    let weight = |eval: &Eval| (!path.contains(&eval.id), EvalStatus::from_eval(eval), eval.id);
    let mut evals: Vec<_> = facts.evals.iter().map(|eval| weight(&eval)).collect();
    evals.sort();
    evals.into_iter().map(|(.., id)| id).collect()
}

/// Renders the frame of the eval list.
fn render_evals_frame(facts: &Facts) -> Markup {
    let counts = EvalCounts::overall(facts);
    let seen = EvalStatus::ALL.into_iter().filter(|outcome| counts.get(*outcome) > 0);
    html! {
        section #evals aria-labelledby="h-evals" {
            h2 #h-evals { "Evals" }
            form.filter role="search" hidden {
                label { "Find " input type="search" name="find" placeholder="idea or id" autocomplete="off"; }
                @for outcome in seen {
                    label { input type="checkbox" name="outcome" value=(outcome) checked; (status_mark::status_icon(outcome)) (outcome) }
                }
                output aria-live="polite" {}
            }
            div.rows.head aria-hidden="true" {
                span { "eval" } span { "idea" } span { "outcome" } span { "gain" } span { "rank score" }
            }
            (PreEscaped(BODY_PLACEHOLDER))
            @if facts.evals.is_empty() { p.note { "None yet." } }
        }
    }
}

/// Renders an item of the eval list, in short if there is no page.
fn render_eval_item(facts: &Facts, eval: &Eval, page: Option<Markup>) -> Markup {
    html! {
        details.item id=(lookup::eval_name(eval)) data-outcome=(EvalStatus::from_eval(eval)) {
            summary.row { (eval::render_eval_row(eval)) }
            div.page { (page.unwrap_or_else(|| eval::render_brief_page(facts, eval))) }
        }
    }
}

/// Renders the frame of the node list.
fn render_nodes_frame(facts: &Facts) -> Markup {
    html! {
        section #nodes aria-labelledby="h-nodes" {
            h2 #h-nodes { "Nodes" }
            p.note { (format_count(facts.nodes.len(), "node")) ": code states that were kept." }
            (PreEscaped(BODY_PLACEHOLDER))
        }
    }
}

fn render_node_item(facts: &Facts, node: &Node) -> Markup {
    html! {
        details.item id=(lookup::node_name(node.id)) {
            summary.row { (node::render_node_row(facts, node)) }
            div.page { (node::render_node_page(facts, node)) }
        }
    }
}
