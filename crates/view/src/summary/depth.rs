//! Renders the sections of the summary, one per depth: nodes, evals, and untried ideas.

use super::eval_effort;
use crate::figure::format_change;
use crate::lookup;
use crate::markdown::{MarkdownTable, MarkdownText};
use crate::outcome::{EvalCounts, EvalStatus, brief_reason};
use crate::safe_text::{MAX_SHOWN_REASON_CHARS, format_failure};
use crate::words::{self, format_count};
use std::borrow::Cow;
use std::collections::BTreeMap;
use treebeam_core::event::{Idea, RepeatedIdea};
use treebeam_core::evidence::Artifact;
use treebeam_core::facts::{ClosedDepth, Eval, Expansion, ExpansionIdeas, Facts, Node, NodeOrigin};
use treebeam_core::gate::GateVerdict;
use treebeam_core::id::{CodePlace, Depth};

/// Nodes, evals and notes of one depth.
#[derive(Default)]
struct DepthSection<'a> {
    nodes: Vec<&'a Node>,
    evals: Vec<Cow<'a, Eval>>,
    notes: Vec<String>,
}

/// Renders all sections, the root's first.
pub(super) fn depth_sections(facts: &Facts) -> Vec<String> {
    let mut sections: BTreeMap<Depth, DepthSection<'_>> = BTreeMap::new();
    for node in &facts.nodes {
        sections.entry(node.depth).or_default().nodes.push(node);
        for expansion in &node.expansions {
            let notes = expansion_notes(node, expansion);
            sections.entry(expansion.depth).or_default().notes.extend(notes);
        }
        if let Some(depth) = left_out_at(facts, node) {
            let note =
                format!("{}: not expanded, the budget was used up", lookup::node_name(node.id));
            sections.entry(depth).or_default().notes.push(note);
        }
    }
    for eval in facts.evals.iter() {
        sections.entry(eval.depth).or_default().evals.push(eval);
    }
    sections.iter().map(|(depth, section)| render_section(facts, *depth, section)).collect()
}

fn render_section(facts: &Facts, depth: Depth, section: &DepthSection<'_>) -> String {
    let mut parts = vec![format!("## Depth {depth}"), format_progress(facts, depth, section)];
    if !section.nodes.is_empty() {
        parts.push(render_nodes(facts, &section.nodes));
    }
    if !section.evals.is_empty() {
        parts.push(render_evals(facts, &section.evals));
        parts.extend(eval_effort::render_effort_table(&section.evals));
    }
    if !section.notes.is_empty() {
        let notes = section.notes.iter().map(|note| format!("- {note}\n"));
        parts.push(format!("Not tried:\n\n{}", notes.collect::<String>()));
    }
    parts.iter().map(|part| part.trim_end()).collect::<Vec<_>>().join("\n\n")
}

/// Describes the state of a depth, and counts its evals.
fn format_progress(facts: &Facts, depth: Depth, section: &DepthSection<'_>) -> String {
    let standing = match closed_depth(facts, depth) {
        Some(ClosedDepth { cut_short: true, .. }) => "Closed, cut short by the budget",
        Some(_) => "Closed",
        None if facts.depth == depth && facts.stop_reason().is_none() => "Open",
        None if section.evals.is_empty() => return not_expanded(facts),
        None => "Left open",
    };
    let counts = EvalCounts::from_evals(&section.evals);
    match counts.total() {
        0 => format!("{standing}; no evals."),
        total => format!("{standing}; {}: {counts}.", format_count(total, "eval")),
    }
}

fn not_expanded(facts: &Facts) -> String {
    let yet = if facts.stop_reason().is_some() { "" } else { " yet" };
    format!("Not expanded{yet}.")
}

fn closed_depth(facts: &Facts, depth: Depth) -> Option<&ClosedDepth> {
    facts.closed.get(usize::try_from(depth.0).ok()?)
}

