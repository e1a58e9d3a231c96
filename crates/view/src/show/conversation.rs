//! The conversation of one node: where it forks from, its turns, and where their texts lie.

use crate::line::{field, list, one_line};
use crate::read;
use crate::words::count;
use treebeam_core::facts::{Facts, KnownTurn, Node};
use treebeam_core::path;

pub(super) fn lines(facts: &Facts, node: &Node) -> Vec<String> {
    let (name, turns) = (read::conversation(node.id), node.conversation());
    let mut lines = vec![
        field("talk", &format!("{name} of {}, run {}", read::node_name(node.id), facts.run)),
        field("lineage", &lineage(facts, node)),
    ];
    if turns.is_empty() {
        lines.push(field("turns", "none yet"));
    } else {
        lines.extend(list("turns", turns.iter().flat_map(|turn| one(facts, turn))));
    }
    if turns.iter().any(|turn| turn.turn.is_some()) {
        lines.extend(list("files", files(node)));
    }
    lines
}

/// The conversation and the turns that it comes from: `c0003, from c0001-t1, from c0000-t2`.
pub(crate) fn lineage(facts: &Facts, node: &Node) -> String {
    let forks = facts.forks(node.id).map(|turn| format!(", from {turn}"));
    format!("{}{}", read::conversation(node.id), forks.collect::<String>())
}

fn one(facts: &Facts, known: &KnownTurn<'_>) -> Vec<String> {
    let mut lines = vec![format!("{}: {}", known.id, how(facts, known))];
    let mut say = |text: String| lines.push(format!("  {text}"));
    if known.turn.is_some() {
        say(format!("asked {}", known.prompt_path()));
    }
    if known.turn.is_none_or(|turn| turn.reply.is_some()) {
        say(format!("answered {}", known.reply_path()));
    }
    if let Some((summary, path)) = known.summary() {
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

fn how(facts: &Facts, known: &KnownTurn<'_>) -> String {
    let came = count(known.ideas(facts).count(), "new idea");
    match known.turn {
        None => format!("without memory, {came}"),
        Some(turn) if turn.reply.is_none() => format!("{}, no answer", turn.way),
        Some(turn) => format!("{}, {} asked for, {came}", turn.way, count(turn.asked, "idea")),
    }
}

fn files(node: &Node) -> Vec<String> {
    vec![
        format!("{} (state)", path::conversation_state(node.id)),
        format!("{} (turns)", path::conversation_log(node.id)),
        format!("{} (in short)", path::conversation_summary(node.id)),
    ]
}
