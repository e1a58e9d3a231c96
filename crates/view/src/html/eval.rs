//! Renders one eval: idea, status with reason, comparisons, metrics, gate checks and documents.
//! Renders a row for lists and the page, in full or in short. Shows the record and the caller's
//! material; decides nothing.

use super::diff::render_diff;
use super::metrics::{MetricsColumn, render_metrics};
use super::page_material::{DocumentKind, PageMaterial, RunDocument, SweepComparison};
use super::paired;
use super::status_mark;
use super::visible_text::{VisibleText, short_line, short_title};
use crate::figure::format_change;
use crate::lookup;
use crate::markdown::percent_encode;
use crate::outcome::{EvalStatus, brief_reason};
use crate::primary::primary_change;
use crate::safe_text::{MAX_SHOWN_REASON_CHARS, shorten_text};
use crate::score::verdict;
use crate::show::{ended_at, place_in_beam, started_at};
use crate::words::{self, format_age, format_count};
use maud::{Markup, html};
use std::time::Duration;
use treebeam_core::event::EvalFailure;
use treebeam_core::evidence::{CandidateScore, Comparison};
use treebeam_core::facts::{Eval, Facts, Stage};
use treebeam_core::gate::{GateCheck, GateVerdict};
use treebeam_core::policy::ScorePolicy;

/// Maximum length of a shown failure; `treebeam show` has the whole message.
const MAX_FAILURE_CHARS: usize = 2_000;

/// Renders a list row of an eval: name, idea, status, gain and rank score.
#[must_use]
pub fn render_eval_row(eval: &Eval) -> Markup {
    let outcome = EvalStatus::from_eval(eval);
    let scored = lookup::candidate_score(eval);
    html! {
        span.id { (status_mark::status_icon(outcome)) (lookup::eval_name(eval)) }
        span.idea { (short_title(&eval.idea.title)) }
        span class={ "outcome " (status_mark::status_class(outcome)) } { (outcome) }
        span.figure title="gain in the primary metric against its parent" { (format_change(scored.and_then(|scored| scored.vs_parent.primary_delta))) }
        span.figure title="rank score: against the root" { (format_change(lookup::rank_score(eval))) }
    }
}

/// Renders the full page of an eval.
#[must_use]
pub fn render_eval_page(facts: &Facts, eval: &Eval, material: &PageMaterial) -> Markup {
    html! {
        (render_record(facts, eval))
        @if let Some(scored) = lookup::candidate_score(eval) { (render_comparisons(&scored, &facts.settings.score, material)) }
        (render_metrics_section(facts, material))
        @if let Some(verdict) = eval.gate_verdict() { (render_gate(&verdict)) }
        (render_documents(material))
    }
}

/// Renders the short page of an eval: its record, the failed check, and where the rest is found.
#[must_use]
pub fn render_brief_page(facts: &Facts, eval: &Eval) -> Markup {
    let verdict = eval.gate_verdict();
    let failed = verdict.as_ref().and_then(GateVerdict::first_failed_check);
    html! {
        (render_record(facts, eval))
        @if let Some(check) = failed { ul.checks { (render_check(check)) } }
        p.note {
            "In short, to keep this page small. "
            @if let Some(folder) = lookup::experiment_folder(eval) {
                "Its files: " a href={ (percent_encode(&folder)) "/" } { (folder) } "; "
            }
            "all figures: " code { "treebeam show " (facts.run) " " (lookup::eval_name(eval)) } "."
        }
    }
}

/// Renders the record of an eval as names and values.
fn render_record(facts: &Facts, eval: &Eval) -> Markup {
    let parent = lookup::node_name(eval.parent);
    html! {
        dl.facts {
            dt { "outcome" }
            dd {
                (status_with_reason(eval))
                @if let Some(node) = lookup::promoted_to(eval).map(lookup::node_name) {
                    ", now " a href={ "#" (node) } { (node) }
                    @if let Some(place) = place_in_beam(facts, eval) { ", number " (place) " in the beam" }
                }
            }
            (render_failures(eval))
            dt { "tried on" } dd { a href={ "#" (parent) } { (parent) } ", at depth " (eval.depth) }
            dt { "idea" } dd { a href=(percent_encode(eval.idea.path.as_str())) { (eval.idea.path) } ", " (lookup::idea_source(eval)) }
            @if let Some(work) = eval.candidate() {
                dt { "code" }
                dd {
                    code { (work.commit.short_name()) } ", " (format_count(work.files_changed, "file")) " changed in "
                    (format_count(work.rounds, "round")) " of the coder"
                    @if let Some(original) = work.same_code_as { ", " (words::describe_same_code(original)) }
                }
            }
            @if let Some(times) = format_times(eval) { dt { "time" } dd { (times) } }
            (render_answers(eval))
        }
    }
}

/// Returns status and reason, without repeating the status word.
fn status_with_reason(eval: &Eval) -> String {
    let (outcome, why) = (EvalStatus::from_eval(eval), brief_reason(eval, MAX_SHOWN_REASON_CHARS));
    if why.starts_with(outcome.word()) { why } else { format!("{outcome}: {why}") }
}

fn render_failures(eval: &Eval) -> Markup {
    let last = if let Stage::Failed { failure, .. } = &eval.stage { Some(failure) } else { None };
    html! {
        @for failure in &eval.failures { dt { "before" } dd { (render_failure(failure)) } }
        @if let Some(failure) = last { dt { "failure" } dd { (render_failure(failure)) } }
    }
}

