//! Leads the turns of one expansion: continues from earlier turns, records new ones, writes the
//! files. Damaged files are copied aside, mentioned in a note, and made again from the record.

use super::document::{self, LoggedTurn};
use super::recall::{ConversationThread, KeptText, render_turn_line};
use super::sum_up::SummaryTask;
use crate::port::{AgentReply, FileStore, PortError};
use jiff::Timestamp;
use std::sync::{Mutex, PoisonError};
use treebeam_core::conversation::{
    Continuation, ContinuationKind, Conversation, ConversationMode, PastTurn, Turn, TurnSummary,
    WrittenSummary, count_summarised_turns, pack_with_summary,
};
use treebeam_core::event::Idea;
use treebeam_core::id::{NodeId, RunPath, Sha256, TurnId};
use treebeam_core::role::AgentRole;
use treebeam_core::{idea, path};

/// Largest file of a conversation, or answer, that is read, in bytes.
const MAX_CONVERSATION_BYTES: usize = 64 << 20;
/// Largest length of a note, in characters.
const MAX_NOTE_CHARS: usize = 400;

/// Serialises repairs: two repairs of one file must not see each other's half-written copy.
static REPAIR_LOCK: Mutex<()> = Mutex::new(());

/// The settings and earlier turns with which a conversation continues.
#[derive(Debug)]
pub(crate) struct ConversationBrief {
    pub(crate) mode: ConversationMode,
    /// Largest number of turns that are repeated verbatim.
    pub(crate) window: usize,
    /// Largest number of characters of all that is repeated.
    pub(crate) max_chars: usize,
    /// The role that summarises older turns.
    pub(crate) summary_agent: Option<AgentRole>,
    pub(crate) own: ConversationThread,
    /// The conversation that this one forks from.
    pub(crate) parent: Option<ConversationThread>,
    /// Time at which the expansion was begun.
    pub(crate) at: Timestamp,
}

/// State of the provider's own memory of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProviderMemory {
    /// The provider remembers earlier turns.
    Trusted,
    /// The provider has no memory, or has lost it.
    None,
}

/// A conversation during one expansion.
pub(crate) struct ConversationSession<'a> {
    brief: &'a ConversationBrief,
    native: ProviderMemory,
    conversation: Conversation,
    log: Vec<LoggedTurn>,
    turns: Vec<Turn>,
    notes: Vec<String>,
    /// The written summary of older turns.
    written: Option<WrittenSummary>,
    /// Record of a summary that was written for the next turn.
    fresh: Option<TurnSummary>,
}

/// How a question continues the earlier turns.
#[derive(Clone, Debug)]
pub(crate) struct TurnContext {
    kind: ContinuationKind,
    /// Earlier turns, as text for the prompt.
    pub(crate) memory: String,
    /// The answer that the provider is to continue.
    pub(crate) continues: Option<Continuation>,
}

/// A question and its answer, if there was one.
pub(crate) struct TurnExchange<'a> {
    pub(crate) key: &'a str,
    pub(crate) asked: u32,
    pub(crate) prompt: &'a str,
    pub(crate) reply: Option<&'a AgentReply>,
    /// New ideas in the answer.
    pub(crate) ideas: &'a [String],
}

impl<'a> ConversationSession<'a> {
    /// Opens a conversation where it was left. `continues` returns true if the agent has a memory
    /// of its own.
    pub(crate) fn open(
        brief: &'a ConversationBrief,
        continues: impl FnOnce() -> bool,
        files: &dyn FileStore,
    ) -> Result<Self, PortError> {
        let mut talk = Self::from_brief(brief, continues);
        if brief.mode != ConversationMode::Off {
            for thread in brief.parent.iter().chain([&brief.own]) {
                talk.notes.extend(repair_files(thread, brief.window, files)?);
            }
            let window = talk.read_summary(files)?;
            let lost =
                load_recent_texts(&mut talk.conversation, &brief.own.replies, window, files)?;
            talk.notes.extend(lost);
        }
        Ok(talk)
    }

