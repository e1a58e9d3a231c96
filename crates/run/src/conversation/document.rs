//! The files of a conversation: its state, its log and its summary, each a function of the known
//! turns. A state can be read again to continue the conversation, in a run or outside of one.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use treebeam_core::conversation::{ContinuationKind, Conversation, PastTurn};
use treebeam_core::id::{NodeId, RunPath, Sha256, TurnId};

/// Value of the `schema` field of a conversation's state.
pub const CONVERSATION_SCHEMA: &str = "treebeam.conversation/1";
/// Upper bound for the numbers of turns and conversations.
const MAX_TURN_NUMBER: u32 = 1_000_000_000;

/// A line of a log: one turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedTurn {
    /// Id of the turn.
    pub turn_id: TurnId,
    /// Permanent name of the question: a second turn with the same key is the same turn.
    pub key: String,
    /// How the turn continued the one before; `None` for turns without a conversation.
    pub mode: Option<ContinuationKind>,
    /// Number of ideas asked for.
    pub asked: Option<u32>,
    /// File of the question.
    pub prompt_path: RunPath,
    /// Digest of the question's file.
    pub prompt_sha256: Option<Sha256>,
    /// File of the answer.
    pub reply_path: RunPath,
    /// Digest of the answer's file; `None` if no answer came.
    pub reply_sha256: Option<Sha256>,
    /// The provider's id of the answer that was continued.
    pub continued_id: Option<String>,
    /// The provider's id of the answer.
    pub provider_id: Option<String>,
    /// Files of the ideas that the turn brought.
    pub output_files: Vec<RunPath>,
    /// Notes about irregularities of the turn.
    pub note: Option<String>,
    /// Time at which the expansion was begun.
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

/// The fields of [`Conversation`] without `deny_unknown_fields`, which serde cannot flatten.
#[derive(Serialize, Deserialize)]
struct ConversationFields {
    node_id: NodeId,
    fork_from_turn_id: Option<TurnId>,
    turns: Vec<PastTurn>,
}

/// Encodes a conversation as the bytes of its state file.
///
/// # Errors
/// None that is known; the JSON writer may return one.
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

/// Decodes the conversation of a state file.
///
/// # Errors
/// A text that describes why the file is no conversation.
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

/// Checks that each turn is there once, and that numbers are left for the next one.
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

/// Encodes turns as the bytes of a log.
///
/// # Errors
/// None that is known; the JSON writer may return one.
pub fn encode_log(turns: &[LoggedTurn]) -> serde_json::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for turn in turns {
        serde_json::to_writer(&mut bytes, turn)?;
        bytes.push(b'\n');
    }
    Ok(bytes)
}

/// Decodes the turns of a log, each once: a second line with the same key is ignored.
///
/// # Errors
/// A text that describes why a line is no turn.
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

/// Renders a short summary of the turns, for people.
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
