//! How a run stands, at a glance: its outcome, the best gain, what it took.

use super::text::title;
use crate::best;
use crate::figure::change;
use crate::outcome::Counts;
use crate::read;
use crate::show::ended_at;
use crate::words::{self, age, count};
use jiff::Timestamp;
use maud::{Markup, html};
use std::borrow::Cow;
use std::time::Duration;
use treebeam_core::facts::{Eval, Facts, Phase};
use treebeam_core::id::NodeId;

/// The head of every page of a run.
#[must_use]
pub fn head(facts: &Facts) -> Markup {
    html! {
        p.phase { (phase(facts)) }
        dl.tiles {
            (tile("best gain", &gain(facts), &where_from(facts)))
            (tile("gain in the primary", &primary(facts), &metric(facts)))
            (tile("evals", &facts.evals.len().to_string(), &Counts::overall(facts).to_string()))
            (tile("spent", &words::cents(&facts.spent().total()), &asked(facts)))
            (tile("time", &took(facts), &format!("since {:.0}", facts.created_at)))
        }
        (path(facts))
    }
}

fn tile(name: &str, value: &str, note: &str) -> Markup {
    html! { div { dt { (name) } dd { strong { (value) } span { (note) } } } }
}

fn phase(facts: &Facts) -> String {
    let phase = words::phase(facts);
    let mut letters = phase.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}

fn gain(facts: &Facts) -> String {
    change(facts.node(facts.best()).and_then(|node| read::node_rank_score(facts, node)))
}

fn where_from(facts: &Facts) -> String {
    match facts.best() {
        NodeId::ROOT => "no node ranks above the root".to_owned(),
        best => format!(
            "{}, {} from the root",
            read::node_name(best),
            count(facts.idea_chain(best).len(), "idea")
        ),
    }
}

fn best_eval(facts: &Facts) -> Option<Cow<'_, Eval>> {
    facts.node(facts.best()).and_then(|node| read::source(facts, node))
}

fn primary(facts: &Facts) -> String {
    let scored = best_eval(facts).and_then(|eval| read::scored(&eval));
    change(scored.and_then(|scored| scored.vs_root.primary_delta))
}

fn metric(facts: &Facts) -> String {
    let score = &facts.meaning.score;
    let direction = words::direction(score.primary_direction());
    format!("{}, {direction}; a gain is positive", title(&score.primary))
}

fn asked(facts: &Facts) -> String {
    let total = facts.spent().total();
    format!("{}, {}", count(total.calls, "call"), count(total.usage.total(), "token"))
}

/// From the beginning to the stop, or to the last outcome so far.
fn took(facts: &Facts) -> String {
    let last =
        || facts.evals.iter().filter_map(|eval| ended_at(&eval)).max().unwrap_or(facts.created_at);
    let end: Timestamp = match facts.phase {
        Phase::Stopped { at, .. } => at,
        Phase::Measuring | Phase::Searching | Phase::Promoting { .. } => last(),
    };
    age(Duration::try_from(end.duration_since(facts.created_at)).unwrap_or_default())
}

/// From the root to the best node.
fn path(facts: &Facts) -> Markup {
    let nodes = best::path(facts);
    html! {
        @if nodes.len() > 1 {
            h2 { "Best path" }
            ol.path {
                @for node in nodes {
                    @let name = read::node_name(node.id);
                    li {
                        a href={ "#" (name) } { (name) }
                        " " (change(read::node_rank_score(facts, node)))
                        @if let Some(eval) = read::source(facts, node) { span { (title(&eval.idea.title)) } }
                        @else { span { "the root" } }
                    }
                }
            }
        }
    }
}
