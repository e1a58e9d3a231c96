//! Renders `TREE_SUMMARY.md`: the whole run, from its outcome down to every eval with its reason.
//! Shows nothing that depends on interruptions or parallelism; times are those on record.

mod depth;
mod eval_effort;
mod spending;

use crate::figure::format_change;
use crate::lookup;
use crate::markdown::{MarkdownTable, MarkdownText};
use crate::outcome::EvalCounts;
use crate::trust;
use crate::versus;
use crate::words::{self, format_count};
use treebeam_core::facts::{Eval, Facts, Node, RunPhase};
use treebeam_core::id::NodeId;

/// Notes on how to read the tables.
const TABLE_NOTES: &str = "Grade, `should_explore` and the gate compare a candidate with its parent; the rank score \
    compares it with the root, which counts as 0. A gain is the change of the primary metric, positive where the \
    candidate is better, whatever the metric's direction.";

/// Renders the run as Markdown.
#[must_use]
pub fn render_tree_summary(facts: &Facts) -> String {
    let title = format!("# Tree search {}", MarkdownText::from_text(facts.run.as_str()));
    let mut parts =
        vec![title, format_run_outcome(facts), format_evals(facts), render_configuration(facts)];
    parts.extend(trust::trust_section(facts));
    parts.extend(versus::control_section(facts));
    parts.extend(spending::spending_section(facts));
    parts.push(TABLE_NOTES.to_owned());
    parts.extend(depth::depth_sections(facts));
    parts.push(render_best_path(facts));
    let mut text = parts.iter().map(|part| part.trim_end()).collect::<Vec<_>>().join("\n\n");
    text.push('\n');
    text
}

fn format_run_outcome(facts: &Facts) -> String {
    let now = match facts.stop_reason() {
        Some(reason) => format!("**Stopped**: {} (`{reason}`).", words::describe_stop(reason)),
        None => format!("**Running**: {}.", words::describe_phase(facts)),
    };
    let so_far = if facts.stop_reason().is_some() { "" } else { " so far" };
    format!("{now} **Best{so_far}**: {}.{}", format_best(facts), format_times(facts))
}

/// Formats start, end and duration of the run.
fn format_times(facts: &Facts) -> String {
    let RunPhase::Stopped { at, .. } = facts.phase else { return String::new() };
    let began = facts.created_at;
    format!(" **Time**: from {began:.0} to {at:.0}, {}.", words::format_span(began, at))
}

fn format_best(facts: &Facts) -> String {
    let best = facts.best_node();
    if best == NodeId::ROOT {
        return "the root, n0000 (no node ranks above it)".to_owned();
    }
    let score = facts.node(best).and_then(|node| lookup::node_rank_score(facts, node));
    let steps = facts.lineage(best).skip(1).count();
    let name = lookup::node_name(best);
    let steps = format_count(steps, "idea");
    format!(
        "node {name}, rank score {}, {steps} from the root ([best path](#best-path))",
        format_change(score)
    )
}

fn format_evals(facts: &Facts) -> String {
    let counts = EvalCounts::overall(facts);
    match counts.total() {
        0 => "No evals yet.".to_owned(),
        total => format!("{}: {counts}.", format_count(total, "eval")),
    }
}

fn render_configuration(facts: &Facts) -> String {
    let (settings, limits, score) = (&facts.settings, &facts.limits, &facts.settings.score);
    let limit = settings.sweep_config_limit.map_or("all".to_owned(), |limit| limit.to_string());
    let budget = limits.max_total_idea_evals;
    let budget = budget
        .map_or("no limit".to_owned(), |most| format!("at most {}", format_count(most, "eval")));
    let primary = [
        MarkdownText::from_text(&score.primary),
        MarkdownText::from_text(words::describe_direction(score.primary_direction())),
    ];
    let root = facts.node(NodeId::ROOT).map_or(MarkdownText::not_available(), |root| {
        MarkdownText::code_span(root.commit.as_str())
    });
    let mut table = MarkdownTable::new(["setting", "value"]);
    let mut row =
        |name: &str, value: MarkdownText| table.add_row([MarkdownText::from_text(name), value]);
    row("K, ideas per node", MarkdownText::from_text(&settings.ideas_per_node.to_string()));
    row("D, depths", MarkdownText::from_text(&limits.max_depth.to_string()));
    row("B, beam width", MarkdownText::from_text(&settings.beam_width.to_string()));
    row("N, configurations per sweep", MarkdownText::from_text(&limit));
    row("budget", MarkdownText::from_text(&budget));
    if let Some(control) = facts.control_policy() {
        row("control", MarkdownText::code_span(&control.to_string()));
    }
    if let Some(spending) = words::describe_spending_limits(limits) {
        row("answers of agents", MarkdownText::from_text(&spending));
    }
    if !facts.agents.0.is_empty() {
        row("agents", MarkdownText::from_text(&facts.agents.to_string()));
    }
    row("repeats are looked for in", MarkdownText::code_span(&settings.dedupe_scope.to_string()));
    row("a sweep is complete with", MarkdownText::from_text(&words::describe_completeness(facts)));
    row(
        "ideas shown as context",
        MarkdownText::code_span(&settings.ideas_context_strategy.to_string()),
    );
    row("primary metric", MarkdownText::join_all(primary, ", "));
    row("root commit", root);
    row("world", MarkdownText::from_text(&words::describe_world(facts.world)));
    format!("## Configuration\n\n{table}")
}

fn render_best_path(facts: &Facts) -> String {
    let head = "## Best path";
    let mut path: Vec<_> = facts.lineage(facts.best_node()).collect();
    path.reverse();
    if path.len() == 1 {
        return format!("{head}\n\nNo node ranks above the root: the best path is the root alone.");
    }
    let mut table = MarkdownTable::new([
        "node",
        "idea",
        "idea id",
        "eval",
        "gain vs parent",
        "gain vs root",
        "score vs parent",
        "rank score",
    ]);
    for node in path {
        table.add_row(best_path_row(facts, node));
    }
    format!("{head}\n\n{table}")
}

fn best_path_row(facts: &Facts, node: &Node) -> [MarkdownText; 8] {
    let source = lookup::source_eval(facts, node);
    let source = source.as_deref();
    let scored = source.and_then(lookup::candidate_score);
    let scored = scored.as_ref();
    let of = |text: &dyn Fn(&Eval) -> MarkdownText| {
        source.map_or_else(MarkdownText::not_available, text)
    };
    let gain = |number| MarkdownText::from_text(&format_change(number));
    [
        MarkdownText::from_text(&lookup::node_name(node.id)),
        source.map_or(MarkdownText::from_text("the root"), |eval| {
            MarkdownText::from_text(&eval.idea.title)
        }),
        of(&|eval| MarkdownText::link(eval.idea.chain_id(), eval.idea.path.as_str())),
        of(&|eval| MarkdownText::from_text(&lookup::eval_name(eval))),
        gain(scored.and_then(|scored| scored.vs_parent.primary_delta)),
        gain(scored.and_then(|scored| scored.vs_root.primary_delta)),
        gain(scored.and_then(|scored| lookup::comparison_score(&scored.vs_parent))),
        gain(lookup::node_rank_score(facts, node)),
    ]
}