/// Returns the depth at which a node would have been expanded, if the budget left it out.
fn left_out_at(facts: &Facts, node: &Node) -> Option<Depth> {
    let depth = lookup::source_eval(facts, node).map_or(Depth(0), |eval| eval.depth.next());
    let closed = closed_depth(facts, depth)?;
    (closed.cut_short && !closed.expanded.contains(&node.id)).then_some(depth)
}

fn render_nodes(facts: &Facts, nodes: &[&Node]) -> String {
    let mut table = MarkdownTable::new([
        "node",
        "parent",
        "commit / ref",
        "rank score",
        "grade",
        "should_explore",
        "gate",
        "ok / expected",
        "rows used",
        "artifacts",
        "experiment folder",
        "conversation_id",
        "parent_conversation_id",
        "latest_turn_id",
    ]);
    for node in nodes {
        table.add_row(node_row(facts, node));
    }
    table.to_string()
}

fn node_row(facts: &Facts, node: &Node) -> [MarkdownText; 14] {
    let source = lookup::source_eval(facts, node);
    let source = source.as_deref();
    let [grade, should_explore, ok, rows] = score_figures(source);
    let place = MarkdownText::code_span(&CodePlace::Node(node.id).ref_name(&facts.run));
    let fork = match node.origin {
        NodeOrigin::Root => MarkdownText::not_available(),
        NodeOrigin::Promoted { forked_at, .. } => {
            MarkdownText::from_text(&lookup::conversation_name(forked_at.node))
        }
    };
    let spoke = node.turn_count() > 0;
    [
        MarkdownText::from_text(&lookup::node_name(node.id)),
        node.parent().map_or_else(MarkdownText::not_available, |id| {
            MarkdownText::from_text(&lookup::node_name(id))
        }),
        MarkdownText::join_all([MarkdownText::code_span(node.commit.short_name()), place], " "),
        MarkdownText::from_text(&format_change(lookup::node_rank_score(facts, node))),
        grade,
        should_explore,
        source
            .and_then(Eval::gate_verdict)
            .as_ref()
            .map_or_else(MarkdownText::not_available, format_gate),
        ok,
        if source.is_some() { rows } else { root_rows(facts) },
        match source {
            Some(eval) => artifact_links(lookup::parent_baseline(facts, eval), eval.results()),
            None => root_artifact(facts.baseline_of(node)),
        },
        source.map_or_else(MarkdownText::not_available, experiment_link),
        MarkdownText::from_text(&lookup::conversation_name(node.id)),
        fork,
        if spoke {
            MarkdownText::from_text(&node.latest_turn().to_string())
        } else {
            MarkdownText::not_available()
        },
    ]
}

fn format_gate(verdict: &GateVerdict) -> MarkdownText {
    MarkdownText::from_text(if verdict.has_passed() { "passed" } else { "not passed" })
}

fn root_rows(facts: &Facts) -> MarkdownText {
    use treebeam_core::facts::RootBaseline::{Measured, Refused, Unmeasured};
    match facts.baseline {
        Measured { rows, .. } => MarkdownText::from_text(&rows.to_string()),
        Unmeasured | Refused { .. } => MarkdownText::not_available(),
    }
}

