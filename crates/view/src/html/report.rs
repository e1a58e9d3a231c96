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
use maud::{Markup, html};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use treebeam_core::audit::Finding;
use treebeam_core::facts::{Eval, Facts};
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

/// The file. Each eval is looked up with `material` once, when its page is made.
pub fn report(
    facts: &Facts,
    extra: Extra<'_>,
    material: &mut dyn FnMut(&Eval) -> Material,
) -> String {
    let (pages, best) = pages(facts, material);
    let name = format!("Run {}", title(facts.run.as_str()));
    let body = html! {
        section #overview aria-label="Overview" {
            (head(facts))
            (trust(facts, extra.holdout))
            @if let Some(best) = compare::best(facts, best.as_ref()) { h2 { "The best against the root" } (best) }
        }
        section #tree-section aria-labelledby="h-tree" { h2 #h-tree { "Tree" } (tree(facts)) }
        section #scores aria-labelledby="h-scores" { h2 #h-scores { "Scores" } (scores::by_eval(facts)) (scores::by_depth(facts)) }
        (evals(facts, &pages))
        (nodes(facts))
        section #costs aria-labelledby="h-costs" { h2 #h-costs { "What answers took" } (costs(facts)) }
        section #slots aria-labelledby="h-slots" { h2 #h-slots { "What ran when" } (slots(facts)) }
        section #checks aria-labelledby="h-checks" {
            h2 #h-checks { "Conversations" } (lineage(facts))
            h2 { "Validation" } (checked(facts.run.as_str(), extra.findings))
        }
    };
    page(&name, Assets::Inside, &SECTIONS, &body).into_string()
}

/// The page of every eval, and the best one against the root.
fn pages(
    facts: &Facts,
    material: &mut dyn FnMut(&Eval) -> Material,
) -> (BTreeMap<EvalId, Markup>, Option<Against>) {
    let best = facts.idea_chain(facts.best()).last().map(|eval| eval.id);
    let (mut pages, mut against) = (BTreeMap::new(), None);
    let mut room = Some(MOST_BYTES);
    for eval in by_weight(facts) {
        let page = room.map(|_| material(&eval)).map(|material| {
            let page = eval::page(facts, &eval, &material);
            if best == Some(eval.id) {
                against = material.vs_root;
            }
            page
        });
        // The first one that does not fit is the last one that is tried.
        room = room.zip(page.as_ref()).and_then(|(room, page)| room.checked_sub(page.0.len()));
        let page = page.filter(|_| room.is_some());
        pages.insert(eval.id, page.unwrap_or_else(|| eval::brief_page(facts, &eval)));
    }
    (pages, against)
}

/// The best path first, then by what became of them.
fn by_weight(facts: &Facts) -> Vec<Cow<'_, Eval>> {
    let path: BTreeSet<EvalId> =
        facts.idea_chain(facts.best()).iter().map(|eval| eval.id).collect();
    let mut evals: Vec<_> = facts.evals.iter().collect();
    evals.sort_by_key(|eval| (!path.contains(&eval.id), Outcome::of(eval), eval.id));
    evals
}

fn evals(facts: &Facts, pages: &BTreeMap<EvalId, Markup>) -> Markup {
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
                span { "eval" } span { "idea" } span { "outcome" } span { "primary" } span { "rank score" }
            }
            @for eval in facts.evals.iter() {
                details.item id=(read::eval_name(&eval)) data-outcome=(Outcome::of(&eval)) {
                    summary.row { (eval::row(&eval)) }
                    div.page { @if let Some(page) = pages.get(&eval.id) { (page) } }
                }
            }
            @if facts.evals.is_empty() { p.note { "None yet." } }
        }
    }
}

fn nodes(facts: &Facts) -> Markup {
    html! {
        section #nodes aria-labelledby="h-nodes" {
            h2 #h-nodes { "Nodes" }
            p.note { (count(facts.nodes.len(), "node")) ": code states that were kept." }
            @for each in &facts.nodes {
                details.item id=(read::node_name(each.id)) {
                    summary.row { (node::row(facts, each)) }
                    div.page { (node::page(facts, each)) }
                }
            }
        }
    }
}
