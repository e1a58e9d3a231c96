//! Builds a node's conversation from the facts: the turns of its lineage, and the paths of their
//! texts. Reads no file, and goes back at most a bounded number of turns.

use super::document::LoggedTurn;
use crate::outcome_line::short_outcome_line;
use treebeam_core::conversation::{Conversation, PastTurn};
use treebeam_core::facts::{Eval, Facts, Node, NodeTurn};
use treebeam_core::id::{Depth, RunPath, Sha256, TurnId};

/// Largest number of turns that are recalled: a deep branch costs no more than a shallow one.
const MAX_RECALLED_TURNS: usize = 64;
/// Largest length of the line about a turn, in characters.
const MAX_TURN_LINE_CHARS: usize = 600;

/// A conversation whose texts are still to be read.
#[derive(Clone, Debug)]
pub(crate) struct ConversationThread {
    pub(crate) conversation: Conversation,
    /// Files of the turns' answers, in the same order; `None` for a turn without one.
    pub(crate) replies: Vec<Option<KeptText>>,
    /// The written summary of older turns, and the last of these turns.
    pub(crate) summary: Option<(TurnId, KeptText)>,
    /// Turns of the node itself.
    pub(crate) log: Vec<LoggedTurn>,
}

impl ConversationThread {
    /// Builds a thread that stands alone: its texts are loaded already, or gone.
    pub(crate) const fn from_conversation(conversation: Conversation) -> Self {
        Self { conversation, replies: Vec::new(), log: Vec::new(), summary: None }
    }
}

/// An answer on disk.
#[derive(Clone, Debug)]
pub(crate) struct KeptText {
    pub(crate) path: RunPath,
    /// Digest of the text; `None` for turns without a conversation.
    pub(crate) sha256: Option<Sha256>,
}

/// Builds the conversation of a node, with the outcomes that were decided before this depth. Short
/// lines of turns are copied from `like`, another thread at this depth, if it has them.
pub(crate) fn build_thread(
    facts: &Facts,
    node: &Node,
    depth: Depth,
    like: Option<&ConversationThread>,
) -> ConversationThread {
    let like = like.map_or(&[][..], |like| &like.conversation.turns);
    let mut newest_first: Vec<(PastTurn, Option<KeptText>)> = Vec::new();
    let (mut last, mut summary) = (u32::MAX, None);
    for ancestor in facts.lineage(node.id) {
        let room = MAX_RECALLED_TURNS - newest_first.len();
        let turns = ancestor.conversation_turns();
        let before = turns.iter().rev().filter(|turn| turn.id.number <= last);
        summary = summary.or_else(|| before.clone().find_map(turn_summary));
        newest_first.extend(before.take(room).map(|turn| recall_turn(turn, facts, depth, like)));
        if newest_first.len() == MAX_RECALLED_TURNS {
            break;
        }
        last = ancestor.forked_at().map_or(0, |turn| turn.number);
    }
    let (turns, replies) = newest_first.into_iter().rev().unzip();
    let fork_from_turn_id = node.forked_at();
    let conversation = Conversation { node_id: node.id, fork_from_turn_id, turns };
    let log = node.conversation_turns().iter().map(|turn| to_logged_turn(turn, facts)).collect();
    ConversationThread { conversation, replies, summary, log }
}

/// Returns the summary that was asked for in a turn.
fn turn_summary(known: &NodeTurn<'_>) -> Option<(TurnId, KeptText)> {
    let (summary, path) = known.summary_with_path()?;
    Some((summary.until, KeptText { path, sha256: Some(summary.reply) }))
}

fn recall_turn(
    known: &NodeTurn<'_>,
    facts: &Facts,
    depth: Depth,
    like: &[PastTurn],
) -> (PastTurn, Option<KeptText>) {
    let kept = match known.turn {
        Some(turn) => turn.reply.map(Some),
        None => Some(None),
    };
    let kept = kept.map(|sha256| KeptText { path: known.reply_path(), sha256 });
    let continuation = known.turn.and_then(|turn| turn.continuation.clone());
    let in_short = match like.iter().find(|past| past.turn_id == known.id) {
        Some(past) => past.in_short.clone(),
        None => {
            render_turn_line(known.turn.map(|turn| turn.asked), idea_lines(known, facts, depth))
        }
    };
    (PastTurn { turn_id: known.id, in_short, text: None, continuation }, kept)
}

