//! `report.html`: the whole run in one file that needs nothing else. What matters most is shown whole, best path first; once the
//! page is large enough, the other evals are shown in short.

use super::material::Against;
use super::page::{Assets, page};
use super::text::title;
use super::{
    Material, checked, compare, costs, eval, head, lineage, mark, node, scores, slots, tree, trust,
};
use crate::outcome::{Counts, Outcome};
use crate::read;
use crate::words::count;
use maud::{Markup, PreEscaped, html};
use std::collections::{BTreeMap, BTreeSet};
use std::iter::{once, once_with};
use treebeam_core::audit::Finding;
use treebeam_core::facts::{Eval, Facts, Node};
use treebeam_core::id::EvalId;
use treebeam_core::score::Details;

/// How much the pages of evals may take together before the others are shown in short.
pub const MOST_BYTES: usize = 8 << 20;

/// What is known of a run beyond its record and its evals.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extra<'a> {
    /// What a validation found; none where nobody has looked.
    pub findings: Option<&'a [Finding]>,
    /// The best against the root, on results that the search saw and on those that it never saw.
    pub holdout: Option<(&'a Details, &'a Details)>,
}

const SECTIONS: [(&str, &str); 8] = [
    ("overview", "Overview"),
    ("tree-section", "Tree"),
    ("scores", "Scores"),
    ("evals", "Evals"),
    ("nodes", "Nodes"),
    ("costs", "Costs"),
    ("slots", "Time line"),
    ("checks", "Checks"),
];

/// Stands in a frame for what is put into it piece by piece; no text of a run has it.
const HOLE: &str = "\0";

/// The file in pieces, so that it is never in memory as a whole. Each eval is looked up with `material` once, for its page.
pub fn report<'a>(
    facts: &'a Facts,
    extra: Extra<'a>,
    material: &mut dyn FnMut(&Eval) -> Material,
) -> impl Iterator<Item = String> + 'a {
    let (mut pages, best) = pages(facts, material);
    let name = format!("Run {}", title(facts.run.as_str()));
    let hole = PreEscaped(HOLE.to_owned());
    let [begin, end] = around(page(&name, Assets::Inside, &SECTIONS, &hole));
    let each_eval =
        facts.evals.iter().map(move |eval| eval_item(facts, &eval, pages.remove(&eval.id)));
    let each_node = facts.nodes.iter().map(|node| node_item(facts, node));
    let [begin_evals, end_evals] = around(evals(facts));
    let [begin_nodes, end_nodes] = around(nodes(facts));
    let pieces = once_with(move || overview(facts, extra, best.as_ref()))
        .chain(once_with(|| grown(facts)))
        .chain(once_with(|| scored(facts)))
        .chain(once(begin_evals))
        .chain(each_eval)
        .chain([end_evals, begin_nodes])
        .chain(each_node)
        .chain(once(end_nodes))
        .chain(once_with(|| took(facts)))
        .chain(once_with(move || checks(facts, extra)));
    once(begin).chain(pieces).chain(once(end)).map(Markup::into_string)
}

/// What stands before and after the hole of a frame.
fn around(frame: Markup) -> [Markup; 2] {
    let frame = frame.into_string();
    let (before, after) = frame.split_once(HOLE).unwrap_or((&frame, ""));
    [before, after].map(|part| PreEscaped(part.to_owned()))
}

fn overview(facts: &Facts, extra: Extra<'_>, best: Option<&Against>) -> Markup {
    html! {
        section #overview aria-label="Overview" {
            (head(facts))
            (trust(facts, extra.holdout))
            @if let Some(best) = compare::best(facts, best) { h2 { "The best against the root" } (best) }
        }
    }
}

