//! Any two nodes or evals side by side: what is on record of each, and the second against the first from their results.

use super::material::Against;
use super::metrics::{Column, metrics};
use super::paired;
use super::text::title;
use crate::figure::{NONE, change};
use crate::line::REASON_CHARS;
use crate::outcome::{Outcome, brief_reason};
use crate::read;
use crate::score::verdict;
use crate::words;
use maud::{Markup, html};
use std::borrow::Cow;
use treebeam_core::facts::{Eval, Facts, Node};
use treebeam_core::id::{NodeId, Place};

/// A node or an eval.
enum Side<'a> {
    Node(&'a Node),
    Eval(Box<Eval>),
}

impl<'a> Side<'a> {
    fn of(facts: &'a Facts, place: Place) -> Option<Self> {
        match place {
            Place::Node(id) => facts.node(id).map(Self::Node),
            Place::Candidate(id) => {
                facts.eval(id).map(|eval| Self::Eval(Box::new(eval.into_owned())))
            }
        }
    }

    /// The eval that it is, or was; none for the root.
    fn eval(&'a self, facts: &'a Facts) -> Option<Cow<'a, Eval>> {
        match self {
            Self::Node(node) => read::source(facts, node),
            Self::Eval(eval) => Some(Cow::Borrowed(eval)),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Node(node) => read::node_name(node.id),
            Self::Eval(eval) => read::eval_name(eval),
        }
    }

    fn commit(&self) -> Option<String> {
        match self {
            Self::Node(node) => Some(node.commit.short().to_string()),
            Self::Eval(eval) => eval.work().map(|work| work.commit.short().to_string()),
        }
    }

    fn score(&self, facts: &Facts) -> String {
        change(match self {
            Self::Node(node) => read::node_rank_score(facts, node),
            Self::Eval(eval) => read::rank_score(eval),
        })
    }

    /// The ideas between the root and it.
    fn ideas(&self, facts: &Facts) -> Vec<String> {
        let (above, own) = match self {
            Self::Node(node) => (node.id, None),
            Self::Eval(eval) => (eval.parent, Some(Cow::Borrowed(&**eval))),
        };
        let chain = facts.idea_chain(above).into_iter().chain(own);
        chain
            .map(|eval| format!("{} {}", read::eval_name(&eval), title(&eval.idea.title)))
            .collect()
    }
}

/// The two side by side, and the second against the first where their results are at hand; nothing where there is no such thing.
#[must_use]
pub fn compare(
    facts: &Facts,
    first: Place,
    second: Place,
    against: Option<&Against>,
) -> Option<Markup> {
    let sides = [Side::of(facts, first)?, Side::of(facts, second)?];
    let name = sides.each_ref().map(Side::name);
    Some(html! {
        div.scroll tabindex="0" role="group" aria-label="Side by side" { (table(facts, &sides)) }
        @if let (Some(against), [first, second]) = (against, &name) {
            h3 { (second) " against " (first) ", configuration by configuration" }
            div.pair {
                section.against {
                    (paired::plot(first, &against.changes, against.details.comparison.paired))
                    p.note { @for line in verdict::paired_words(against.details.comparison.paired) { (line) br; } }
                }
                section.against { (metrics(&facts.meaning.score, &[Column { name: first, details: &against.details }])) }
            }
        }
    })
}

fn table(facts: &Facts, sides: &[Side<'_>; 2]) -> Markup {
    let of = |value: &dyn Fn(&Side<'_>) -> String| sides.each_ref().map(value);
    let eval = |side: &Side<'_>, value: &dyn Fn(&Eval) -> String| {
        side.eval(facts).map_or_else(|| NONE.to_owned(), |eval| value(&eval))
    };
    let root = |eval: &Eval| read::scored(eval).and_then(|scored| scored.vs_root.primary_delta);
    let rows = [
        ("outcome", of(&|side| eval(side, &|eval| Outcome::of(eval).to_string()))),
        ("why", of(&|side| eval(side, &|eval| brief_reason(eval, REASON_CHARS)))),
        ("rank score", of(&|side| side.score(facts))),
        ("gain against the root", of(&|side| eval(side, &|eval| change(root(eval))))),
        ("commit", of(&|side| side.commit().unwrap_or_else(|| NONE.to_owned()))),
        ("answers", of(&|side| eval(side, &|eval| words::bill(&eval.spent().total())))),
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
                tr { th scope="row" { "ideas" } @for side in sides { td { (ideas(facts, side)) } } }
            }
        }
    }
}

fn ideas(facts: &Facts, side: &Side<'_>) -> Markup {
    let ideas = side.ideas(facts);
    html! {
        @if ideas.is_empty() { "none: the root" }
        @for idea in ideas { div { (idea) } }
    }
}

/// The best node against the root.
pub(crate) fn best(facts: &Facts, against: Option<&Against>) -> Option<Markup> {
    let best = Some(facts.best()).filter(|best| *best != NodeId::ROOT)?;
    compare(facts, Place::Node(NodeId::ROOT), Place::Node(best), against)
}
