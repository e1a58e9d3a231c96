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

/// The conversation of a node, with the outcomes of what was decided before this depth.
pub(crate) fn thread(facts: &Facts, node: &Node, depth: Depth) -> Thread {
    let mut newest_first: Vec<(Past, Option<Kept>)> = Vec::new();
    let (mut last, mut summary) = (u32::MAX, None);
    for ancestor in facts.lineage(node.id) {
        let room = MOST_TURNS - newest_first.len();
        let turns = ancestor.conversation();
        let before = turns.iter().rev().filter(|turn| turn.id.number <= last);
        summary = summary.or_else(|| before.clone().find_map(summed_up));
        newest_first.extend(before.take(room).map(|turn| recalled(turn, facts, depth)));
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

fn recalled(known: &KnownTurn<'_>, facts: &Facts, depth: Depth) -> (Past, Option<Kept>) {
    let kept = match known.turn {
        Some(turn) => turn.reply.map(Some),
        None => Some(None),
    };
    let kept = kept.map(|sha256| Kept { path: known.reply_path(), sha256 });
    let continuation = known.turn.and_then(|turn| turn.continuation.clone());
    let asked = known.turn.map(|turn| turn.asked);
    let in_short = in_short(asked, &brought(known, facts, depth));
    (Past { turn_id: known.id, in_short, text: None, continuation }, kept)
}

/// What it brought, each with its outcome where that was known before this depth.
fn brought(known: &KnownTurn<'_>, facts: &Facts, depth: Depth) -> Vec<String> {
    let evals = known.expansion.evals().filter_map(|id| facts.eval(*id));
    let mine = evals.filter(|eval| eval.stands() && eval.idea.turn == Some(known.id.number));
    mine.map(|eval| short_line(facts, &eval, depth)).collect()
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

/// A turn on one line: how many ideas were asked for, and what came.
pub(super) fn in_short(asked: Option<u32>, brought: &[String]) -> String {
    let asked = asked.map_or_else(|| "ideas asked for".to_owned(), |n| format!("{n} asked for"));
    let came = match brought {
        [] => "nothing new came".to_owned(),
        some => format!("{} came: {}", some.len(), some.join(" | ")),
    };
    let line: String = format!("{asked}; {came}").split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LINE_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}
