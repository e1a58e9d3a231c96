//! One eval: what was tried, how it came out and why, figure by figure, check by check, and the texts that it left. A row for a
//! list of them, and the page itself, whole or in short. Shows what is on record and what the caller brings; decides nothing.

use super::diff::diff;
use super::mark;
use super::material::{Against, Document, Kind, Material};
use super::metrics::{Column, metrics};
use super::paired;
use super::text::{Shown, brief, title};
use crate::figure::change;
use crate::line::{REASON_CHARS, shorten};
use crate::markdown::percent;
use crate::outcome::{Outcome, brief_reason};
use crate::primary::primary_change;
use crate::read;
use crate::score::verdict;
use crate::show::{ended_at, place_in_beam, started_at};
use crate::words::{self, age, count};
use maud::{Markup, html};
use std::time::Duration;
use treebeam_core::event::Failure;
use treebeam_core::evidence::{Comparison, Scored};
use treebeam_core::facts::{Eval, Facts, Stage};
use treebeam_core::gate::{Check, Verdict};
use treebeam_core::policy::ScorePolicy;

/// The longest failure that is shown; the whole message is in `treebeam show`.
const FAILURE_CHARS: usize = 2_000;

/// A line of a list: its name, idea, outcome and figures.
#[must_use]
pub fn row(eval: &Eval) -> Markup {
    let outcome = Outcome::of(eval);
    let scored = read::scored(eval);
    html! {
        span.id { (mark::icon(outcome)) (read::eval_name(eval)) }
        span.idea { (title(&eval.idea.title)) }
        span class={ "outcome " (mark::class(outcome)) } { (outcome) }
        span.figure title="gain in the primary metric against its parent" { (change(scored.and_then(|scored| scored.vs_parent.primary_delta))) }
        span.figure title="rank score: against the root" { (change(read::rank_score(eval))) }
    }
}

/// All of it.
#[must_use]
pub fn page(facts: &Facts, eval: &Eval, material: &Material) -> Markup {
    html! {
        (record(facts, eval))
        @if let Some(scored) = read::scored(eval) { (comparisons(&scored, &facts.meaning.score, material)) }
        (figures(facts, material))
        @if let Some(verdict) = eval.verdict() { (gate(&verdict)) }
        (documents(material))
    }
}

/// What is on record of it, without the checks that it passed, and where the rest lies.
#[must_use]
pub fn brief_page(facts: &Facts, eval: &Eval) -> Markup {
    let verdict = eval.verdict();
    let failed = verdict.as_ref().and_then(Verdict::first_failed);
    html! {
        (record(facts, eval))
        @if let Some(check) = failed { ul.checks { (one_check(check)) } }
        p.note {
            "In short, to keep this page small. "
            @if let Some(folder) = read::experiment(eval) {
                "Its files: " a href={ (percent(&folder)) "/" } { (folder) } "; "
            }
            "all figures: " code { "treebeam show " (facts.run) " " (read::eval_name(eval)) } "."
        }
    }
}

/// The plain facts, as names and values.
fn record(facts: &Facts, eval: &Eval) -> Markup {
    let parent = read::node_name(eval.parent);
    html! {
        dl.facts {
            dt { "outcome" }
            dd {
                (outcome(eval))
                @if let Some(node) = read::promoted_to(eval).map(read::node_name) {
                    ", now " a href={ "#" (node) } { (node) }
                    @if let Some(place) = place_in_beam(facts, eval) { ", number " (place) " in the beam" }
                }
            }
            (failures(eval))
            dt { "tried on" } dd { a href={ "#" (parent) } { (parent) } ", at depth " (eval.depth) }
            dt { "idea" } dd { a href=(percent(eval.idea.path.as_str())) { (eval.idea.path) } ", " (read::idea_source(eval)) }
            @if let Some(work) = eval.work() {
                dt { "code" }
                dd {
                    code { (work.commit.short()) } ", " (count(work.files_changed, "file")) " changed in "
                    (count(work.rounds, "round")) " of the coder"
                    @if let Some(original) = work.same_code_as { ", " (words::same_code(original)) }
                }
            }
            @if let Some(times) = times(eval) { dt { "time" } dd { (times) } }
            (answers(eval))
        }
    }
}

/// What became of it and why; the word for it stands once.
fn outcome(eval: &Eval) -> String {
    let (outcome, why) = (Outcome::of(eval), brief_reason(eval, REASON_CHARS));
    if why.starts_with(outcome.word()) { why } else { format!("{outcome}: {why}") }
}

fn failures(eval: &Eval) -> Markup {
    let last = if let Stage::Failed { failure, .. } = &eval.stage { Some(failure) } else { None };
    html! {
        @for failure in &eval.failures { dt { "before" } dd { (one_failure(failure)) } }
        @if let Some(failure) = last { dt { "failure" } dd { (one_failure(failure)) } }
    }
}