fn render_evals(facts: &Facts, evals: &[Cow<'_, Eval>]) -> String {
    let mut table = MarkdownTable::new([
        "eval",
        "parent",
        "idea",
        "outcome",
        "reason",
        "commit",
        "gain vs parent",
        "rank score",
        "grade",
        "should_explore",
        "ok / expected",
        "rows used",
        "artifacts",
        "experiment folder",
        "idea's turn",
    ]);
    for eval in evals {
        table.add_row(eval_row(facts, eval));
    }
    table.to_string()
}

fn eval_row(facts: &Facts, eval: &Eval) -> [MarkdownText; 15] {
    let [grade, should_explore, ok, rows] = score_figures(Some(eval));
    let primary = lookup::candidate_score(eval).and_then(|scored| scored.vs_parent.primary_delta);
    [
        MarkdownText::from_text(&lookup::eval_name(eval)),
        MarkdownText::from_text(&lookup::node_name(eval.parent)),
        MarkdownText::link(&eval.idea.title, eval.idea.path.as_str()),
        format_status(eval),
        MarkdownText::from_text(&brief_reason(eval, MAX_SHOWN_REASON_CHARS)),
        eval.candidate().map_or_else(MarkdownText::not_available, |work| {
            MarkdownText::code_span(work.commit.short_name())
        }),
        MarkdownText::from_text(&format_change(primary)),
        MarkdownText::from_text(&format_change(lookup::rank_score(eval))),
        grade,
        should_explore,
        ok,
        rows,
        artifact_links(eval.results().and(lookup::parent_baseline(facts, eval)), eval.results()),
        experiment_link(eval),
        MarkdownText::from_text(&lookup::idea_source(eval)),
    ]
}

fn format_status(eval: &Eval) -> MarkdownText {
    let word = EvalStatus::from_eval(eval);
    let attempt = match eval.attempt {
        0 | 1 => String::new(),
        n => format!(", attempt {n}"),
    };
    match lookup::promoted_to(eval) {
        Some(node) => {
            MarkdownText::from_text(&format!("{word} to {}{attempt}", lookup::node_name(node)))
        }
        None => MarkdownText::from_text(&format!("{word}{attempt}")),
    }
}

/// Formats grade, `should_explore`, ok / expected and rows used, all against the parent.
fn score_figures(eval: Option<&Eval>) -> [MarkdownText; 4] {
    let Some(scored) = eval.and_then(lookup::candidate_score) else {
        return [(); 4].map(|()| MarkdownText::not_available());
    };
    let recommendation = &scored.vs_parent.recommendation;
    let completeness = scored.completeness;
    [
        recommendation.grade.to_string(),
        if recommendation.should_explore { "yes" } else { "no" }.to_owned(),
        format!("{} / {}", completeness.ok_count, completeness.expected_count),
        scored.vs_parent.candidate_rows_used.to_string(),
    ]
    .map(|text| MarkdownText::from_text(&text))
}

/// Formats a link to the root's results, with a note if the run did not measure them.
fn root_artifact(results: Option<Artifact>) -> MarkdownText {
    let given = results
        .as_ref()
        .and_then(words::user_results_note)
        .map(|given| MarkdownText::from_text(&given));
    MarkdownText::join_all(std::iter::once(artifact_links(results, None)).chain(given), ", ")
}

fn artifact_links(baseline: Option<Artifact>, candidate: Option<Artifact>) -> MarkdownText {
    let link = |label, artifact: Artifact| MarkdownText::link(label, artifact.path.as_str());
    let baseline = baseline.map(|artifact| link("baseline", artifact));
    let candidate = candidate.map(|artifact| link("candidate", artifact));
    MarkdownText::join_all(baseline.into_iter().chain(candidate), " ")
}

fn experiment_link(eval: &Eval) -> MarkdownText {
    lookup::experiment_folder(eval)
        .map_or_else(MarkdownText::not_available, |folder| MarkdownText::link(&folder, &folder))
}

/// Returns notes on ideas of an expansion that were not tried.
fn expansion_notes(node: &Node, expansion: &Expansion) -> Vec<String> {
    let name = lookup::node_name(node.id);
    let untried = |idea: &Idea| {
        let link = MarkdownText::link(&idea.title, idea.path.as_str());
        format!("{name}: {link} – left untried by the budget")
    };
    let repeat = |repeat: &RepeatedIdea| {
        format!("{name}: {} – a repeat, skipped", MarkdownText::from_text(&repeat.title))
    };
    match &expansion.ideas {
        ExpansionIdeas::Asked => Vec::new(),
        ExpansionIdeas::Proposed { untried: left, repeats, .. } => {
            left.iter().map(untried).chain(repeats.iter().map(repeat)).collect()
        }
        ExpansionIdeas::Failed { why, .. } => {
            let failure = format_failure("no ideas came", why, MAX_SHOWN_REASON_CHARS);
            vec![format!("{name}: {}", MarkdownText::from_text(&failure))]
        }
    }
}
