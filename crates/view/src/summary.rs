//! `TREE_SUMMARY.md`: the whole run for a reader, from its outcome down to every eval with its reason. Shows nothing
//! that depends on how often the run was interrupted or how parallel it ran; times are those on record.

mod depth;
mod spending;
mod took;

use crate::figure::change;
use crate::markdown::{Md, Table};
use crate::outcome::Counts;
use crate::read;
use crate::trust;
use crate::versus;
use crate::words::{self, count};
use treebeam_core::facts::{Eval, Facts, Node, Phase};
use treebeam_core::id::NodeId;

/// How to read the tables.
const READING: &str = "Grade, `should_explore` and the gate compare a candidate with its parent; the rank score \
    compares it with the root, which counts as 0. A gain is the change of the primary metric, positive where the \
    candidate is better, whatever the metric's direction.";

/// The run as Markdown.
#[must_use]
pub fn summary(facts: &Facts) -> String {
    let title = format!("# Tree search {}", Md::text(facts.run.as_str()));
    let mut parts = vec![title, outcome(facts), evals(facts), configuration(facts)];
    parts.extend(trust::section(facts));
    parts.extend(versus::section(facts));
    parts.extend(spending::section(facts));
    parts.push(READING.to_owned());
    parts.extend(depth::sections(facts));
    parts.push(best_path(facts));
    let mut text = parts.iter().map(|part| part.trim_end()).collect::<Vec<_>>().join("\n\n");
    text.push('\n');
    text
}

fn outcome(facts: &Facts) -> String {
    let now = match facts.stop_reason() {
        Some(reason) => format!("**Stopped**: {} (`{reason}`).", words::stop(reason)),
        None => format!("**Running**: {}.", words::phase(facts)),
    };
    let so_far = if facts.stop_reason().is_some() { "" } else { " so far" };
    format!("{now} **Best{so_far}**: {}.{}", best(facts), times(facts))
}

/// When it began and when it ended, and how long after.
fn times(facts: &Facts) -> String {
    let Phase::Stopped { at, .. } = facts.phase else { return String::new() };
    let began = facts.created_at;
    format!(" **Time**: from {began:.0} to {at:.0}, {}.", words::span(began, at))
}

fn best(facts: &Facts) -> String {
    let best = facts.best();
    if best == NodeId::ROOT {
        return "the root, n0000 (no node ranks above it)".to_owned();
    }
    let score = facts.node(best).and_then(|node| read::node_rank_score(facts, node));
    let steps = facts.lineage(best).skip(1).count();
    let name = read::node_name(best);
    let steps = count(steps, "idea");
    format!(
        "node {name}, rank score {}, {steps} from the root ([best path](#best-path))",
        change(score)
    )
}

fn evals(facts: &Facts) -> String {
    let counts = Counts::overall(facts);
    match counts.total() {
        0 => "No evals yet.".to_owned(),
        total => format!("{}: {counts}.", count(total, "eval")),
    }
}

fn configuration(facts: &Facts) -> String {
    let (meaning, reach, score) = (&facts.meaning, &facts.reach, &facts.meaning.score);
    let limit = meaning.sweep_config_limit.map_or("all".to_owned(), |limit| limit.to_string());
    let budget = reach.max_total_idea_evals;
    let budget =
        budget.map_or("no limit".to_owned(), |most| format!("at most {}", count(most, "eval")));
    let primary = [Md::text(&score.primary), Md::text(words::direction(score.primary_direction()))];
    let root = facts.node(NodeId::ROOT).map_or(Md::none(), |root| Md::code(root.commit.as_str()));
    let mut table = Table::new(["setting", "value"]);
    let mut row = |name: &str, value: Md| table.row([Md::text(name), value]);
    row("K, ideas per node", Md::text(&meaning.ideas_per_node.to_string()));
    row("D, depths", Md::text(&reach.max_depth.to_string()));
    row("B, beam width", Md::text(&meaning.beam_width.to_string()));
    row("N, configurations per sweep", Md::text(&limit));
    row("budget", Md::text(&budget));
    if let Some(control) = facts.control_group() {
        row("control", Md::code(&control.to_string()));
    }
    if let Some(spending) = words::spending(reach) {
        row("answers of agents", Md::text(&spending));
    }
    if !facts.agents.0.is_empty() {
        row("agents", Md::text(&facts.agents.to_string()));
    }
    row("repeats are looked for in", Md::code(&meaning.dedupe_scope.to_string()));
    row("a sweep is complete with", Md::text(&words::completeness(facts)));
    row("ideas shown as context", Md::code(&meaning.ideas_context_strategy.to_string()));
    row("primary metric", Md::all(primary, ", "));
    row("root commit", root);
    row("world", Md::text(&words::world(facts.world)));
    format!("## Configuration\n\n{table}")
}

fn best_path(facts: &Facts) -> String {
    let head = "## Best path";
    let mut path: Vec<_> = facts.lineage(facts.best()).collect();
    path.reverse();
    if path.len() == 1 {
        return format!("{head}\n\nNo node ranks above the root: the best path is the root alone.");
    }
    let mut table = Table::new([
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
        table.row(step(facts, node));
    }
    format!("{head}\n\n{table}")
}

fn step(facts: &Facts, node: &Node) -> [Md; 8] {
    let source = read::source(facts, node);
    let source = source.as_deref();
    let scored = source.and_then(read::scored);
    let scored = scored.as_ref();
    let of = |text: &dyn Fn(&Eval) -> Md| source.map_or_else(Md::none, text);
    let gain = |number| Md::text(&change(number));
    [
        Md::text(&read::node_name(node.id)),
        source.map_or(Md::text("the root"), |eval| Md::text(&eval.idea.title)),
        of(&|eval| Md::link(eval.idea.id(), eval.idea.path.as_str())),
        of(&|eval| Md::text(&read::eval_name(eval))),
        gain(scored.and_then(|scored| scored.vs_parent.primary_delta)),
        gain(scored.and_then(|scored| scored.vs_root.primary_delta)),
        gain(scored.and_then(|scored| read::score(&scored.vs_parent))),
        gain(read::node_rank_score(facts, node)),
    ]
}
