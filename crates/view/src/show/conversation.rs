//! Renders the conversation of one node: its fork, its turns, and the paths of their texts.

use crate::lookup;
use crate::safe_text::{field_lines, format_field, one_line};
use crate::words::format_count;
use treebeam_core::facts::{Facts, Node, NodeTurn};
use treebeam_core::path;

pub(super) fn conversation_lines(facts: &Facts, node: &Node) -> Vec<String> {
    let (name, turns) = (lookup::conversation_name(node.id), node.conversation_turns());
    let mut lines = vec![
        format_field(
            "talk",
            &format!("{name} of {}, run {}", lookup::node_name(node.id), facts.run),
        ),
        format_field("lineage", &format_lineage(facts, node)),
    ];
    if turns.is_empty() {
        lines.push(format_field("turns", "none yet"));
    } else {
        lines.extend(field_lines("turns", turns.iter().flat_map(|turn| turn_lines(facts, turn))));
    }
    if turns.iter().any(|turn| turn.turn.is_some()) {
        lines.extend(field_lines("files", conversation_files(node)));
    }
    lines
}

/// Formats a conversation and the turns that it forks from: `c0003, from c0001-t1, from c0000-t2`.
pub(crate) fn format_lineage(facts: &Facts, node: &Node) -> String {
    let forks = facts.fork_turns(node.id).map(|turn| format!(", from {turn}"));
    format!("{}{}", lookup::conversation_name(node.id), forks.collect::<String>())
}

fn turn_lines(facts: &Facts, known: &NodeTurn<'_>) -> Vec<String> {
    let mut lines = vec![format!("{}: {}", known.id, describe_turn(facts, known))];
    let mut say = |text: String| lines.push(format!("  {text}"));
    if known.turn.is_some() {
        say(format!("asked {}", known.prompt_path()));
    }
    if known.turn.is_none_or(|turn| turn.reply.is_some()) {
        say(format!("answered {}", known.reply_path()));
    }
    if let Some((summary, path)) = known.summary_with_path() {
        say(format!("turns up to {} summed up {path}", summary.until));
    }
    if let Some(from) = known.turn.and_then(|turn| turn.continued.as_ref()) {
        say(format!("goes on from {}", one_line(from)));
    }
    if let Some(named) = known.turn.and_then(|turn| turn.continuation.as_ref()) {
        say(format!("known to the provider as {}", one_line(&named.id)));
    }
    if let Some(note) = known.turn.and_then(|turn| turn.note.as_ref()) {
        say(format!("note: {}", one_line(note)));
    }
    known.ideas(facts).for_each(|idea| say(format!("brought {}", one_line(&idea.title))));
    lines
}

fn describe_turn(facts: &Facts, known: &NodeTurn<'_>) -> String {
    let came = format_count(known.ideas(facts).count(), "new idea");
    match known.turn {
        None => format!("without memory, {came}"),
        Some(turn) if turn.reply.is_none() => format!("{}, no answer", turn.way),
        Some(turn) => {
            format!("{}, {} asked for, {came}", turn.way, format_count(turn.asked, "idea"))
        }
    }
}

fn conversation_files(node: &Node) -> Vec<String> {
    vec![
        format!("{} (state)", path::conversation_state(node.id)),
        format!("{} (turns)", path::conversation_log(node.id)),
        format!("{} (in short)", path::conversation_summary(node.id)),
    ]
}
