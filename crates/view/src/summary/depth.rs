//! The sections of the summary, one per depth: its nodes, what was tried there, and what was not.

use super::took;
use crate::figure::change;
use crate::line::{REASON_CHARS, shorten};
use crate::markdown::{Md, Table};
use crate::outcome::{Counts, Outcome, brief_reason};
use crate::read;
use crate::words::{self, count};
use std::borrow::Cow;
use std::collections::BTreeMap;
use treebeam_core::event::{Idea, Repeat};
use treebeam_core::evidence::Artifact;
use treebeam_core::facts::{ClosedDepth, Eval, Expansion, Facts, Ideas, Node, Origin};
use treebeam_core::gate::Verdict;
use treebeam_core::id::{Depth, Place};

/// What belongs to one depth.
#[derive(Default)]
struct Section<'a> {
    nodes: Vec<&'a Node>,
    evals: Vec<Cow<'a, Eval>>,
    notes: Vec<String>,
}

/// All sections, the root's first.
pub(super) fn sections(facts: &Facts) -> Vec<String> {
    let mut sections: BTreeMap<Depth, Section<'_>> = BTreeMap::new();
    for node in &facts.nodes {
        sections.entry(node.depth).or_default().nodes.push(node);
        for expansion in &node.expansions {
            let notes = notes(node, expansion);
            sections.entry(expansion.depth).or_default().notes.extend(notes);
        }
        if let Some(depth) = left_out_at(facts, node) {
            let note =
                format!("{}: not expanded, the budget was used up", read::node_name(node.id));
            sections.entry(depth).or_default().notes.push(note);
        }
    }
    for eval in facts.evals.iter() {
        sections.entry(eval.depth).or_default().evals.push(eval);
    }
    sections.iter().map(|(depth, section)| write(facts, *depth, section)).collect()
}

fn write(facts: &Facts, depth: Depth, section: &Section<'_>) -> String {
    let mut parts = vec![format!("## Depth {depth}"), progress(facts, depth, section)];
    if !section.nodes.is_empty() {
        parts.push(nodes(facts, &section.nodes));
    }
    if !section.evals.is_empty() {
        parts.push(evals(facts, &section.evals));
        parts.extend(took::table(&section.evals));
    }
    if !section.notes.is_empty() {
        let notes = section.notes.iter().map(|note| format!("- {note}\n"));
        parts.push(format!("Not tried:\n\n{}", notes.collect::<String>()));
    }
    parts.iter().map(|part| part.trim_end()).collect::<Vec<_>>().join("\n\n")
}

/// How far the depth is, and what its evals came to.
fn progress(facts: &Facts, depth: Depth, section: &Section<'_>) -> String {
    let standing = match closed(facts, depth) {
        Some(ClosedDepth { cut_short: true, .. }) => "Closed, cut short by the budget",
        Some(_) => "Closed",
        None if facts.depth == depth && facts.stop_reason().is_none() => "Open",
        None if section.evals.is_empty() => return not_expanded(facts),
        None => "Left open",
    };
    let counts = Counts::of(&section.evals);
    match counts.total() {
        0 => format!("{standing}; no evals."),
        total => format!("{standing}; {}: {counts}.", count(total, "eval")),
    }
}

fn not_expanded(facts: &Facts) -> String {
    let yet = if facts.stop_reason().is_some() { "" } else { " yet" };
    format!("Not expanded{yet}.")
}

fn closed(facts: &Facts, depth: Depth) -> Option<&ClosedDepth> {
    facts.closed.get(usize::try_from(depth.0).ok()?)
}

/// The depth at which a node's turn would have come, if the budget left it out.
fn left_out_at(facts: &Facts, node: &Node) -> Option<Depth> {
    let depth = read::source(facts, node).map_or(Depth(0), |eval| eval.depth.next());
    let closed = closed(facts, depth)?;
    (closed.cut_short && !closed.expanded.contains(&node.id)).then_some(depth)
}