fn render_failure(failure: &EvalFailure) -> Markup {
    let message = shorten_text(&failure.message, MAX_FAILURE_CHARS);
    html! { (failure.stage) ", " (failure.kind) ": " span.foreign { (VisibleText(&message)) } }
}

fn format_times(eval: &Eval) -> Option<String> {
    let begun = started_at(eval)?;
    let Some(ended) = ended_at(eval) else { return Some(format!("begun at {begun:.0}")) };
    let took = Duration::try_from(ended.duration_since(begun)).unwrap_or_default();
    Some(format!("{begun:.0} to {ended:.0}, {}", format_age(took)))
}

fn render_answers(eval: &Eval) -> Markup {
    let bills = words::describe_bills(&eval.total_spend());
    html! {
        @if !bills.is_empty() {
            dt { "answers" } dd { @for line in bills { div { (line) } } }
        }
    }
}

fn render_comparisons(
    scored: &CandidateScore,
    policy: &ScorePolicy,
    material: &PageMaterial,
) -> Markup {
    html! {
        div.pair {
            (render_comparison_with("its parent", &scored.vs_parent, policy, material.vs_parent.as_ref()))
            (render_comparison_with("the root", &scored.vs_root, policy, material.vs_root.as_ref()))
        }
    }
}

fn render_comparison_with(
    name: &str,
    found: &Comparison,
    policy: &ScorePolicy,
    drawn: Option<&SweepComparison>,
) -> Markup {
    let recommendation = &found.recommendation;
    let explore =
        if recommendation.should_explore { "worth exploring" } else { "not worth exploring" };
    let reasons: Vec<_> = recommendation.reasons.iter().map(ToString::to_string).collect();
    html! {
        section.against {
            h3 { "Against " (name) }
            p {
                strong { (recommendation.grade) } ", score " (format_change(lookup::comparison_score(found))) ": " (explore)
                " (" (short_line(&reasons.join("; "), MAX_SHOWN_REASON_CHARS)) "). " (short_title(&policy.primary)) " " (primary_change(policy, found)) "; gain " (format_change(found.primary_delta)) "; "
                (found.candidate_rows_used) " rows, baseline " (found.baseline_rows_used) "."
            }
            @if let Some(drawn) = drawn { (paired::render_paired_plot(name, &drawn.changes, found.paired)) }
            p.note { @for line in verdict::paired_sentences(found.paired) { (line) br; } }
        }
    }
}

fn render_metrics_section(facts: &Facts, material: &PageMaterial) -> Markup {
    let sides = [("parent", &material.vs_parent), ("root", &material.vs_root)];
    let columns: Vec<MetricsColumn<'_>> = sides
        .into_iter()
        .filter_map(|(name, against)| {
            Some(MetricsColumn { name, details: &against.as_ref()?.details })
        })
        .collect();
    html! {
        @if !columns.is_empty() { h3 { "Metrics" } (render_metrics(&facts.settings.score, &columns)) }
    }
}

/// Renders every check of the gate in words.
fn render_gate(verdict: &GateVerdict) -> Markup {
    html! {
        h3 { "Gate: " (if verdict.has_passed() { "passed" } else { "not passed" }) }
        ul.checks { @for check in &verdict.checks { (render_check(check)) } }
    }
}

fn render_check(check: &GateCheck) -> Markup {
    let (class, sign, said) =
        if check.passed { ("holds", "✓", "holds") } else { ("fails", "✗", "does not hold") };
    html! {
        li class=(class) {
            span.sign role="img" aria-label=(said) { (sign) }
            (words::describe_rule(check.rule)) " " span.note { (short_line(&check.figures, MAX_SHOWN_REASON_CHARS)) }
        }
    }
}

/// Renders the documents of an eval or node, as far as they are available.
#[must_use]
pub fn render_documents(material: &PageMaterial) -> Markup {
    html! {
        @for document in &material.documents {
            @match (&document.text, document.kind) {
                (Some(text), DocumentKind::Idea) => { h3 { "Idea" } pre.foreign tabindex="0" { (VisibleText(text)) } }
                (Some(text), DocumentKind::Diff) => { h3 { "Change" } (render_diff(text)) }
                (Some(text), DocumentKind::Prompt | DocumentKind::Reply | DocumentKind::Review | DocumentKind::Log) => {
                    details.document {
                        summary { (document_heading(document)) }
                        pre.foreign tabindex="0" { (VisibleText(text)) }
                    }
                }
                (None, _) => { p.document { (document_heading(document)) ", " (document_link(document)) } }
            }
        }
    }
}

fn document_heading(document: &RunDocument) -> Markup {
    let name = document.path.as_str().rsplit('/').next().unwrap_or_default();
    html! { (document.kind.label()) " " code { (name) } " " span.note { (format_size(document.bytes)) } }
}

fn document_link(document: &RunDocument) -> Markup {
    html! { "too long to be shown here: " a href=(percent_encode(document.path.as_str())) { (document.path) } }
}

fn format_size(bytes: u64) -> String {
    match bytes {
        0..10_240 => format_count(bytes, "byte"),
        _ => format!("{} KiB", bytes / 1024),
    }
}
