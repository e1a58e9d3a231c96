//! The files that are kept of a conversation: its state, its log and its summary, each a function of what is remembered. A
//! state can be read by whoever wants to go on from it, in a run or not.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use treebeam_core::conversation::{ContinuationKind, Conversation, PastTurn};
use treebeam_core::id::{NodeId, RunPath, Sha256, TurnId};

/// What a state says that it is.
pub const CONVERSATION_SCHEMA: &str = "treebeam.conversation/1";
/// No turn and no conversation has such a number.
const MAX_TURN_NUMBER: u32 = 1_000_000_000;

/// One line of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedTurn {
    /// Which turn.
    pub turn_id: TurnId,
    /// Names the question for good: a turn with a key that is there already is the same turn.
    pub key: String,
    /// How it went on from the turn before; not known of turns without a conversation.
    pub mode: Option<ContinuationKind>,
    /// How many ideas were asked for.
    pub asked: Option<u32>,
    /// The question.
    pub prompt_path: RunPath,
    /// Its digest.
    pub prompt_sha256: Option<Sha256>,
    /// The answer.
    pub reply_path: RunPath,
    /// Its digest; none came where there is none.
    pub reply_sha256: Option<Sha256>,
    /// The provider's name for the answer that it went on from.
    pub continued_id: Option<String>,
    /// The provider's name for the answer.
    pub provider_id: Option<String>,
    /// The ideas that it brought.
    pub output_files: Vec<RunPath>,
    /// What did not go as it was meant to.
    pub note: Option<String>,
    /// When its expansion was begun.
    pub at: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct ConversationDocument {
    schema: String,
    conversation_id: String,
    latest_turn_id: Option<TurnId>,
    #[serde(flatten)]
    conversation: ConversationFields,
}

/// The same fields: a flattened part cannot refuse what it does not know.
#[derive(Serialize, Deserialize)]
struct ConversationFields {
    node_id: NodeId,
    fork_from_turn_id: Option<TurnId>,
    turns: Vec<PastTurn>,
}

/// A conversation as the bytes of a file.
///
/// # Errors
/// None that is known; a writer of JSON may say one.
pub fn encode_state(conversation: &Conversation) -> serde_json::Result<Vec<u8>> {
    let Conversation { node_id, fork_from_turn_id, turns } = conversation.clone();
    let state = ConversationDocument {
        schema: CONVERSATION_SCHEMA.to_owned(),
        conversation_id: format!("c{node_id}"),
        latest_turn_id: conversation.latest_turn(),
        conversation: ConversationFields { node_id, fork_from_turn_id, turns },
    };
    let mut bytes = serde_json::to_vec_pretty(&state)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// The conversation that a file holds.
///
/// # Errors
/// When it is none; in words.
pub fn decode_state(bytes: &[u8]) -> Result<Conversation, String> {
    let state: ConversationDocument =
        serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if state.schema != CONVERSATION_SCHEMA {
        return Err(format!("its `schema` is {:?}, not `{CONVERSATION_SCHEMA}`", state.schema));
    }
    let ConversationFields { node_id, fork_from_turn_id, turns } = state.conversation;
    let conversation = Conversation { node_id, fork_from_turn_id, turns };
    check_turns(&conversation)?;
    Ok(conversation)
}

/// Each turn is there once, and there is a name for the next one.
fn check_turns(conversation: &Conversation) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for PastTurn { turn_id, .. } in &conversation.turns {
        if !seen.insert(turn_id) {
            return Err(format!("the turn `{turn_id}` is in it twice"));
        }
        if turn_id.number >= MAX_TURN_NUMBER || turn_id.node.number() >= MAX_TURN_NUMBER {
            return Err(format!("the number of the turn `{turn_id}` is too high"));
        }
    }
    if conversation.node_id.number() >= MAX_TURN_NUMBER {
        return Err(format!(
            "the number of the conversation `c{}` is too high",
            conversation.node_id
        ));
    }
    Ok(())
}

/// Turns as the bytes of a log.
///
/// # Errors
/// None that is known; a writer of JSON may say one.
pub fn encode_log(turns: &[LoggedTurn]) -> serde_json::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for turn in turns {
        serde_json::to_writer(&mut bytes, turn)?;
        bytes.push(b'\n');
    }
    Ok(bytes)
}

/// The turns that a log holds, each once: a second line with the same key says nothing new.
///
/// # Errors
/// When a line is none; in words.
pub fn decode_log(bytes: &[u8]) -> Result<Vec<LoggedTurn>, String> {
    let mut turns: Vec<LoggedTurn> = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let turn: LoggedTurn = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        if turns.iter().all(|before| before.key != turn.key) {
            turns.push(turn);
        }
    }
    Ok(turns)
}

/// What was said, in short, for people.
#[must_use]
pub fn render_summary(conversation: &Conversation) -> String {
    let fork = match conversation.fork_from_turn_id {
        Some(turn) => format!("Goes on from turn {turn}.\n\n"),
        None => String::new(),
    };
    let line = |past: &PastTurn| format!("- {}: {}\n", past.turn_id, past.in_short);
    let lines: String = conversation.turns.iter().map(line).collect();
    format!("# Conversation c{}\n\n{fork}{lines}", conversation.node_id)
}
