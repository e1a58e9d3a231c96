//! Renders how far to trust the best: selection, luck, the control group, and hold-out data. The
//! wording is that of the summary.

use super::render_holdout;
use crate::figure::format_change;
use crate::lookup;
use crate::trust::{
    LUCK_LIMITS, MEASURE_COLUMNS, TRUST_ADVICE, format_luck, luck_measures, trust_sentences,
};
use crate::versus;
use crate::words::format_count;
use maud::{Markup, html};
use treebeam_core::facts::Facts;
use treebeam_core::id::{CodePlace, NodeId};
use treebeam_core::num::Finite;
use treebeam_score::compare::ComparisonDetails;
use treebeam_score::luck::{DepthLuck, Luck, LuckEstimate};

/// Number of depths up to which the table of depths is open.
const MAX_OPEN_DEPTHS: usize = 12;

/// Renders the section with its heading; empty without figures and without a control group.
/// `unseen` is the best against the root, on the search's results and on hold-out results.
#[must_use]
pub fn render_trust(
    facts: &Facts,
    unseen: Option<(&ComparisonDetails, &ComparisonDetails)>,
) -> Markup {
    let (told, control) = (trust_sentences(facts), control_sentences(facts));
    if told.is_none() && control.is_empty() {
        return html! {};
    }
    let (luck, sentences) = told.unzip();
    let is_better = facts.best_node() != NodeId::ROOT;
    html! {
        h2 { "How far to trust the best" }
        @for sentence in sentences.unwrap_or_default() { p { (sentence) } }
        @if let (Some((seen, unseen)), true) = (unseen, is_better) {
            h3 { "On data that the search never saw" }
            (render_holdout(&facts.settings.score, seen, unseen))
        } @else if is_better { p { strong { (TRUST_ADVICE) } } }
        @for sentence in control { p.note { "Control: " (sentence) "." } }
        @if let Some(luck) = &luck {
            (render_luck_by_measure(luck))
            (render_luck_by_depth(facts, luck))
        }
    }
}

/// Returns sentences on whether the tree did better than the root alone; none without a control
/// group.
fn control_sentences(facts: &Facts) -> Vec<String> {
    versus::control_verdict(facts).into_iter().chain(versus::control_spending(facts)).collect()
}

fn render_luck_by_measure(luck: &Luck) -> Markup {
    let rows = luck_measures(luck);
    html! {
        @if !rows.is_empty() {
            h3 { "What luck would have shown" }
            div.scroll tabindex="0" role="group" aria-label="Measures of luck" {
                table.figures {
                    thead { tr { @for head in MEASURE_COLUMNS { th scope="col" { (head) } } } }
                    tbody {
                        @for [name, rest @ ..] in rows {
                            tr { th scope="row" { (name) } @for cell in rest { td { (cell) } } }
                        }
                    }
                }
            }
            p.note { (LUCK_LIMITS) }
        }
    }
}

fn render_luck_by_depth(facts: &Facts, luck: &Luck) -> Markup {
    let depths = luck.depths.len();
    html! {
        details open[depths <= MAX_OPEN_DEPTHS] {
            summary { "Depth by depth: " (format_count(depths, "depth")) }
            div.scroll tabindex="0" role="group" aria-label="Luck, depth by depth" {
                table.figures {
                    thead { tr {
                        @for head in ["depth", "candidates", "on the best path", "its gain on its parent", "luck by configurations", "by candidates"] {
                            th scope="col" { (head) }
                        }
                    } }
                    tbody { @for depth in &luck.depths { (render_depth_row(facts, luck, depth)) } }
                    tfoot { tr {
                        th scope="row" { "all" }
                        td { (luck.candidate_count()) }
                        td {}
                        td { (format_change(luck.gain)) }
                        @for by in [luck.by_configurations, luck.by_candidates] { td { (format_luck(by.yardstick().map(|by| by.expected))) } }
                    } }
                }
            }
        }
    }
}

fn render_depth_row(facts: &Facts, luck: &Luck, at: &DepthLuck) -> Markup {
    let step = at.step.and_then(|id| facts.eval(id));
    let gain = step
        .as_ref()
        .and_then(|eval| lookup::candidate_score(eval))
        .and_then(|scored| scored.vs_parent.primary_delta);
    let by = |by: LuckEstimate| Finite::new(by.yardstick()?.noise.get() * at.best_of.mean);
    html! {
        tr {
            th scope="row" { (at.depth) }
            td { (at.candidates) }
            td { @if let Some(id) = at.step { @let name = CodePlace::Candidate(id); a href={ "#" (name) } { (name) } } }
            td { @if step.is_some() { (format_change(gain)) } }
            @for measure in [luck.by_configurations, luck.by_candidates] { td { (format_luck(by(measure))) } }
        }
    }
}
