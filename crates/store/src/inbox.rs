//! `inbox/`: how other processes talk to the one that runs a run. A message is one small JSON file, written whole and moved
//! into place under a name that sorts by time. Whoever runs the run reads it; what cannot be understood is set aside in
//! `inbox/refused/`, with the reason beside it, and never stops anything.
//!
//! A wish names the opening of the run that it is for, so that one which was left behind means nothing to the next
//! process. An idea is for the run, and waits. A message is signed with the user's secret, so that what only writes into
//! the run's folder, such as a candidate, steers nothing.

use super::atomic_file;
use super::error::StoreError;
use super::layout::RunDir;
use super::record_file::{self, RecordKind, UnusableFile};
use crate::user_state::{InboxSecret, UserStateError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use treebeam_core::event::{MessageId, UserRequest};
use treebeam_core::id::NodeId;
use treebeam_run::port::{Inbox, InboxMessage, MessageContent, UserIdea};
use treebeam_run::reply;

/// The version that is written, and the newest that is read.
const MESSAGE_VERSION: u64 = 1;
/// How many files are looked at each time; the rest has its turn at the next look.
const MAX_MESSAGES_PER_LOOK: usize = 1000;
/// How many odd files are remembered, so that each is mentioned once.
const MAX_MENTIONED_FILES: usize = 1000;
/// How often a message is tried to be put there.
const MAX_POST_TRIES: u32 = 10;
/// How long it is not worth looking again.
const INBOX_POLL_INTERVAL: Duration = Duration::from_millis(400);
/// Why a message is set aside that the user's own treebeam did not write.
const UNSIGNED_REASON: &str =
    "it does not carry this user's secret: no treebeam of this user wrote it";
/// Where messages go that are not acted upon.
const REFUSED_DIR: &str = "refused";

/// A message to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutgoingMessage {
    /// To the process that runs the run now.
    Wish {
        /// What.
        wish: UserRequest,
        /// Which opening of the run it is for.
        epoch: u64,
    },
    /// To the run.
    Idea(UserIdea),
}

/// The file.
#[derive(Serialize, Deserialize)]
struct MessageFile {
    message_version: u64,
    at: Timestamp,
    #[serde(flatten)]
    said: InboxPayload,
    /// The signature of the rest, for this run and under this name. An older treebeam wrote none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
}

/// The part of a message that is signed.
#[derive(Serialize)]
struct SignedPart<'a> {
    run: &'a str,
    message: &'a MessageId,
    said: &'a InboxPayload,
}

