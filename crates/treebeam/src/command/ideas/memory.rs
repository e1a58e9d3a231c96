//! The conversation of `treebeam ideas`: the file that it goes on from, the turn that it forks from, and the file that it goes
//! to. What is told of it again is not known here.

use crate::cli::IdeasArgs;
use crate::failure::Failure;
use crate::terminal;
use jiff::Timestamp;
use std::path::{Path, PathBuf};
use treebeam_core::conversation::{Conversation, Mode};
use treebeam_core::id::{NodeId, TurnId};
use treebeam_core::policy::Reach;
use treebeam_edge::ideas_dir::{self, StateFile};
use treebeam_edge::input;
use treebeam_run::alone::Before;
use treebeam_run::conversation::document;

/// The longest state that is read.
const MOST_BYTES: u64 = 256 << 20;
const FORM: &str =
    "give a file that `--conversation-state-out` wrote, or `conversations/c0003.json` of a run";

/// What is remembered, and where that is to be kept.
pub(super) struct Memory {
    pub(super) before: Before,
    out: Option<PathBuf>,
}

impl Memory {
    /// Reads what there is, and looks whether it can be written: before anything is paid for.
    pub(super) fn open(here: &Path, args: &IdeasArgs, reach: &Reach) -> Result<Self, Failure> {
        let mode = reach.idea_conversation_mode;
        let is_off = mode == Mode::Off;
        if is_off && (args.conversation_state_in.is_some() || args.conversation_state_out.is_some())
        {
            terminal::note("the conversation is `off`: its files are neither read nor written");
        }
        let out = args.conversation_state_out.as_ref().filter(|_| !is_off);
        let out = out.map(|named| writable(here, named)).transpose()?;
        let conversation = match &args.conversation_state_in {
            Some(named) if !is_off => read(here, named, args.fork_from_turn_id)?,
            Some(_) | None => {
                let (node_id, fork_from_turn_id) = (NodeId::ROOT, None);
                Conversation { node_id, fork_from_turn_id, turns: Vec::new() }
            }
        };
        let before = Before {
            mode,
            window: reach.idea_history_window_turns.get() as usize,
            max_chars: reach.idea_history_max_chars.get() as usize,
            conversation,
            at: Timestamp::now(),
        };
        Ok(Self { before, out })
    }

    /// The file that a conversation goes to, if it goes anywhere.
    pub(super) fn file(&self, said: Option<&Conversation>) -> Result<Option<StateFile>, Failure> {
        let (Some(path), Some(said)) = (&self.out, said) else { return Ok(None) };
        let text = String::from_utf8_lossy(&document::state(said)?).into_owned();
        Ok(Some(StateFile { path: path.clone(), text }))
    }

    /// Nobody was asked: what was read is handed on, unless an earlier call has written more.
    pub(super) fn hand_on(&self) -> Result<(), Failure> {
        let said = self.before.handed_on(self.before.conversation.clone());
        if let Some(file) = self.file(said.as_ref())? {
            ideas_dir::put_state(&file)?;
        }
        Ok(())
    }
}

/// A file that can be written, whole: whoever finishes what is begun may be called elsewhere.
fn writable(here: &Path, named: &Path) -> Result<PathBuf, Failure> {
    let path = std::path::absolute(here.join(named))?;
    if path.to_str().is_none() {
        return Err(Failure::usage(format!("the path of `{}` is not UTF-8", named.display())));
    }
    ideas_dir::must_be_writable(&path)?;
    Ok(path)
}

fn read(here: &Path, named: &Path, fork: Option<TurnId>) -> Result<Conversation, Failure> {
    let name = named.display().to_string();
    let text = input::text(&here.join(named), &name, MOST_BYTES)?;
    let read = document::read_state(text.as_bytes());
    let conversation = read
        .map_err(|why| Failure::usage(format!("`{name}` is no conversation: {why}")).hint(FORM))?;
    let Some(at) = fork else { return Ok(conversation) };
    conversation.fork(conversation.next_node(), at).ok_or_else(|| {
        let turns =
            conversation.turns.iter().rev().take(10).map(|past| format!("`{}`", past.turn_id));
        let mut turns: Vec<String> = turns.collect();
        turns.reverse();
        let hint = match turns.as_slice() {
            [] => "nothing has been said in it yet".to_owned(),
            turns => format!("its last turns are {}", turns.join(", ")),
        };
        Failure::usage(format!("`{name}` has no turn `{at}`")).hint(hint)
    })
}