    /// Reads the written summary of older turns, if one is wanted. Returns how many of the newest
    /// turns have to be read besides: the next summary continues this one, and needs all turns
    /// after it.
    fn read_summary(&mut self, files: &dyn FileStore) -> Result<usize, PortError> {
        if self.brief.summary_agent.is_none() {
            return Ok(self.brief.window);
        }
        if let Some((until, kept)) = &self.brief.own.summary {
            match read_kept_text(kept, files)? {
                Some(text) => self.written = Some(WrittenSummary { until: *until, text }),
                None => self.notes.push(format!("the summary `{}` is lost", kept.path)),
            }
        }
        let after = self.conversation.turns.len().saturating_sub(self.summarized_turns());
        Ok(after.max(self.brief.window))
    }

    /// Returns the number of turns, the oldest ones, that the written summary covers.
    fn summarized_turns(&self) -> usize {
        let Some(written) = &self.written else { return 0 };
        let turns = &self.conversation.turns;
        turns.iter().position(|past| past.turn_id == written.until).map_or(0, |last| last + 1)
    }

    /// Returns the summary to be written before the next question, if one is wanted: for turns that
    /// are no longer repeated verbatim.
    pub(super) fn pending_summary(&self) -> Option<SummaryTask<'_>> {
        let role = self.brief.summary_agent?;
        if self.turn_context().memory.is_empty() {
            return None;
        }
        let (window, most) = (self.brief.window, self.brief.max_chars);
        let turns = &self.conversation.turns;
        let turns =
            turns.get(self.summarized_turns()..count_summarised_turns(turns, window, most))?;
        let until = turns.last()?.turn_id;
        let before = self.written.as_ref().map(|written| written.text.as_str());
        let node = self.conversation.node_id;
        Some(SummaryTask { role, node, before, turns, until, max_chars: most })
    }

    pub(super) fn accept_summary(&mut self, until: TurnId, text: String) {
        self.fresh = Some(TurnSummary { until, reply: Sha256::hash_bytes(text.as_bytes()) });
        self.written = Some(WrittenSummary { until, text });
    }

    pub(super) fn add_note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Builds a session from a brief alone, without reading or repairing files.
    pub(crate) fn from_brief(
        brief: &'a ConversationBrief,
        continues: impl FnOnce() -> bool,
    ) -> Self {
        let trusted = brief.mode.wants_native() && continues();
        Self {
            brief,
            native: if trusted { ProviderMemory::Trusted } else { ProviderMemory::None },
            conversation: brief.own.conversation.clone(),
            log: brief.own.log.clone(),
            turns: Vec::new(),
            notes: Vec::new(),
            written: None,
            fresh: None,
        }
    }

    /// Returns how the next question continues the earlier turns.
    pub(crate) fn turn_context(&self) -> TurnContext {
        let nothing = |way, continues| TurnContext { kind: way, memory: String::new(), continues };
        if self.brief.mode == ConversationMode::Off {
            return nothing(ContinuationKind::Replay, None);
        }
        let is_first = !self.conversation.turns.iter().any(PastTurn::is_answered);
        match (self.native, self.conversation.latest_continuation()) {
            (ProviderMemory::Trusted, Some(from)) => {
                nothing(ContinuationKind::Native, Some(from.clone()))
            }
            (ProviderMemory::Trusted, None) if is_first => nothing(ContinuationKind::Native, None),
            (ProviderMemory::Trusted | ProviderMemory::None, _) => {
                let (window, most) = (self.brief.window, self.brief.max_chars);
                let written = self.written.as_ref();
                let memory = pack_with_summary(&self.conversation.turns, written, window, most);
                TurnContext { kind: ContinuationKind::Replay, memory, continues: None }
            }
        }
    }

    /// Notes that the provider has lost its memory: from now on earlier turns are repeated.
    pub(crate) fn drop_provider_memory(&mut self, why: &str) {
        self.native = ProviderMemory::None;
        self.notes
            .push(format!("the provider has forgotten what was said, it is told again: {why}"));
    }

    /// Records a turn.
    pub(crate) fn record_turn(&mut self, turn_context: &TurnContext, exchange: &TurnExchange<'_>) {
        if self.brief.mode == ConversationMode::Off {
            return;
        }
        let turn_id = self.conversation.next_turn();
        let note = std::mem::take(&mut self.notes).join("; ");
        let turn = Turn {
            asked: exchange.asked,
            way: turn_context.kind,
            prompt: Sha256::hash_bytes(exchange.prompt.as_bytes()),
            reply: exchange.reply.map(|reply| Sha256::hash_bytes(reply.text.as_bytes())),
            continued: turn_context.continues.as_ref().map(|from| from.id.clone()),
            continuation: exchange.reply.and_then(AgentReply::continuation),
            summary: self.fresh.take(),
            note: (!note.is_empty()).then(|| note.chars().take(MAX_NOTE_CHARS).collect()),
        };
        let titles = exchange.ideas.iter().map(|text| || idea::idea_title(text));
        self.conversation.turns.push(PastTurn {
            turn_id,
            in_short: render_turn_line(Some(exchange.asked), titles),
            text: exchange.reply.map(|reply| reply.text.clone()),
            continuation: turn.continuation.clone(),
        });
        self.log.push(LoggedTurn {
            turn_id,
            key: exchange.key.to_owned(),
            mode: Some(turn.way),
            asked: Some(turn.asked),
            prompt_path: path::idea_prompt_file(turn_id.node, exchange.key),
            prompt_sha256: Some(turn.prompt),
            reply_path: path::idea_reply_file(turn_id.node, exchange.key),
            reply_sha256: turn.reply,
            continued_id: turn.continued.clone(),
            provider_id: turn.continuation.as_ref().map(|from| from.id.clone()),
            output_files: Vec::new(),
            note: turn.note.clone(),
            at: self.brief.at,
        });
        self.turns.push(turn);
    }

    /// Returns the conversation and its new turns, for a caller that keeps them.
    pub(crate) fn into_conversation(mut self) -> (Conversation, Vec<LoggedTurn>) {
        drop_old_texts(&mut self.conversation, self.brief.window);
        (self.conversation, self.log)
    }

    /// Writes the files, and returns the turns to be recorded.
    pub(crate) fn write_files(
        mut self,
        ideas: &[Idea],
        files: &dyn FileStore,
    ) -> Result<Vec<Turn>, PortError> {
        if self.turns.is_empty() {
            return Ok(self.turns);
        }
        let new = self.log.len() - self.turns.len();
        for logged in self.log.iter_mut().skip(new) {
            let mine = ideas.iter().filter(|idea| idea.turn == Some(logged.turn_id.number));
            logged.output_files = mine.map(|idea| idea.path.clone()).collect();
        }
        drop_old_texts(&mut self.conversation, self.brief.window);
        write_conversation(&self.conversation, &self.log, files)?;
        Ok(self.turns)
    }
}

