//! Renders one node: its code, the ideas that led to it, evals on it, and the paths of its files.

use super::{conversation, eval_title, format_artifact, format_idea_gain};
use crate::figure::{NOT_AVAILABLE, format_change};
use crate::lookup;
use crate::outcome::{self, EvalStatus};
use crate::safe_text::{field_lines, format_field, one_line};
use crate::words::{describe_bills, format_count};
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::facts::{Eval, Expansion, ExpansionIdeas, Facts, Node, NodeOrigin};
use treebeam_core::id::CodePlace;
use treebeam_core::path;

/// Maximum length of a reason on a line; `show` of the eval has all of it.
const MAX_REASON_CHARS: usize = 100;

pub(super) fn node_lines(facts: &Facts, node: &Node) -> Vec<String> {
    let place = CodePlace::Node(node.id);
    let removed = |kind| facts.removed.contains(&Leftover { place, kind });
    let gone = |kind| if removed(kind) { " (removed)" } else { "" };
    let mut lines = vec![
        format_field("node", &format!("{place}, depth {}, run {}", node.depth, facts.run)),
        format_field("commit", node.commit.as_str()),
        format_field(
            "ref",
            &format!("{}{}", place.ref_name(&facts.run), gone(LeftoverKind::Branch)),
        ),
        format_field("parent", &describe_parent(node)),
        format_field("since", &format!("{:.0}", node.created_at)),
        format_field(
            "rank",
            &format!("rank score {}", format_change(lookup::node_rank_score(facts, node))),
        ),
    ];
    lines.extend(idea_chain_lines(facts, node));
    let baseline = facts.baseline_of(node).as_ref().map(format_artifact);
    let baseline = baseline.unwrap_or_else(|| "not measured yet".to_owned());
    lines.push(format_field("baseline", &baseline));
    lines.extend(node_expansion_lines(facts, node));
    let worktree = format!("{}{}", place.worktree_path(), gone(LeftoverKind::Worktree));
    lines.push(format_field("worktree", &worktree));
    lines.extend(field_lines("talk", conversation_lines(facts, node)));
    lines.extend(field_lines("answers", describe_bills(&node.total_spend())));
    lines.extend(field_lines("files", node_files(node)));
    lines
}

fn describe_parent(node: &Node) -> String {
    match node.origin {
        NodeOrigin::Root => "none: this is the root, the commit that the run began with".to_owned(),
        NodeOrigin::Promoted { parent, from, .. } => {
            format!("{}, promoted from {}", lookup::node_name(parent), CodePlace::Candidate(from))
        }
    }
}

/// Returns the ideas that led to the node, the first one first, with their gains.
fn idea_chain_lines(facts: &Facts, node: &Node) -> Vec<String> {
    let ideas = facts.idea_chain(node.id).into_iter();
    let lines = ideas.flat_map(|eval| {
        [
            format!("{} {}", lookup::eval_name(&eval), eval_title(&eval)),
            format!("      {}", format_idea_gain(&eval)),
        ]
    });
    field_lines("ideas", lines)
}

fn node_expansion_lines(facts: &Facts, node: &Node) -> Vec<String> {
    if node.expansions.is_empty() {
        return vec![format_field("tried", "nothing yet")];
    }
    let of = |expansion| expansion_lines(facts, expansion);
    field_lines("tried", node.expansions.iter().flat_map(of))
}

fn expansion_lines(facts: &Facts, expansion: &Expansion) -> Vec<String> {
    let mut head = expansion_head(expansion);
    if !expansion.added.is_empty() {
        head.push_str(&format!(
            ", {} added by the user",
            format_count(expansion.added.len(), "eval")
        ));
    }
    let evals = expansion.eval_ids().filter_map(|id| facts.eval(*id)).map(|eval| eval_line(&eval));
    std::iter::once(head).chain(evals).collect()
}

fn expansion_head(expansion: &Expansion) -> String {
    let at = format!("at depth {}", expansion.depth);
    match &expansion.ideas {
        ExpansionIdeas::Asked => format!("{at}: waits for ideas"),
        ExpansionIdeas::Failed { why, .. } => format!("{at}: no ideas: {}", one_line(why)),
        ExpansionIdeas::Proposed { evals, untried, repeats, .. } => {
            let mut head = format!("{at}: {}", format_count(evals.len(), "eval"));
            if !repeats.is_empty() {
                head.push_str(&format!(", {} skipped", format_count(repeats.len(), "repeat")));
            }
            if !untried.is_empty() {
                head.push_str(&format!(", {} left untried", format_count(untried.len(), "idea")));
            }
            head
        }
    }
}

fn eval_line(eval: &Eval) -> String {
    let (name, outcome) = (lookup::eval_name(eval), EvalStatus::from_eval(eval));
    let node = lookup::promoted_to(eval).map(lookup::node_name);
    let to = node.map_or_else(String::new, |node| format!(" to {node}"));
    let reason = outcome::brief_reason(eval, MAX_REASON_CHARS);
    format!("{name} {outcome}{to}: {} ({reason})", eval_title(eval))
}

fn conversation_lines(facts: &Facts, node: &Node) -> Vec<String> {
    let mut lines = vec![format!("conversation {}", conversation::format_lineage(facts, node))];
    let latest = (node.turn_count() > 0).then(|| node.latest_turn().to_string());
    lines.push(format!("latest turn {}", latest.as_deref().unwrap_or(NOT_AVAILABLE)));
    let latest = node.conversation_turns().into_iter().rfind(|known| known.turn.is_some());
    lines.extend(latest.map(|known| format!("told {}", known.prompt_path())));
    lines
}

fn node_files(node: &Node) -> Vec<String> {
    if node.expansions.is_empty() {
        return vec!["none yet".to_owned()];
    }
    vec![format!("{} (ideas, and what their generator was told)", path::node_ideas_folder(node.id))]
}