fn one_failure(failure: &Failure) -> Markup {
    let message = shorten(&failure.message, FAILURE_CHARS);
    html! { (failure.stage) ", " (failure.kind) ": " span.foreign { (Shown(&message)) } }
}

fn times(eval: &Eval) -> Option<String> {
    let begun = started_at(eval)?;
    let Some(ended) = ended_at(eval) else { return Some(format!("begun at {begun:.0}")) };
    let took = Duration::try_from(ended.duration_since(begun)).unwrap_or_default();
    Some(format!("{begun:.0} to {ended:.0}, {}", age(took)))
}

fn answers(eval: &Eval) -> Markup {
    let bills = words::bills(&eval.spent());
    html! {
        @if !bills.is_empty() {
            dt { "answers" } dd { @for line in bills { div { (line) } } }
        }
    }
}

fn comparisons(scored: &Scored, policy: &ScorePolicy, material: &Material) -> Markup {
    html! {
        div.pair {
            (against("its parent", &scored.vs_parent, policy, material.vs_parent.as_ref()))
            (against("the root", &scored.vs_root, policy, material.vs_root.as_ref()))
        }
    }
}

fn against(
    name: &str,
    found: &Comparison,
    policy: &ScorePolicy,
    drawn: Option<&Against>,
) -> Markup {
    let recommendation = &found.recommendation;
    let explore =
        if recommendation.should_explore { "worth exploring" } else { "not worth exploring" };
    let reasons: Vec<_> = recommendation.reasons.iter().map(ToString::to_string).collect();
    html! {
        section.against {
            h3 { "Against " (name) }
            p {
                strong { (recommendation.grade) } ", score " (change(read::score(found))) ": " (explore)
                " (" (brief(&reasons.join("; "), REASON_CHARS)) "). " (title(&policy.primary)) " " (primary_change(policy, found)) "; gain " (change(found.primary_delta)) "; "
                (found.candidate_rows_used) " rows, baseline " (found.baseline_rows_used) "."
            }
            @if let Some(drawn) = drawn { (paired::plot(name, &drawn.changes, found.paired)) }
            p.note { @for line in verdict::paired_words(found.paired) { (line) br; } }
        }
    }
}

fn figures(facts: &Facts, material: &Material) -> Markup {
    let sides = [("parent", &material.vs_parent), ("root", &material.vs_root)];
    let columns: Vec<Column<'_>> = sides
        .into_iter()
        .filter_map(|(name, against)| Some(Column { name, details: &against.as_ref()?.details }))
        .collect();
    html! {
        @if !columns.is_empty() { h3 { "Metrics" } (metrics(&facts.meaning.score, &columns)) }
    }
}

/// Every check of the gate in words.
fn gate(verdict: &Verdict) -> Markup {
    html! {
        h3 { "Gate: " (if verdict.passed() { "passed" } else { "not passed" }) }
        ul.checks { @for check in &verdict.checks { (one_check(check)) } }
    }
}

fn one_check(check: &Check) -> Markup {
    let (class, sign, said) =
        if check.passed { ("holds", "✓", "holds") } else { ("fails", "✗", "does not hold") };
    html! {
        li class=(class) {
            span.sign role="img" aria-label=(said) { (sign) }
            (words::rule(check.rule)) " " span.note { (brief(&check.figures, REASON_CHARS)) }
        }
    }
}

/// Texts that came about, as far as they are there.
#[must_use]
pub fn documents(material: &Material) -> Markup {
    html! {
        @for document in &material.documents {
            @match (&document.text, document.kind) {
                (Some(text), Kind::Idea) => { h3 { "Idea" } pre.foreign tabindex="0" { (Shown(text)) } }
                (Some(text), Kind::Diff) => { h3 { "Change" } (diff(text)) }
                (Some(text), Kind::Prompt | Kind::Reply | Kind::Review | Kind::Log) => {
                    details.document {
                        summary { (heading(document)) }
                        pre.foreign tabindex="0" { (Shown(text)) }
                    }
                }
                (None, _) => { p.document { (heading(document)) ", " (link(document)) } }
            }
        }
    }
}

fn heading(document: &Document) -> Markup {
    let name = document.path.as_str().rsplit('/').next().unwrap_or_default();
    html! { (document.kind.words()) " " code { (name) } " " span.note { (size(document.bytes)) } }
}

fn link(document: &Document) -> Markup {
    html! { "too long to be shown here: " a href=(percent(document.path.as_str())) { (document.path) } }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_240 => count(bytes, "byte"),
        _ => format!("{} KiB", bytes / 1024),
    }
}
