//! Renders the state of a run at a glance: outcome, best gain, costs, time and best path.

use super::visible_text::short_title;
use crate::best;
use crate::figure::format_change;
use crate::lookup;
use crate::outcome::EvalCounts;
use crate::show::ended_at;
use crate::words::{self, format_age, format_count};
use jiff::Timestamp;
use maud::{Markup, html};
use std::borrow::Cow;
use std::time::Duration;
use treebeam_core::facts::{Eval, Facts, RunPhase};
use treebeam_core::id::NodeId;

/// Renders the head of every page of a run.
#[must_use]
pub fn render_run_head(facts: &Facts) -> Markup {
    html! {
        p.phase { (phase_sentence(facts)) }
        dl.tiles {
            (render_tile("best rank score", &format_best_gain(facts), &best_origin(facts)))
            (render_tile("gain in the primary", &format_primary_gain(facts), &format_primary(facts)))
            (render_tile("evals", &facts.evals.len().to_string(), &EvalCounts::overall(facts).to_string()))
            (render_tile("spent", &words::format_cents(&facts.total_spend().total()), &format_calls(facts)))
            (render_tile("time", &format_run_time(facts), &format!("since {:.0}", facts.created_at)))
        }
        (render_best_path(facts))
    }
}

fn render_tile(name: &str, value: &str, note: &str) -> Markup {
    html! { div { dt { (name) } dd { strong { (value) } span { (note) } } } }
}

fn phase_sentence(facts: &Facts) -> String {
    let phase = words::describe_phase(facts);
    let mut letters = phase.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}

fn format_best_gain(facts: &Facts) -> String {
    format_change(
        facts.node(facts.best_node()).and_then(|node| lookup::node_rank_score(facts, node)),
    )
}

fn best_origin(facts: &Facts) -> String {
    match facts.best_node() {
        NodeId::ROOT => "no node ranks above the root".to_owned(),
        best => format!(
            "{}, {} from the root",
            lookup::node_name(best),
            format_count(facts.idea_chain(best).len(), "idea")
        ),
    }
}

fn best_eval(facts: &Facts) -> Option<Cow<'_, Eval>> {
    facts.node(facts.best_node()).and_then(|node| lookup::source_eval(facts, node))
}

fn format_primary_gain(facts: &Facts) -> String {
    let scored = best_eval(facts).and_then(|eval| lookup::candidate_score(&eval));
    format_change(scored.and_then(|scored| scored.vs_root.primary_delta))
}

fn format_primary(facts: &Facts) -> String {
    let score = &facts.settings.score;
    let direction = words::describe_direction(score.primary_direction());
    format!("{}, {direction}; a gain is positive", short_title(&score.primary))
}

fn format_calls(facts: &Facts) -> String {
    let total = facts.total_spend().total();
    format!(
        "{}, {}",
        format_count(total.calls, "call"),
        format_count(total.usage.total_tokens(), "token")
    )
}

/// Returns the time from the start of the run to its stop, or to its last outcome so far.
fn format_run_time(facts: &Facts) -> String {
    let last =
        || facts.evals.iter().filter_map(|eval| ended_at(&eval)).max().unwrap_or(facts.created_at);
    let end: Timestamp = match facts.phase {
        RunPhase::Stopped { at, .. } => at,
        RunPhase::Measuring | RunPhase::Searching | RunPhase::Promoting { .. } => last(),
    };
    format_age(Duration::try_from(end.duration_since(facts.created_at)).unwrap_or_default())
}

/// Renders the path from the root to the best node.
fn render_best_path(facts: &Facts) -> Markup {
    let nodes = best::best_path_nodes(facts);
    html! {
        @if nodes.len() > 1 {
            h2 { "Best path" }
            ol.path {
                @for node in nodes {
                    @let name = lookup::node_name(node.id);
                    li {
                        a href={ "#" (name) } { (name) }
                        " " (format_change(lookup::node_rank_score(facts, node)))
                        @if let Some(eval) = lookup::source_eval(facts, node) { span { (short_title(&eval.idea.title)) } }
                        @else { span { "the root" } }
                    }
                }
            }
        }
    }
}