/// Drops the texts of all turns but the newest.
fn drop_old_texts(conversation: &mut Conversation, window: usize) {
    let older = conversation.turns.len().saturating_sub(window);
    for past in conversation.turns.iter_mut().take(older) {
        past.text = None;
    }
}

/// Reads the texts of the newest turns, and returns a note for each lost one.
fn load_recent_texts(
    conversation: &mut Conversation,
    replies: &[Option<KeptText>],
    window: usize,
    files: &dyn FileStore,
) -> Result<Vec<String>, PortError> {
    let mut notes = Vec::new();
    let newest = conversation.turns.iter_mut().zip(replies).rev().take(window);
    for (past, kept) in newest {
        let Some(kept) = kept else { continue };
        past.text = read_kept_text(kept, files)?;
        if past.text.is_none() && kept.sha256.is_some() {
            notes.push(format!("the text of turn {} is lost (`{}`)", past.turn_id, kept.path));
        }
    }
    Ok(notes)
}

/// Reads a text; `None` if it is gone or has another digest.
fn read_kept_text(kept: &KeptText, files: &dyn FileStore) -> Result<Option<String>, PortError> {
    let bytes = files.find_file(&kept.path, MAX_CONVERSATION_BYTES)?;
    let whole =
        bytes.filter(|bytes| kept.sha256.is_none_or(|sha256| sha256 == Sha256::hash_bytes(bytes)));
    Ok(whole.and_then(|bytes| String::from_utf8(bytes).ok()))
}