impl SignedPart<'_> {
    fn signed_bytes(run: &RunDir, message: &MessageId, said: &InboxPayload) -> io::Result<Vec<u8>> {
        // A run that is named by a path may be named as `.`.
        let root = run.root().canonicalize()?;
        let run = root.file_name().unwrap_or_default().to_string_lossy();
        Ok(serde_json::to_vec(&SignedPart { run: &run, message, said })?)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum InboxPayload {
    Pause { to_epoch: u64 },
    Unpause { to_epoch: u64 },
    Stop { to_epoch: u64 },
    StopAfterDepth { to_epoch: u64 },
    Idea { node: Option<NodeId>, text: String },
}

impl InboxPayload {
    fn from_message(message: &OutgoingMessage) -> Self {
        match message {
            OutgoingMessage::Wish { wish, epoch } => {
                let to_epoch = *epoch;
                match wish {
                    UserRequest::Pause => Self::Pause { to_epoch },
                    UserRequest::Unpause => Self::Unpause { to_epoch },
                    UserRequest::Stop => Self::Stop { to_epoch },
                    UserRequest::StopAfterDepth => Self::StopAfterDepth { to_epoch },
                }
            }
            OutgoingMessage::Idea(UserIdea { node, text }) => {
                Self::Idea { node: *node, text: text.clone() }
            }
        }
    }

    fn into_message(self) -> Result<OutgoingMessage, String> {
        let wish = |wish, epoch| Ok(OutgoingMessage::Wish { wish, epoch });
        match self {
            Self::Pause { to_epoch } => wish(UserRequest::Pause, to_epoch),
            Self::Unpause { to_epoch } => wish(UserRequest::Unpause, to_epoch),
            Self::Stop { to_epoch } => wish(UserRequest::Stop, to_epoch),
            Self::StopAfterDepth { to_epoch } => wish(UserRequest::StopAfterDepth, to_epoch),
            Self::Idea { node, text } => {
                let text =
                    reply::parse_user_idea(&text).map_err(|why| format!("its idea: {why}"))?;
                Ok(OutgoingMessage::Idea(UserIdea { node, text }))
            }
        }
    }
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageStatus {
    /// It has not been read, or its turn has not come.
    Waiting,
    /// It was acted upon.
    Taken,
    /// It was set aside, and this is why.
    Refused(String),
}

fn message_path(run: &RunDir, id: &MessageId) -> PathBuf {
    run.inbox_path().join(format!("{id}.json"))
}

fn reason_path(path: &Path) -> PathBuf {
    path.with_extension("why.txt")
}

/// The file of a message with this name, as it is written: signed.
///
/// # Errors
/// When the run is not there.
pub fn encode_message(
    run: &RunDir,
    id: &MessageId,
    at: Timestamp,
    message: &OutgoingMessage,
    secret: &InboxSecret,
) -> io::Result<Vec<u8>> {
    let said = InboxPayload::from_message(message);
    let signature = Some(secret.sign(&SignedPart::signed_bytes(run, id, &said)?));
    let letter = MessageFile { message_version: MESSAGE_VERSION, at, said, signature };
    let mut bytes = serde_json::to_vec(&letter)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Puts a message into a run's inbox. It is there for good once this returns.
///
/// # Errors
/// When it cannot be written.
pub fn post_message(
    run: &RunDir,
    message: &OutgoingMessage,
    secret: &InboxSecret,
) -> Result<MessageId, StoreError> {
    let inbox = run.inbox_path();
    fs::create_dir_all(&inbox).map_err(StoreError::io("create", &inbox))?;
    let mut tries_left = MAX_POST_TRIES;
    loop {
        let at = Timestamp::now();
        let id = new_message_id(at)?;
        let path = message_path(run, &id);
        let letter = encode_message(run, &id, at, message, secret);
        let letter = letter.map_err(StoreError::io("write", &path))?;
        let write = |file: &mut File| file.write_all(&letter);
        tries_left -= 1;
        match atomic_file::create_file(&path, write) {
            // Another one of this very moment; or whoever has just opened the run took this one for left behind.
            Err(error) if tries_left > 0 && can_retry_post(&error) => {}
            put => {
                put.map_err(StoreError::io("write", &path))?;
                atomic_file::sync_dir(&inbox).map_err(StoreError::io("sync", &inbox))?;
                return Ok(id);
            }
        }
    }
}

fn can_retry_post(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, NotFound};
    matches!(error.kind(), AlreadyExists | NotFound)
}

/// The time and the process: no two messages have both in common.
fn new_message_id(at: Timestamp) -> Result<MessageId, StoreError> {
    let (time, part) = (at.strftime("%Y%m%dT%H%M%S"), at.subsec_nanosecond());
    let name = format!("{time}-{part:09}-{}", std::process::id());
    name.parse().map_err(|error| {
        let source = io::Error::other(format!("{error}"));
        StoreError::Io { doing: "name a message of", path: name.into(), source }
    })
}

/// What became of a message.
#[must_use]
pub fn message_status(run: &RunDir, id: &MessageId) -> MessageStatus {
    let path = message_path(run, id);
    if path.symlink_metadata().is_ok() {
        return MessageStatus::Waiting;
    }
    let refused = run.inbox_path().join(REFUSED_DIR).join(format!("{id}.json"));
    if refused.symlink_metadata().is_err() {
        return MessageStatus::Taken;
    }
    let why = record_file::read_record(&reason_path(&refused), RecordKind::InboxMessage)
        .unwrap_or_default();
    MessageStatus::Refused(String::from_utf8_lossy(&why).trim_end().to_owned())
}

/// The number of messages that were set aside, by their names alone.
#[must_use]
pub fn count_refused(run: &RunDir) -> usize {
    let Ok(entries) = fs::read_dir(run.inbox_path().join(REFUSED_DIR)) else { return 0 };
    let names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
    names.filter(|name| !name.as_encoded_bytes().ends_with(b".why.txt")).count()
}

/// Takes a message back that was not read.
///
/// # Errors
/// When it cannot be removed.
pub fn withdraw_message(run: &RunDir, id: &MessageId) -> Result<(), StoreError> {
    let path = message_path(run, id);
    atomic_file::remove_if_present(&path).map_err(StoreError::io("remove", &path))
}

/// The inbox of a run, for the process that runs it.
#[derive(Debug)]
pub struct RunInbox {
    run: RunDir,
    epoch: u64,
    /// The secret that messages are signed with, or why there is none.
    secret: Result<InboxSecret, String>,
    tell: fn(&str),
    mentioned: Mutex<BTreeSet<OsString>>,
}

impl RunInbox {
    /// The inbox of a run that was opened with this epoch; `tell` is for what a person should know. Without a secret every
    /// message is set aside.
    #[must_use]
    pub fn new(
        run: RunDir,
        epoch: u64,
        secret: Result<InboxSecret, UserStateError>,
        tell: fn(&str),
    ) -> Self {
        let secret = secret.map_err(|error| error.to_string());
        Self { run, epoch, secret, tell, mentioned: Mutex::new(BTreeSet::new()) }
    }

    /// Refuses a message that the user's secret has not signed for this run, under this name.
    fn check_signature(&self, id: &MessageId, letter: &MessageFile) -> Result<(), UnusableMessage> {
        let secret = match &self.secret {
            Ok(secret) => secret,
            Err(why) => {
                return Err(UnusableMessage::Refused(format!(
                    "nothing can be checked for who wrote it: {why}"
                )));
            }
        };
        let text = SignedPart::signed_bytes(&self.run, id, &letter.said)?;
        let signature = letter.signature.as_deref().unwrap_or_default();
        if secret.has_signed(&text, signature) {
            Ok(())
        } else {
            Err(UnusableMessage::refused_because(UNSIGNED_REASON))
        }
    }

    /// The names in the inbox, the oldest message first.
    fn list_file_names(&self) -> Vec<OsString> {
        let Ok(entries) = fs::read_dir(self.run.inbox_path()) else { return Vec::new() };
        let names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
        let unfinished = |name: &OsString| name.as_encoded_bytes().starts_with(b".");
        let mut names: Vec<_> =
            names.filter(|name| !unfinished(name) && name.as_os_str() != REFUSED_DIR).collect();
        names.sort();
        names.truncate(MAX_MESSAGES_PER_LOOK);
        names
    }

    /// What a file says to this process. None: it is for another one.
    fn read_message(&self, name: &OsString) -> Result<Option<InboxMessage>, UnusableMessage> {
        let id = name.to_str().and_then(|name| name.strip_suffix(".json"));
        let id = id.and_then(|id| id.parse().ok());
        let id = id
            .ok_or_else(|| UnusableMessage::refused_because("its name is not that of a message"))?;
        let letter = read_message_file(&self.run.inbox_path().join(name))?;
        self.check_signature(&id, &letter)?;
        let request = match letter.said.into_message().map_err(UnusableMessage::Refused)? {
            OutgoingMessage::Idea(idea) => MessageContent::Idea(idea),
            OutgoingMessage::Wish { wish, epoch } if epoch == self.epoch => {
                MessageContent::Wish(wish)
            }
            OutgoingMessage::Wish { epoch, .. } if epoch > self.epoch => return Ok(None),
            OutgoingMessage::Wish { wish, .. } => {
                return Err(UnusableMessage::Refused(format!(
                    "this `{wish}` was meant for a process that had the run before"
                )));
            }
        };
        Ok(Some(InboxMessage { id, request }))
    }

    fn move_aside(&self, name: &OsString, why: &str) {
        let from = self.run.inbox_path().join(name);
        let aside = self.run.inbox_path().join(REFUSED_DIR);
        let to = aside.join(name);
        // The reason first: whoever finds the file there finds the reason too. If neither works, the file stays where it
        // is, and is nobody's message at the next look either.
        let moved = fs::create_dir_all(&aside)
            .and_then(|()| {
                let text = format!("{why}\n");
                record_file::overwrite_record(
                    &reason_path(&to),
                    RecordKind::InboxMessage,
                    text.as_bytes(),
                )
            })
            .and_then(|()| fs::rename(&from, &to));
        self.mention_once(name, if moved.is_ok() { "set aside" } else { "left alone" }, why);
    }

    fn mention_once(&self, name: &OsString, done: &str, why: &str) {
        let mut mentioned = self.mentioned.lock().unwrap_or_else(PoisonError::into_inner);
        if mentioned.len() < MAX_MENTIONED_FILES && mentioned.insert(name.clone()) {
            (self.tell)(&format!("`inbox/{}` is {done}: {why}", name.to_string_lossy()));
        }
    }
}

/// Why a file is not acted upon.
enum UnusableMessage {
    /// It is gone by now.
    Gone,
    /// The system does not let us read it, perhaps only now.
    Unreadable(String),
    /// It is to be set aside.
    Refused(String),
}

impl UnusableMessage {
    fn refused_because(why: &str) -> Self {
        Self::Refused(why.to_owned())
    }
}

impl From<io::Error> for UnusableMessage {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound {
            return Self::Gone;
        }
        Self::Unreadable(format!("it cannot be read: {error}"))
    }
}

/// Reads a message as a stranger's: a regular file of bounded length, of a version and a kind that are known.
fn read_message_file(path: &Path) -> Result<MessageFile, UnusableMessage> {
    let bytes = record_file::read_record(path, RecordKind::InboxMessage).map_err(|error| {
        match UnusableFile::in_error(&error) {
            Some(why @ UnusableFile::TooLong { .. }) => UnusableMessage::Refused(why.to_string()),
            Some(_) => UnusableMessage::refused_because("it is no regular file"),
            None => UnusableMessage::from(error),
        }
    })?;
    decode_message(&bytes).map_err(UnusableMessage::Refused)
}

fn decode_message(bytes: &[u8]) -> Result<MessageFile, String> {
    #[derive(Deserialize)]
    struct MessageHead {
        message_version: u64,
    }
    let wrong = |error: serde_json::Error| format!("it is no message: {error}");
    let MessageHead { message_version } = serde_json::from_slice(bytes).map_err(wrong)?;
    if message_version != MESSAGE_VERSION {
        return Err(format!(
            "it has version {message_version}; this treebeam knows version {MESSAGE_VERSION}"
        ));
    }
    serde_json::from_slice(bytes).map_err(wrong)
}

impl Inbox for RunInbox {
    fn list_messages(&self) -> Vec<InboxMessage> {
        let mut found = Vec::new();
        for name in self.list_file_names() {
            match self.read_message(&name) {
                Ok(message) => found.extend(message),
                Err(UnusableMessage::Gone) => {}
                Err(UnusableMessage::Unreadable(why)) => {
                    self.mention_once(&name, "left alone", &why);
                }
                Err(UnusableMessage::Refused(why)) => self.move_aside(&name, &why),
            }
        }
        found
    }

    fn forget_message(&self, message: &MessageId) {
        // One that cannot be removed is known by its name at each look, and tried again.
        drop(withdraw_message(&self.run, message));
    }

    fn set_aside(&self, message: &MessageId, why: &str) {
        self.move_aside(&format!("{message}.json").into(), why);
    }

    fn poll_interval(&self) -> Duration {
        INBOX_POLL_INTERVAL
    }
}
