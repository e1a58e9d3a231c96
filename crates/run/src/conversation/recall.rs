//! What the facts know of a node's conversation: the turns of its lineage up to each fork, and where their texts lie. Reads
//! no file, and goes back no further than a bounded number of turns.

use super::document::Logged;
use crate::brief;
use treebeam_core::conversation::{Conversation, Past};
use treebeam_core::facts::{Eval, Facts, KnownTurn, Node};
use treebeam_core::id::{Depth, RunPath, Sha256, TurnId};

/// The most turns that are remembered at all: a deep branch costs no more than a shallow one.
const MOST_TURNS: usize = 64;
/// The longest line about a turn, in characters.
const LINE_CHARS: usize = 600;

/// A conversation whose texts are still to be read.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    pub(crate) conversation: Conversation,
    /// Where the answers of these turns lie, in the same order; none where there was none.
    pub(crate) replies: Vec<Option<Kept>>,
    /// What somebody wrote about its older turns, and the last of these.
    pub(crate) summary: Option<(TurnId, Kept)>,
    /// Its own turns.
    pub(crate) log: Vec<Logged>,
}

impl Thread {
    /// One that stands for itself: its texts are at hand, or gone.
    pub(crate) const fn alone(conversation: Conversation) -> Self {
        Self { conversation, replies: Vec::new(), log: Vec::new(), summary: None }
    }
}

/// An answer on disk.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) path: RunPath,
    /// Not known of turns without a conversation.
    pub(crate) sha256: Option<Sha256>,
}

/// The conversation of a node, with the outcomes of what was decided before this depth. What another one at this depth has in
/// short is not put into words again.
pub(crate) fn thread(facts: &Facts, node: &Node, depth: Depth, like: Option<&Thread>) -> Thread {
    let like = like.map_or(&[][..], |like| &like.conversation.turns);
    let mut newest_first: Vec<(Past, Option<Kept>)> = Vec::new();
    let (mut last, mut summary) = (u32::MAX, None);
    for ancestor in facts.lineage(node.id) {
        let room = MOST_TURNS - newest_first.len();
        let turns = ancestor.conversation();
        let before = turns.iter().rev().filter(|turn| turn.id.number <= last);
        summary = summary.or_else(|| before.clone().find_map(summed_up));
        newest_first.extend(before.take(room).map(|turn| recalled(turn, facts, depth, like)));
        if newest_first.len() == MOST_TURNS {
            break;
        }
        last = ancestor.forked_at().map_or(0, |turn| turn.number);
    }
    let (turns, replies) = newest_first.into_iter().rev().unzip();
    let fork_from_turn_id = node.forked_at();
    let conversation = Conversation { node_id: node.id, fork_from_turn_id, turns };
    let log = node.conversation().iter().map(|turn| logged(turn, facts)).collect();
    Thread { conversation, replies, summary, log }
}

/// The summary that was asked for in a turn.
fn summed_up(known: &KnownTurn<'_>) -> Option<(TurnId, Kept)> {
    let (summary, path) = known.summary()?;
    Some((summary.until, Kept { path, sha256: Some(summary.reply) }))
}

fn recalled(
    known: &KnownTurn<'_>,
    facts: &Facts,
    depth: Depth,
    like: &[Past],
) -> (Past, Option<Kept>) {
    let kept = match known.turn {
        Some(turn) => turn.reply.map(Some),
        None => Some(None),
    };
    let kept = kept.map(|sha256| Kept { path: known.reply_path(), sha256 });
    let continuation = known.turn.and_then(|turn| turn.continuation.clone());
    let in_short = match like.iter().find(|past| past.turn_id == known.id) {
        Some(past) => past.in_short.clone(),
        None => in_short(known.turn.map(|turn| turn.asked), brought(known, facts, depth)),
    };
    (Past { turn_id: known.id, in_short, text: None, continuation }, kept)
}

/// What it brought, each with its outcome where that was known before this depth.
fn brought<'a>(
    known: &KnownTurn<'a>,
    facts: &'a Facts,
    depth: Depth,
) -> impl Iterator<Item = impl FnOnce() -> String> {
    let number = Some(known.id.number);
    let evals = known.expansion.evals().filter_map(|id| facts.eval(*id));
    let mine = evals.filter(move |eval| eval.stands() && eval.idea.turn == number);
    mine.map(move |eval| move || short_line(facts, &eval, depth))
}

fn short_line(facts: &Facts, eval: &Eval, depth: Depth) -> String {
    if eval.depth < depth { brief::short_line(facts, eval) } else { eval.idea.title.clone() }
}

fn logged(known: &KnownTurn<'_>, facts: &Facts) -> Logged {
    let turn = known.turn;
    Logged {
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

/// A turn on one line: how many ideas were asked for, and what came. What has no room on it is counted alone.
pub(super) fn in_short(
    asked: Option<u32>,
    brought: impl Iterator<Item = impl FnOnce() -> String>,
) -> String {
    let asked = asked.map_or_else(|| "ideas asked for".to_owned(), |n| format!("{n} asked for"));
    let (mut count, mut came, mut chars) = (0, Vec::new(), 0);
    for line in brought {
        count += 1;
        if chars <= LINE_CHARS {
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
    match line.char_indices().nth(LINE_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "what is missing shows at once")]

    use super::{LINE_CHARS, in_short};
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
            in_short(Some(5), lines)
        };
        assert_eq!(of(0), "5 asked for; nothing new came");
        assert_eq!(of(2), "5 asked for; 2 came: way 0 of many | way 1 of many");
        let [some, more] = [100, 100_000].map(|count| (of(count), made.get()));
        assert!(some.1 < 100, "{some:?}");
        assert_eq!(some.1, more.1);
        assert_eq!(some.0.chars().count(), LINE_CHARS + 1);
        let came = |line: String| line.split_once(": ").expect("what came").1.to_owned();
        // A longer count leaves less room for what came.
        let (some, more) = (came(some.0), came(more.0));
        assert!(some.starts_with(more.trim_end_matches('…')), "{some}\n{more}");
    }
}
