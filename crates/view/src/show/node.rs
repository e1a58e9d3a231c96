//! One node: its code, the ideas that led to it, what was tried on it, and where its files lie.

use super::{artifact, conversation, gain, title};
use crate::figure::{NONE, change};
use crate::line::{field, list, one_line};
use crate::outcome::{self, Outcome};
use crate::read;
use crate::words::{bills, count};
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::facts::{Eval, Expansion, Facts, Ideas, Node, Origin};
use treebeam_core::id::Place;
use treebeam_core::path;

/// The longest reason on a line; `show` of the eval has it whole.
const REASON_CHARS: usize = 100;

pub(super) fn lines(facts: &Facts, node: &Node) -> Vec<String> {
    let place = Place::Node(node.id);
    let removed = |kind| facts.removed.contains(&Leftover { place, kind });
    let gone = |kind| if removed(kind) { " (removed)" } else { "" };
    let mut lines = vec![
        field("node", &format!("{place}, depth {}, run {}", node.depth, facts.run)),
        field("commit", node.commit.as_str()),
        field("ref", &format!("{}{}", place.ref_name(&facts.run), gone(LeftoverKind::Branch))),
        field("parent", &parent(node)),
        field("since", &format!("{:.0}", node.created_at)),
        field("rank", &format!("rank score {}", change(read::node_rank_score(facts, node)))),
    ];
    lines.extend(chain(facts, node));
    let baseline = facts.baseline_of(node).as_ref().map(artifact);
    let baseline = baseline.unwrap_or_else(|| "not measured yet".to_owned());
    lines.push(field("baseline", &baseline));
    lines.extend(expansions(facts, node));
    let worktree = format!("{}{}", place.worktree(), gone(LeftoverKind::Worktree));
    lines.push(field("worktree", &worktree));
    lines.extend(list("talk", talk(facts, node)));
    lines.extend(list("answers", bills(&node.spent())));
    lines.extend(list("files", files(node)));
    lines
}

fn parent(node: &Node) -> String {
    match node.origin {
        Origin::Root => "none: this is the root, the commit that the run began with".to_owned(),
        Origin::Promoted { parent, from, .. } => {
            format!("{}, promoted from {}", read::node_name(parent), Place::Candidate(from))
        }
    }
}

/// The ideas that led here, the first one first, and what each of them brought.
fn chain(facts: &Facts, node: &Node) -> Vec<String> {
    let ideas = facts.idea_chain(node.id).into_iter();
    let lines = ideas.flat_map(|eval| {
        [format!("{} {}", read::eval_name(&eval), title(&eval)), format!("      {}", gain(&eval))]
    });
    list("ideas", lines)
}

fn expansions(facts: &Facts, node: &Node) -> Vec<String> {
    if node.expansions.is_empty() {
        return vec![field("tried", "nothing yet")];
    }
    let of = |expansion| expansion_lines(facts, expansion);
    list("tried", node.expansions.iter().flat_map(of))
}

fn expansion_lines(facts: &Facts, expansion: &Expansion) -> Vec<String> {
    let mut head = expansion_head(expansion);
    if !expansion.added.is_empty() {
        head.push_str(&format!(", {} added by the user", count(expansion.added.len(), "eval")));
    }
    let evals = expansion.evals().filter_map(|id| facts.eval(*id)).map(|eval| one_eval(&eval));
    std::iter::once(head).chain(evals).collect()
}

fn expansion_head(expansion: &Expansion) -> String {
    let at = format!("at depth {}", expansion.depth);
    match &expansion.ideas {
        Ideas::Asked => format!("{at}: waits for ideas"),
        Ideas::Failed { why, .. } => format!("{at}: no ideas: {}", one_line(why)),
        Ideas::Proposed { evals, untried, repeats, .. } => {
            let mut head = format!("{at}: {}", count(evals.len(), "eval"));
            if !repeats.is_empty() {
                head.push_str(&format!(", {} skipped", count(repeats.len(), "repeat")));
            }
            if !untried.is_empty() {
                head.push_str(&format!(", {} left untried", count(untried.len(), "idea")));
            }
            head
        }
    }
}

fn one_eval(eval: &Eval) -> String {
    let (name, outcome) = (read::eval_name(eval), Outcome::of(eval));
    let node = read::promoted_to(eval).map(read::node_name);
    let to = node.map_or_else(String::new, |node| format!(" to {node}"));
    let reason = outcome::brief_reason(eval, REASON_CHARS);
    format!("{name} {outcome}{to}: {} ({reason})", title(eval))
}

fn talk(facts: &Facts, node: &Node) -> Vec<String> {
    let mut lines = vec![format!("conversation {}", conversation::lineage(facts, node))];
    let latest = (node.turns() > 0).then(|| node.latest_turn().to_string());
    lines.push(format!("latest turn {}", latest.as_deref().unwrap_or(NONE)));
    let told = node.conversation().into_iter().rfind(|known| known.turn.is_some());
    lines.extend(told.map(|known| format!("told {}", known.prompt_path())));
    lines
}

fn files(node: &Node) -> Vec<String> {
    if node.expansions.is_empty() {
        return vec!["none yet".to_owned()];
    }
    vec![format!("{} (ideas, and what their generator was told)", path::node_ideas(node.id))]
}