/// Returns a line for each idea of a turn, with the outcome where that was known before this depth.
fn idea_lines<'a>(
    known: &NodeTurn<'a>,
    facts: &'a Facts,
    depth: Depth,
) -> impl Iterator<Item = impl FnOnce() -> String> {
    let number = Some(known.id.number);
    let evals = known.expansion.eval_ids().filter_map(|id| facts.eval(*id));
    let mine = evals.filter(move |eval| eval.is_current() && eval.idea.turn == number);
    mine.map(move |eval| move || idea_line(facts, &eval, depth))
}

fn idea_line(facts: &Facts, eval: &Eval, depth: Depth) -> String {
    if eval.depth < depth { short_outcome_line(facts, eval) } else { eval.idea.title.clone() }
}

fn to_logged_turn(known: &NodeTurn<'_>, facts: &Facts) -> LoggedTurn {
    let turn = known.turn;
    LoggedTurn {
        turn_id: known.id,
        key: known.key.clone(),
        mode: turn.map(|turn| turn.way),
        asked: turn.map(|turn| turn.asked),
        prompt_path: known.prompt_path(),
        prompt_sha256: turn.map(|turn| turn.prompt),
        reply_path: known.reply_path(),
        reply_sha256: turn.and_then(|turn| turn.reply),
        continued_id: turn.and_then(|turn| turn.continued.clone()),
        provider_id: turn.and_then(|turn| Some(turn.continuation.as_ref()?.id.clone())),
        output_files: known.ideas(facts).map(|idea| idea.path.clone()).collect(),
        note: turn.and_then(|turn| turn.note.clone()),
        at: known.expansion.started_at,
    }
}

/// Renders a turn on one line: how many ideas were asked for, and which came. Ideas that do not fit
/// are only counted.
pub(super) fn render_turn_line(
    asked: Option<u32>,
    brought: impl Iterator<Item = impl FnOnce() -> String>,
) -> String {
    let asked = asked.map_or_else(|| "ideas asked for".to_owned(), |n| format!("{n} asked for"));
    let (mut count, mut came, mut chars) = (0, Vec::new(), 0);
    for line in brought {
        count += 1;
        if chars <= MAX_TURN_LINE_CHARS {
            let line = line();
            chars += line.chars().filter(|char| !char.is_whitespace()).count();
            came.push(line);
        }
    }
    let came = match count {
        0 => "nothing new came".to_owned(),
        some => format!("{some} came: {}", came.join(" | ")),
    };
    let line: String = format!("{asked}; {came}").split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_TURN_LINE_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "what is missing shows at once")]

    use super::{MAX_TURN_LINE_CHARS, render_turn_line};
    use std::cell::Cell;

    #[test]
    fn a_turn_is_one_line_however_much_came() {
        let made = &Cell::new(0_usize);
        let of = |count: usize| {
            made.set(0);
            let lines = (0..count).map(|n| {
                move || {
                    made.set(made.get() + 1);
                    format!("way {n}\nof   many")
                }
            });
            render_turn_line(Some(5), lines)
        };
        assert_eq!(of(0), "5 asked for; nothing new came");
        assert_eq!(of(2), "5 asked for; 2 came: way 0 of many | way 1 of many");
        let [some, more] = [100, 100_000].map(|count| (of(count), made.get()));
        assert!(some.1 < 100, "{some:?}");
        assert_eq!(some.1, more.1);
        assert_eq!(some.0.chars().count(), MAX_TURN_LINE_CHARS + 1);
        let came = |line: String| line.split_once(": ").expect("what came").1.to_owned();
        // A longer count leaves less room for the ideas.
        let (some, more) = (came(some.0), came(more.0));
        assert!(some.starts_with(more.trim_end_matches('…')), "{some}\n{more}");
    }
}