fn grown(facts: &Facts) -> Markup {
    html! { section #tree-section aria-labelledby="h-tree" { h2 #h-tree { "Tree" } (tree(facts)) } }
}

fn scored(facts: &Facts) -> Markup {
    html! { section #scores aria-labelledby="h-scores" { h2 #h-scores { "Scores" } (scores::by_eval(facts)) (scores::by_depth(facts)) } }
}

fn took(facts: &Facts) -> Markup {
    html! {
        section #costs aria-labelledby="h-costs" { h2 #h-costs { "What answers took" } (costs(facts)) }
        section #slots aria-labelledby="h-slots" { h2 #h-slots { "What ran when" } (slots(facts)) }
    }
}

fn checks(facts: &Facts, extra: Extra<'_>) -> Markup {
    html! {
        section #checks aria-labelledby="h-checks" {
            h2 #h-checks { "Conversations" } (lineage(facts))
            h2 { "Validation" } (checked(facts.run.as_str(), extra.findings))
        }
    }
}

/// The pages of the evals that are shown whole, and the best one against the root.
fn pages(
    facts: &Facts,
    material: &mut dyn FnMut(&Eval) -> Material,
) -> (BTreeMap<EvalId, Markup>, Option<Against>) {
    let best = facts.idea_chain(facts.best()).last().map(|eval| eval.id);
    let (mut pages, mut against) = (BTreeMap::new(), None);
    let mut room = MOST_BYTES;
    for eval in by_weight(facts).into_iter().filter_map(|id| facts.eval(id)) {
        let material = material(&eval);
        let mut page = eval::page(facts, &eval, &material);
        if best == Some(eval.id) {
            against = material.vs_root;
        }
        // The first one that does not fit is the last one that is tried.
        let Some(left) = room.checked_sub(page.0.len()) else { break };
        room = left;
        page.0.shrink_to_fit();
        pages.insert(eval.id, page);
    }
    (pages, against)
}

/// The best path first, then by what became of them.
fn by_weight(facts: &Facts) -> Vec<EvalId> {
    let path: BTreeSet<EvalId> =
        facts.idea_chain(facts.best()).iter().map(|eval| eval.id).collect();
    let weight = |eval: &Eval| (!path.contains(&eval.id), Outcome::of(eval), eval.id);
    let mut evals: Vec<_> = facts.evals.iter().map(|eval| weight(&eval)).collect();
    evals.sort();
    evals.into_iter().map(|(.., id)| id).collect()
}

/// The frame of all evals.
fn evals(facts: &Facts) -> Markup {
    let counts = Counts::overall(facts);
    let seen = Outcome::ALL.into_iter().filter(|outcome| counts.get(*outcome) > 0);
    html! {
        section #evals aria-labelledby="h-evals" {
            h2 #h-evals { "Evals" }
            form.filter role="search" hidden {
                label { "Find " input type="search" name="find" placeholder="idea or id" autocomplete="off"; }
                @for outcome in seen {
                    label { input type="checkbox" name="outcome" value=(outcome) checked; (mark::icon(outcome)) (outcome) }
                }
                output aria-live="polite" {}
            }
            div.rows.head aria-hidden="true" {
                span { "eval" } span { "idea" } span { "outcome" } span { "gain" } span { "rank score" }
            }
            (PreEscaped(HOLE))
            @if facts.evals.is_empty() { p.note { "None yet." } }
        }
    }
}

/// One of them, in short where it has no page.
fn eval_item(facts: &Facts, eval: &Eval, page: Option<Markup>) -> Markup {
    html! {
        details.item id=(read::eval_name(eval)) data-outcome=(Outcome::of(eval)) {
            summary.row { (eval::row(eval)) }
            div.page { (page.unwrap_or_else(|| eval::brief_page(facts, eval))) }
        }
    }
}

/// The frame of all nodes.
fn nodes(facts: &Facts) -> Markup {
    html! {
        section #nodes aria-labelledby="h-nodes" {
            h2 #h-nodes { "Nodes" }
            p.note { (count(facts.nodes.len(), "node")) ": code states that were kept." }
            (PreEscaped(HOLE))
        }
    }
}

fn node_item(facts: &Facts, node: &Node) -> Markup {
    html! {
        details.item id=(read::node_name(node.id)) {
            summary.row { (node::row(facts, node)) }
            div.page { (node::page(facts, node)) }
        }
    }
}
