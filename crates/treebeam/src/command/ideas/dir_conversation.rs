//! Reads and writes the conversation files of `treebeam ideas`, and resolves the turn to fork from.
//!
//! Which turns go into a prompt is decided elsewhere.

use crate::cli::IdeasArgs;
use crate::failure::CommandFailure;
use crate::terminal;
use jiff::Timestamp;
use std::path::{Path, PathBuf};
use treebeam_core::conversation::{Conversation, ConversationMode};
use treebeam_core::id::{NodeId, TurnId};
use treebeam_core::policy::RunLimits;
use treebeam_run::conversation::document;
use treebeam_run::standalone_ideas::PriorConversation;
use treebeam_store::ideas_dir::{self, UserConversationFile};
use treebeam_store::input;

/// Maximum size of a conversation file.
const MAX_STATE_BYTES: u64 = 256 << 20;
const STATE_FILE_HINT: &str =
    "give a file that `--conversation-state-out` wrote, or `conversations/c0003.json` of a run";

/// The conversation so far, and the file to write it to.
pub(super) struct IdeasDirConversation {
    pub(super) before: PriorConversation,
    out: Option<PathBuf>,
}

impl IdeasDirConversation {
    /// Reads the given state, and checks that the output is writable, before any cost arises.
    pub(super) fn open(
        here: &Path,
        args: &IdeasArgs,
        limits: &RunLimits,
    ) -> Result<Self, CommandFailure> {
        let mode = limits.idea_conversation_mode;
        let is_off = mode == ConversationMode::Off;
        if is_off && (args.conversation_state_in.is_some() || args.conversation_state_out.is_some())
        {
            terminal::print_note(
                "the conversation is `off`: its files are neither read nor written",
            );
        }
        let out = args.conversation_state_out.as_ref().filter(|_| !is_off);
        let out = out.map(|named| writable_path(here, named)).transpose()?;
        let conversation = match &args.conversation_state_in {
            Some(named) if !is_off => read_conversation(here, named, args.fork_from_turn_id)?,
            Some(_) | None => {
                let (node_id, fork_from_turn_id) = (NodeId::ROOT, None);
                Conversation { node_id, fork_from_turn_id, turns: Vec::new() }
            }
        };
        let before = PriorConversation {
            mode,
            window: limits.idea_history_window_turns.get() as usize,
            max_chars: limits.idea_history_max_chars.get() as usize,
            conversation,
            at: Timestamp::now(),
        };
        Ok(Self { before, out })
    }

    /// Returns the conversation file to write, if one is wanted.
    pub(super) fn state_file(
        &self,
        conversation: Option<&Conversation>,
    ) -> Result<Option<UserConversationFile>, CommandFailure> {
        let (Some(path), Some(conversation)) = (&self.out, conversation) else { return Ok(None) };
        let text = String::from_utf8_lossy(&document::encode_state(conversation)?).into_owned();
        Ok(Some(UserConversationFile { path: path.clone(), text }))
    }

    /// Writes the conversation that was read, without new turns, unless an earlier call has written
    /// more.
    pub(super) fn write_unchanged(&self) -> Result<(), CommandFailure> {
        let said = self.before.trim_conversation(self.before.conversation.clone());
        if let Some(file) = self.state_file(said.as_ref())? {
            ideas_dir::write_conversation_file(&file)?;
        }
        Ok(())
    }
}

/// Returns the absolute path of a writable file: an interrupted call may be completed from another
/// folder.
fn writable_path(here: &Path, named: &Path) -> Result<PathBuf, CommandFailure> {
    let path = std::path::absolute(here.join(named))?;
    if path.to_str().is_none() {
        return Err(CommandFailure::usage(format!(
            "the path of `{}` is not UTF-8",
            named.display()
        )));
    }
    ideas_dir::must_be_writable(&path)?;
    Ok(path)
}

fn read_conversation(
    here: &Path,
    named: &Path,
    fork: Option<TurnId>,
) -> Result<Conversation, CommandFailure> {
    let name = named.display().to_string();
    let text = input::read_text(&here.join(named), &name, MAX_STATE_BYTES)?;
    let read = document::decode_state(text.as_bytes());
    let conversation = read.map_err(|why| {
        CommandFailure::usage(format!("`{name}` is no conversation: {why}"))
            .with_hint(STATE_FILE_HINT)
    })?;
    let Some(at) = fork else { return Ok(conversation) };
    conversation.fork_at(conversation.next_node_id(), at).ok_or_else(|| {
        let turns =
            conversation.turns.iter().rev().take(10).map(|past| format!("`{}`", past.turn_id));
        let mut turns: Vec<String> = turns.collect();
        turns.reverse();
        let hint = match turns.as_slice() {
            [] => "nothing has been said in it yet".to_owned(),
            turns => format!("its last turns are {}", turns.join(", ")),
        };
        CommandFailure::usage(format!("`{name}` has no turn `{at}`")).with_hint(hint)
    })
}