fn nodes(facts: &Facts, nodes: &[&Node]) -> String {
    let mut table = Table::new([
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
        table.row(node_row(facts, node));
    }
    table.to_string()
}

fn node_row(facts: &Facts, node: &Node) -> [Md; 14] {
    let source = read::source(facts, node);
    let source = source.as_deref();
    let [grade, should_explore, ok, rows] = figures(source);
    let place = Md::code(&Place::Node(node.id).ref_name(&facts.run));
    let fork = match node.origin {
        Origin::Root => Md::none(),
        Origin::Promoted { forked_at, .. } => Md::text(&read::conversation(forked_at.node)),
    };
    let spoke = node.turns() > 0;
    [
        Md::text(&read::node_name(node.id)),
        node.parent().map_or_else(Md::none, |id| Md::text(&read::node_name(id))),
        Md::all([Md::code(node.commit.short()), place], " "),
        Md::text(&change(read::node_rank_score(facts, node))),
        grade,
        should_explore,
        source.and_then(Eval::verdict).as_ref().map_or_else(Md::none, gate),
        ok,
        if source.is_some() { rows } else { root_rows(facts) },
        match source {
            Some(eval) => artifacts(read::baseline(facts, eval), eval.results()),
            None => root_artifact(facts.baseline_of(node)),
        },
        source.map_or_else(Md::none, experiment),
        Md::text(&read::conversation(node.id)),
        fork,
        if spoke { Md::text(&node.latest_turn().to_string()) } else { Md::none() },
    ]
}

fn gate(verdict: &Verdict) -> Md {
    Md::text(if verdict.passed() { "passed" } else { "not passed" })
}

fn root_rows(facts: &Facts) -> Md {
    use treebeam_core::facts::Baseline::{Measured, Refused, Unmeasured};
    match facts.baseline {
        Measured { rows, .. } => Md::text(&rows.to_string()),
        Unmeasured | Refused { .. } => Md::none(),
    }
}

fn evals(facts: &Facts, evals: &[Cow<'_, Eval>]) -> String {
    let mut table = Table::new([
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
        table.row(eval_row(facts, eval));
    }
    table.to_string()
}

fn eval_row(facts: &Facts, eval: &Eval) -> [Md; 15] {
    let [grade, should_explore, ok, rows] = figures(Some(eval));
    let primary = read::scored(eval).and_then(|scored| scored.vs_parent.primary_delta);
    [
        Md::text(&read::eval_name(eval)),
        Md::text(&read::node_name(eval.parent)),
        Md::link(&eval.idea.title, eval.idea.path.as_str()),
        outcome(eval),
        Md::text(&brief_reason(eval, REASON_CHARS)),
        eval.work().map_or_else(Md::none, |work| Md::code(work.commit.short())),
        Md::text(&change(primary)),
        Md::text(&change(read::rank_score(eval))),
        grade,
        should_explore,
        ok,
        rows,
        artifacts(eval.results().and(read::baseline(facts, eval)), eval.results()),
        experiment(eval),
        Md::text(&read::idea_source(eval)),
    ]
}

fn outcome(eval: &Eval) -> Md {
    let word = Outcome::of(eval);
    let attempt = match eval.attempt {
        0 | 1 => String::new(),
        n => format!(", attempt {n}"),
    };
    match read::promoted_to(eval) {
        Some(node) => Md::text(&format!("{word} to {}{attempt}", read::node_name(node))),
        None => Md::text(&format!("{word}{attempt}")),
    }
}

/// Grade, `should_explore`, ok / expected and rows used: all against the parent.
fn figures(eval: Option<&Eval>) -> [Md; 4] {
    let Some(scored) = eval.and_then(read::scored) else { return [(); 4].map(|()| Md::none()) };
    let recommendation = &scored.vs_parent.recommendation;
    let completeness = scored.completeness;
    [
        recommendation.grade.to_string(),
        if recommendation.should_explore { "yes" } else { "no" }.to_owned(),
        format!("{} / {}", completeness.ok_count, completeness.expected_count),
        scored.vs_parent.candidate_rows_used.to_string(),
    ]
    .map(|text| Md::text(&text))
}

/// The root's results, and whether the run measured them.
fn root_artifact(results: Option<Artifact>) -> Md {
    let given = results.as_ref().and_then(words::given).map(|given| Md::text(&given));
    Md::all(std::iter::once(artifacts(results, None)).chain(given), ", ")
}

fn artifacts(baseline: Option<Artifact>, candidate: Option<Artifact>) -> Md {
    let link = |label, artifact: Artifact| Md::link(label, artifact.path.as_str());
    let baseline = baseline.map(|artifact| link("baseline", artifact));
    let candidate = candidate.map(|artifact| link("candidate", artifact));
    Md::all(baseline.into_iter().chain(candidate), " ")
}

fn experiment(eval: &Eval) -> Md {
    read::experiment(eval).map_or_else(Md::none, |folder| Md::link(&folder, &folder))
}

/// What an expansion did not lead to.
fn notes(node: &Node, expansion: &Expansion) -> Vec<String> {
    let name = read::node_name(node.id);
    let untried = |idea: &Idea| {
        let link = Md::link(&idea.title, idea.path.as_str());
        format!("{name}: {link} – left untried by the budget")
    };
    let repeat =
        |repeat: &Repeat| format!("{name}: {} – a repeat, skipped", Md::text(&repeat.title));
    match &expansion.ideas {
        Ideas::Asked => Vec::new(),
        Ideas::Proposed { untried: left, repeats, .. } => {
            left.iter().map(untried).chain(repeats.iter().map(repeat)).collect()
        }
        Ideas::Failed { why, .. } => {
            vec![format!("{name}: no ideas came – {}", Md::text(&shorten(why, REASON_CHARS)))]
        }
    }
}
