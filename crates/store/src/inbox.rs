//! The inbox of a run: how other processes send messages to the process that runs it. A message is
//! one small JSON file in `inbox/`, written whole and moved into place under a name that sorts by
//! time. The process that runs the run reads it. A message that cannot be parsed is moved to
//! `inbox/refused/`, with the reason beside it, and never stops the run.
//!
//! A request names the opening of the run that it is for, so that one that was left behind does not
//! affect the next process. An idea waits in the run. Messages are signed with the user's secret,
//! so that a candidate, which can only write into the run's folder, cannot control the run.

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
/// Number of files that one look reads; the others are read at the next look.
const MAX_MESSAGES_PER_LOOK: usize = 1000;
/// Number of unusable files that are remembered, so that each is reported once.
const MAX_MENTIONED_FILES: usize = 1000;
/// Number of times that posting a message is tried.
const MAX_POST_TRIES: u32 = 10;
/// The pause between two looks at the inbox.
const INBOX_POLL_INTERVAL: Duration = Duration::from_millis(400);
/// The reason for refusing a message that the user's own treebeam did not sign.
const UNSIGNED_REASON: &str =
    "it does not carry this user's secret: no treebeam of this user wrote it";
/// Name of the folder for refused messages.
const REFUSED_DIR: &str = "refused";

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutgoingMessage {
    /// A request to the process that runs the run now.
    Wish {
        /// The request.
        wish: UserRequest,
        /// Number of the opening of the run that it is for.
        epoch: u64,
    },
    /// An idea for the run.
    Idea(UserIdea),
}

/// A message as its file stores it.
#[derive(Serialize, Deserialize)]
struct MessageFile {
    message_version: u64,
    at: Timestamp,
    #[serde(flatten)]
    said: InboxPayload,
    /// Signature of the payload for this run and this message name. An older treebeam wrote none.
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
        // The path of a run may be `.`, which has no name.
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

/// Status of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageStatus {
    /// The message is unread, or has to wait.
    Waiting,
    /// The message was acted upon.
    Taken,
    /// The message was refused, for this reason.
    Refused(String),
}

fn message_path(run: &RunDir, id: &MessageId) -> PathBuf {
    run.inbox_path().join(format!("{id}.json"))
}

fn reason_path(path: &Path) -> PathBuf {
    path.with_extension("why.txt")
}

/// Encodes the signed file of a message.
///
/// # Errors
/// When the run directory does not exist.
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

/// Writes a message into a run's inbox. The message is durable at return.
///
/// # Errors
/// When the message cannot be written.
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
            // Another message of this very moment has the name; or a process that has just opened
            // the run removed the temporary file as left behind.
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

/// Creates a message name from the time and the process id: no two messages share both.
fn new_message_id(at: Timestamp) -> Result<MessageId, StoreError> {
    let (time, part) = (at.strftime("%Y%m%dT%H%M%S"), at.subsec_nanosecond());
    let name = format!("{time}-{part:09}-{}", std::process::id());
    name.parse().map_err(|error| {
        let source = io::Error::other(format!("{error}"));
        StoreError::Io { doing: "name a message of", path: name.into(), source }
    })
}

/// Returns the status of a message.
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

/// Returns the number of refused messages, counted by their names alone.
#[must_use]
pub fn count_refused(run: &RunDir) -> usize {
    let Ok(entries) = fs::read_dir(run.inbox_path().join(REFUSED_DIR)) else { return 0 };
    let names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
    names.filter(|name| !name.as_encoded_bytes().ends_with(b".why.txt")).count()
}

/// Removes a message that was not read.
///
/// # Errors
/// When the file cannot be removed.
pub fn withdraw_message(run: &RunDir, id: &MessageId) -> Result<(), StoreError> {
    let path = message_path(run, id);
    atomic_file::remove_if_present(&path).map_err(StoreError::io("remove", &path))
}

/// The inbox of a run, for the process that runs it.
#[derive(Debug)]
pub struct RunInbox {
    run: RunDir,
    epoch: u64,
    /// The secret that messages are signed with, or the reason why there is none.
    secret: Result<InboxSecret, String>,
    tell: fn(&str),
    mentioned: Mutex<BTreeSet<OsString>>,
}

impl RunInbox {
    /// Creates the inbox of a run that was opened with this epoch; `tell` prints a message for the
    /// user. Without a secret every message is refused.
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

    /// Refuses a message without the user's signature for this run and this message name.
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

    /// Lists the file names in the inbox, the oldest message first.
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

    /// Reads the message of a file; none if it is for a later opening of the run.
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
        // The reason is written first, so that it exists wherever the refused file does. If either
        // step fails, the file stays where it is and is refused again at the next look.
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

/// The reason why a file is not acted upon.
enum UnusableMessage {
    /// The file is gone by now.
    Gone,
    /// The system refuses to read the file, perhaps only temporarily.
    Unreadable(String),
    /// The file is refused, for this reason.
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

/// Reads an untrusted message: a regular file of bounded length, of a known version and kind.
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
        // If it stays, it is recognised by its name at each look, and removed then.
        drop(withdraw_message(&self.run, message));
    }

    fn set_aside(&self, message: &MessageId, why: &str) {
        self.move_aside(&format!("{message}.json").into(), why);
    }

    fn poll_interval(&self) -> Duration {
        INBOX_POLL_INTERVAL
    }
}