/// Rewrites the damaged files of a conversation, and returns a note about it.
fn repair_files(
    thread: &ConversationThread,
    window: usize,
    files: &dyn FileStore,
) -> Result<Option<String>, PortError> {
    if thread.log.is_empty() {
        return Ok(None);
    }
    // The children of a node may find the same damage at the same time.
    let _alone = REPAIR_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let damaged = find_damaged_files(thread, files)?;
    if damaged.is_empty() {
        return Ok(None);
    }
    for path in &damaged {
        copy_aside(path, files)?;
    }
    let mut conversation = thread.conversation.clone();
    let lost = load_recent_texts(&mut conversation, &thread.replies, window, files)?;
    write_conversation(&conversation, &thread.log, files)?;
    let names: Vec<String> = damaged.iter().map(|path| format!("`{path}`")).collect();
    let note = format!("made anew from the record: {}", names.join(", "));
    Ok(Some(std::iter::once(note).chain(lost).collect::<Vec<_>>().join("; ")))
}

/// Returns the files of a conversation that are missing, unreadable, or lack a recorded turn.
/// Additional turns are no damage: a process may have died before it recorded them.
fn find_damaged_files(
    thread: &ConversationThread,
    files: &dyn FileStore,
) -> Result<Vec<RunPath>, PortError> {
    let [state, log, summary] = conversation_paths(thread.conversation.node_id);
    let mut damaged = Vec::new();
    for (path, is_sound) in [
        (state, is_state_intact as fn(&ConversationThread, &[u8]) -> bool),
        (log, is_log_intact),
        (summary, |_, bytes| bytes.starts_with(b"# Conversation") && str::from_utf8(bytes).is_ok()),
    ] {
        if !files
            .find_file(&path, MAX_CONVERSATION_BYTES)?
            .is_some_and(|bytes| is_sound(thread, &bytes))
        {
            damaged.push(path);
        }
    }
    Ok(damaged)
}

fn is_state_intact(thread: &ConversationThread, bytes: &[u8]) -> bool {
    let latest = thread.conversation.latest_turn();
    let is_there =
        |state: Conversation| state.turns.iter().any(|past| Some(past.turn_id) == latest);
    document::decode_state(bytes).is_ok_and(is_there)
}

fn is_log_intact(thread: &ConversationThread, bytes: &[u8]) -> bool {
    let keys = |log: &[LoggedTurn]| log.iter().map(|turn| turn.key.clone()).collect::<Vec<_>>();
    document::decode_log(bytes).is_ok_and(|log| keys(&log).starts_with(&keys(&thread.log)))
}

/// Copies a damaged file aside, for a person to look at.
fn copy_aside(path: &RunPath, files: &dyn FileStore) -> Result<(), PortError> {
    let Some(bytes) = files.find_file(path, MAX_CONVERSATION_BYTES)? else { return Ok(()) };
    let name = path.as_str().rsplit('/').next().unwrap_or_default();
    files.write_file(&path::damaged_conversation(name), &bytes)
}

fn conversation_paths(node: NodeId) -> [RunPath; 3] {
    [path::conversation_state(node), path::conversation_log(node), path::conversation_summary(node)]
}

fn write_conversation(
    conversation: &Conversation,
    log: &[LoggedTurn],
    files: &dyn FileStore,
) -> Result<(), PortError> {
    let node = conversation.node_id;
    let unwritable =
        |error| PortError::new(format!("cannot write conversation c{node}")).with_cause(error);
    let [state_path, log_path, summary_path] = conversation_paths(node);
    files.write_file(&state_path, &document::encode_state(conversation).map_err(unwritable)?)?;
    files.write_file(&log_path, &document::encode_log(log).map_err(unwritable)?)?;
    files.write_file(&summary_path, document::render_summary(conversation).as_bytes())
}
