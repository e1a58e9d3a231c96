//! Renders two nodes or evals side by side: their records, and the second against the first by
//! their results.

use super::metrics::{MetricsColumn, render_metrics};
use super::page_material::SweepComparison;
use super::paired;
use super::visible_text::short_title;
use crate::figure::{NOT_AVAILABLE, format_change};
use crate::lookup;
use crate::outcome::{EvalStatus, brief_reason};
use crate::safe_text::MAX_SHOWN_REASON_CHARS;
use crate::score::verdict;
use crate::words;
use maud::{Markup, html};
use std::borrow::Cow;
use treebeam_core::facts::{Eval, Facts, Node};
use treebeam_core::id::{CodePlace, NodeId};

/// A node or an eval that is compared.
enum ComparedPlace<'a> {
    Node(&'a Node),
    Eval(Box<Eval>),
}

impl<'a> ComparedPlace<'a> {
    fn from_place(facts: &'a Facts, place: CodePlace) -> Option<Self> {
        match place {
            CodePlace::Node(id) => facts.node(id).map(Self::Node),
            CodePlace::Candidate(id) => {
                facts.eval(id).map(|eval| Self::Eval(Box::new(eval.into_owned())))
            }
        }
    }

    /// Returns the eval itself or the one that the node was promoted from; `None` for the root.
    fn eval(&'a self, facts: &'a Facts) -> Option<Cow<'a, Eval>> {
        match self {
            Self::Node(node) => lookup::source_eval(facts, node),
            Self::Eval(eval) => Some(Cow::Borrowed(eval)),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Node(node) => lookup::node_name(node.id),
            Self::Eval(eval) => lookup::eval_name(eval),
        }
    }

    fn commit(&self) -> Option<String> {
        match self {
            Self::Node(node) => Some(node.commit.short_name().to_string()),
            Self::Eval(eval) => eval.candidate().map(|work| work.commit.short_name().to_string()),
        }
    }

    fn format_score(&self, facts: &Facts) -> String {
        format_change(match self {
            Self::Node(node) => lookup::node_rank_score(facts, node),
            Self::Eval(eval) => lookup::rank_score(eval),
        })
    }

    /// Returns the titles of the ideas between the root and this place.
    fn idea_titles(&self, facts: &Facts) -> Vec<String> {
        let (above, own) = match self {
            Self::Node(node) => (node.id, None),
            Self::Eval(eval) => (eval.parent, Some(Cow::Borrowed(&**eval))),
        };
        let chain = facts.idea_chain(above).into_iter().chain(own);
        chain
            .map(|eval| format!("{} {}", lookup::eval_name(&eval), short_title(&eval.idea.title)))
            .collect()
    }
}

/// Renders two places side by side, with a comparison of their results if given; `None` if a place
/// does not exist.
#[must_use]
pub fn render_comparison(
    facts: &Facts,
    first: CodePlace,
    second: CodePlace,
    against: Option<&SweepComparison>,
) -> Option<Markup> {
    let sides =
        [ComparedPlace::from_place(facts, first)?, ComparedPlace::from_place(facts, second)?];
    let name = sides.each_ref().map(ComparedPlace::name);
    Some(html! {
        div.scroll tabindex="0" role="group" aria-label="Side by side" { (render_side_by_side(facts, &sides)) }
        @if let (Some(against), [first, second]) = (against, &name) {
            h3 { (second) " against " (first) ", configuration by configuration" }
            div.pair {
                section.against {
                    (paired::render_paired_plot(first, &against.changes, against.details.comparison.paired))
                    p.note { @for line in verdict::paired_sentences(against.details.comparison.paired) { (line) br; } }
                }
                section.against { (render_metrics(&facts.settings.score, &[MetricsColumn { name: first, details: &against.details }])) }
            }
        }
    })
}

fn render_side_by_side(facts: &Facts, sides: &[ComparedPlace<'_>; 2]) -> Markup {
    let of = |value: &dyn Fn(&ComparedPlace<'_>) -> String| sides.each_ref().map(value);
    let eval = |side: &ComparedPlace<'_>, value: &dyn Fn(&Eval) -> String| {
        side.eval(facts).map_or_else(|| NOT_AVAILABLE.to_owned(), |eval| value(&eval))
    };
    let root =
        |eval: &Eval| lookup::candidate_score(eval).and_then(|scored| scored.vs_root.primary_delta);
    let rows = [
        ("outcome", of(&|side| eval(side, &|eval| EvalStatus::from_eval(eval).to_string()))),
        ("why", of(&|side| eval(side, &|eval| brief_reason(eval, MAX_SHOWN_REASON_CHARS)))),
        ("rank score", of(&|side| side.format_score(facts))),
        ("gain against the root", of(&|side| eval(side, &|eval| format_change(root(eval))))),
        ("commit", of(&|side| side.commit().unwrap_or_else(|| NOT_AVAILABLE.to_owned()))),
        (
            "answers",
            of(&|side| eval(side, &|eval| words::describe_bill(&eval.total_spend().total()))),
        ),
    ];
    html! {
        table.sides {
            thead { tr {
                th scope="col" { span.away { "what" } }
                @for side in sides { th scope="col" { a href={ "#" (side.name()) } { (side.name()) } } }
            } }
            tbody {
                @for (name, values) in rows {
                    tr { th scope="row" { (name) } @for value in values { td { (value) } } }
                }
                tr { th scope="row" { "ideas" } @for side in sides { td { (render_ideas(facts, side)) } } }
            }
        }
    }
}

fn render_ideas(facts: &Facts, side: &ComparedPlace<'_>) -> Markup {
    let ideas = side.idea_titles(facts);
    html! {
        @if ideas.is_empty() { "none: the root" }
        @for idea in ideas { div { (idea) } }
    }
}

/// Renders the best node against the root.
pub(crate) fn render_best_comparison(
    facts: &Facts,
    against: Option<&SweepComparison>,
) -> Option<Markup> {
    let best = Some(facts.best_node()).filter(|best| *best != NodeId::ROOT)?;
    render_comparison(facts, CodePlace::Node(NodeId::ROOT), CodePlace::Node(best), against)
}
