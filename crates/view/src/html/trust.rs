//! How far to trust the best: what it was picked from, what luck alone would have shown, the control group, and data that the
//! search never saw. The words are those of the summary.

use super::holdout;
use crate::figure::change;
use crate::read;
use crate::trust::{ADVICE, LIMITS, MEASURES, about, measures, sentences};
use crate::versus;
use crate::words::count;
use maud::{Markup, html};
use treebeam_core::facts::Facts;
use treebeam_core::id::{NodeId, Place};
use treebeam_core::luck::{DepthLuck, Luck, Measure};
use treebeam_core::num::Finite;
use treebeam_core::score::Details;

/// More depths than this are shown when they are asked for.
const FEW: usize = 12;

/// The section, with its heading; empty where there are neither figures nor a control group. The best against the root on
/// results that the search saw and on those that it never saw, where that is known.
#[must_use]
pub fn trust(facts: &Facts, unseen: Option<(&Details, &Details)>) -> Markup {
    let (told, control) = (sentences(facts), control(facts));
    if told.is_none() && control.is_empty() {
        return html! {};
    }
    let (luck, sentences) = told.unzip();
    let is_better = facts.best() != NodeId::ROOT;
    html! {
        h2 { "How far to trust the best" }
        @for sentence in sentences.unwrap_or_default() { p { (sentence) } }
        @if let (Some((seen, unseen)), true) = (unseen, is_better) {
            h3 { "On data that the search never saw" }
            (holdout(&facts.meaning.score, seen, unseen))
        } @else if is_better { p { strong { (ADVICE) } } }
        @for sentence in control { p.note { "Control: " (sentence) "." } }
        @if let Some(luck) = &luck {
            (by_measure(luck))
            (by_depth(facts, luck))
        }
    }
}

/// Whether the tree did better than the root alone, in sentences; none for a run without a control group.
fn control(facts: &Facts) -> Vec<String> {
    versus::verdict(facts).into_iter().chain(versus::spending(facts)).collect()
}

fn by_measure(luck: &Luck) -> Markup {
    let rows = measures(luck);
    html! {
        @if !rows.is_empty() {
            h3 { "What luck would have shown" }
            div.scroll tabindex="0" role="group" aria-label="Measures of luck" {
                table.figures {
                    thead { tr { @for head in MEASURES { th scope="col" { (head) } } } }
                    tbody {
                        @for [name, rest @ ..] in rows {
                            tr { th scope="row" { (name) } @for cell in rest { td { (cell) } } }
                        }
                    }
                }
            }
            p.note { (LIMITS) }
        }
    }
}

fn by_depth(facts: &Facts, luck: &Luck) -> Markup {
    let depths = luck.depths.len();
    html! {
        details open[depths <= FEW] {
            summary { "Depth by depth: " (count(depths, "depth")) }
            div.scroll tabindex="0" role="group" aria-label="Luck, depth by depth" {
                table.figures {
                    thead { tr {
                        @for head in ["depth", "candidates", "on the best path", "its gain on its parent", "luck by configurations", "by candidates"] {
                            th scope="col" { (head) }
                        }
                    } }
                    tbody { @for depth in &luck.depths { (row(facts, luck, depth)) } }
                    tfoot { tr {
                        th scope="row" { "all" }
                        td { (luck.candidates()) }
                        td {}
                        td { (change(luck.gain)) }
                        @for by in [luck.by_configurations, luck.by_candidates] { td { (about(by.yardstick().map(|by| by.expected))) } }
                    } }
                }
            }
        }
    }
}

fn row(facts: &Facts, luck: &Luck, at: &DepthLuck) -> Markup {
    let step = at.step.and_then(|id| facts.eval(id));
    let gain = step
        .as_ref()
        .and_then(|eval| read::scored(eval))
        .and_then(|scored| scored.vs_parent.primary_delta);
    let by = |by: Measure| Finite::new(by.yardstick()?.noise.get() * at.best_of.mean);
    html! {
        tr {
            th scope="row" { (at.depth) }
            td { (at.candidates) }
            td { @if let Some(id) = at.step { @let name = Place::Candidate(id); a href={ "#" (name) } { (name) } } }
            td { @if step.is_some() { (change(gain)) } }
            @for measure in [luck.by_configurations, luck.by_candidates] { td { (about(by(measure))) } }
        }
    }
}
