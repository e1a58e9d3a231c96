//! `inbox/`: how other processes talk to the one that runs a run. A message is one small JSON file, written whole and moved
//! into place under a name that sorts by time. Whoever runs the run reads it; what cannot be understood is set aside in
//! `inbox/refused/`, with the reason beside it, and never stops anything.
//!
//! A wish names the opening of the run that it is for, so that one which was left behind means nothing to the next
//! process. An idea is for the run, and waits. A message is signed with the user's secret, so that what only writes into
//! the run's folder, such as a candidate, steers nothing.

use super::durable;
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
use treebeam_core::event::{MessageId, Wish};
use treebeam_core::id::NodeId;
use treebeam_run::port::{Inbox, Message, OwnIdea, Request};
use treebeam_run::reply;

/// The version that is written, and the newest that is read.
const VERSION: u64 = 1;
/// How many files are looked at each time; the rest has its turn at the next look.
const AT_ONCE: usize = 1000;
/// How many odd files are remembered, so that each is mentioned once.
const MENTIONED: usize = 1000;
/// How often a message is tried to be put there.
const TRIES: u32 = 10;
/// How long it is not worth looking again.
const REST: Duration = Duration::from_millis(400);
/// Why a message is set aside that the user's own treebeam did not write.
const UNSIGNED: &str = "it does not carry this user's secret: no treebeam of this user wrote it";
/// Where messages go that are not acted upon.
const REFUSED: &str = "refused";

/// A message to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outgoing {
    /// To the process that runs the run now.
    Wish {
        /// What.
        wish: Wish,
        /// Which opening of the run it is for.
        epoch: u64,
    },
    /// To the run.
    Idea(OwnIdea),
}

/// The file.
#[derive(Serialize, Deserialize)]
struct Letter {
    message_version: u64,
    at: Timestamp,
    #[serde(flatten)]
    said: Said,
    /// The signature of the rest, for this run and under this name. An older treebeam wrote none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
}

/// The part of a message that is signed.
#[derive(Serialize)]
struct SignedPart<'a> {
    run: &'a str,
    message: &'a MessageId,
    said: &'a Said,
}

impl SignedPart<'_> {
    fn text(run: &RunDir, message: &MessageId, said: &Said) -> io::Result<Vec<u8>> {
        // A run that is named by a path may be named as `.`.
        let root = run.root().canonicalize()?;
        let run = root.file_name().unwrap_or_default().to_string_lossy();
        Ok(serde_json::to_vec(&SignedPart { run: &run, message, said })?)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Said {
    Pause { to_epoch: u64 },
    Unpause { to_epoch: u64 },
    Stop { to_epoch: u64 },
    StopAfterDepth { to_epoch: u64 },
    Idea { node: Option<NodeId>, text: String },
}

impl Said {
    fn of(message: &Outgoing) -> Self {
        match message {
            Outgoing::Wish { wish, epoch } => {
                let to_epoch = *epoch;
                match wish {
                    Wish::Pause => Self::Pause { to_epoch },
                    Wish::Unpause => Self::Unpause { to_epoch },
                    Wish::Stop => Self::Stop { to_epoch },
                    Wish::StopAfterDepth => Self::StopAfterDepth { to_epoch },
                }
            }
            Outgoing::Idea(OwnIdea { node, text }) => {
                Self::Idea { node: *node, text: text.clone() }
            }
        }
    }

    fn into_outgoing(self) -> Result<Outgoing, String> {
        let wish = |wish, epoch| Ok(Outgoing::Wish { wish, epoch });
        match self {
            Self::Pause { to_epoch } => wish(Wish::Pause, to_epoch),
            Self::Unpause { to_epoch } => wish(Wish::Unpause, to_epoch),
            Self::Stop { to_epoch } => wish(Wish::Stop, to_epoch),
            Self::StopAfterDepth { to_epoch } => wish(Wish::StopAfterDepth, to_epoch),
            Self::Idea { node, text } => {
                let text = reply::own_idea(&text).map_err(|why| format!("its idea: {why}"))?;
                Ok(Outgoing::Idea(OwnIdea { node, text }))
            }
        }
    }
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It has not been read, or its turn has not come.
    Waiting,
    /// It was acted upon.
    Taken,
    /// It was set aside, and this is why.
    Refused(String),
}

fn file(run: &RunDir, id: &MessageId) -> PathBuf {
    run.inbox().join(format!("{id}.json"))
}

fn reason(path: &Path) -> PathBuf {
    path.with_extension("why.txt")
}

/// The file of a message with this name, as it is written: signed.
///
/// # Errors
/// When the run is not there.
pub fn message_file(
    run: &RunDir,
    id: &MessageId,
    at: Timestamp,
    message: &Outgoing,
    secret: &InboxSecret,
) -> io::Result<Vec<u8>> {
    let said = Said::of(message);
    let signature = Some(secret.sign(&SignedPart::text(run, id, &said)?));
    let letter = Letter { message_version: VERSION, at, said, signature };
    let mut bytes = serde_json::to_vec(&letter)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Puts a message into a run's inbox. It is there for good once this returns.
///
/// # Errors
/// When it cannot be written.
pub fn post(
    run: &RunDir,
    message: &Outgoing,
    secret: &InboxSecret,
) -> Result<MessageId, StoreError> {
    let inbox = run.inbox();
    fs::create_dir_all(&inbox).map_err(StoreError::io("create", &inbox))?;
    let mut tries_left = TRIES;
    loop {
        let at = Timestamp::now();
        let id = name(at)?;
        let path = file(run, &id);
        let letter = message_file(run, &id, at, message, secret);
        let letter = letter.map_err(StoreError::io("write", &path))?;
        let write = |file: &mut File| file.write_all(&letter);
        tries_left -= 1;
        match durable::put_first(&path, write) {
            // Another one of this very moment; or whoever has just opened the run took this one for left behind.
            Err(error) if tries_left > 0 && is_worth_another_try(&error) => {}
            put => {
                put.map_err(StoreError::io("write", &path))?;
                durable::sync_dir(&inbox).map_err(StoreError::io("sync", &inbox))?;
                return Ok(id);
            }
        }
    }
}

fn is_worth_another_try(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, NotFound};
    matches!(error.kind(), AlreadyExists | NotFound)
}

/// The time and the process: no two messages have both in common.
fn name(at: Timestamp) -> Result<MessageId, StoreError> {
    let (time, part) = (at.strftime("%Y%m%dT%H%M%S"), at.subsec_nanosecond());
    let name = format!("{time}-{part:09}-{}", std::process::id());
    name.parse().map_err(|error| {
        let source = io::Error::other(format!("{error}"));
        StoreError::Io { doing: "name a message of", path: name.into(), source }
    })
}

/// What became of a message.
#[must_use]
pub fn fate(run: &RunDir, id: &MessageId) -> Fate {
    let path = file(run, id);
    if path.symlink_metadata().is_ok() {
        return Fate::Waiting;
    }
    let refused = run.inbox().join(REFUSED).join(format!("{id}.json"));
    if refused.symlink_metadata().is_err() {
        return Fate::Taken;
    }
    let why = record_file::read(&reason(&refused), RecordKind::InboxMessage).unwrap_or_default();
    Fate::Refused(String::from_utf8_lossy(&why).trim_end().to_owned())
}

/// The number of messages that were set aside, by their names alone.
#[must_use]
pub fn count_refused(run: &RunDir) -> usize {
    let Ok(entries) = fs::read_dir(run.inbox().join(REFUSED)) else { return 0 };
    let names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
    names.filter(|name| !name.as_encoded_bytes().ends_with(b".why.txt")).count()
}

/// Takes a message back that was not read.
///
/// # Errors
/// When it cannot be removed.
pub fn withdraw(run: &RunDir, id: &MessageId) -> Result<(), StoreError> {
    let path = file(run, id);
    durable::remove(&path).map_err(StoreError::io("remove", &path))
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
    fn must_be_signed(&self, id: &MessageId, letter: &Letter) -> Result<(), Odd> {
        let secret = match &self.secret {
            Ok(secret) => secret,
            Err(why) => {
                return Err(Odd::Refused(format!(
                    "nothing can be checked for who wrote it: {why}"
                )));
            }
        };
        let text = SignedPart::text(&self.run, id, &letter.said)?;
        let signature = letter.signature.as_deref().unwrap_or_default();
        if secret.has_signed(&text, signature) { Ok(()) } else { Err(Odd::because(UNSIGNED)) }
    }

    /// The names in the inbox, the oldest message first.
    fn names(&self) -> Vec<OsString> {
        let Ok(entries) = fs::read_dir(self.run.inbox()) else { return Vec::new() };
        let names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
        let unfinished = |name: &OsString| name.as_encoded_bytes().starts_with(b".");
        let mut names: Vec<_> =
            names.filter(|name| !unfinished(name) && name.as_os_str() != REFUSED).collect();
        names.sort();
        names.truncate(AT_ONCE);
        names
    }

    /// What a file says to this process. None: it is for another one.
    fn read(&self, name: &OsString) -> Result<Option<Message>, Odd> {
        let id = name.to_str().and_then(|name| name.strip_suffix(".json"));
        let id = id.and_then(|id| id.parse().ok());
        let id = id.ok_or_else(|| Odd::because("its name is not that of a message"))?;
        let letter = open(&self.run.inbox().join(name))?;
        self.must_be_signed(&id, &letter)?;
        let request = match letter.said.into_outgoing().map_err(Odd::Refused)? {
            Outgoing::Idea(idea) => Request::Idea(idea),
            Outgoing::Wish { wish, epoch } if epoch == self.epoch => Request::Wish(wish),
            Outgoing::Wish { epoch, .. } if epoch > self.epoch => return Ok(None),
            Outgoing::Wish { wish, .. } => {
                return Err(Odd::Refused(format!(
                    "this `{wish}` was meant for a process that had the run before"
                )));
            }
        };
        Ok(Some(Message { id, request }))
    }

    fn move_aside(&self, name: &OsString, why: &str) {
        let from = self.run.inbox().join(name);
        let aside = self.run.inbox().join(REFUSED);
        let to = aside.join(name);
        // The reason first: whoever finds the file there finds the reason too. If neither works, the file stays where it
        // is, and is nobody's message at the next look either.
        let moved = fs::create_dir_all(&aside)
            .and_then(|()| {
                let text = format!("{why}\n");
                record_file::overwrite(&reason(&to), RecordKind::InboxMessage, text.as_bytes())
            })
            .and_then(|()| fs::rename(&from, &to));
        self.mention(name, if moved.is_ok() { "set aside" } else { "left alone" }, why);
    }

    fn mention(&self, name: &OsString, done: &str, why: &str) {
        let mut mentioned = self.mentioned.lock().unwrap_or_else(PoisonError::into_inner);
        if mentioned.len() < MENTIONED && mentioned.insert(name.clone()) {
            (self.tell)(&format!("`inbox/{}` is {done}: {why}", name.to_string_lossy()));
        }
    }
}

/// Why a file is not acted upon.
enum Odd {
    /// It is gone by now.
    Gone,
    /// The system does not let us read it, perhaps only now.
    Unreadable(String),
    /// It is to be set aside.
    Refused(String),
}

impl Odd {
    fn because(why: &str) -> Self {
        Self::Refused(why.to_owned())
    }
}

impl From<io::Error> for Odd {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound {
            return Self::Gone;
        }
        Self::Unreadable(format!("it cannot be read: {error}"))
    }
}

/// Reads a message as a stranger's: a regular file of bounded length, of a version and a kind that are known.
fn open(path: &Path) -> Result<Letter, Odd> {
    let bytes = record_file::read(path, RecordKind::InboxMessage).map_err(|error| {
        match UnusableFile::in_error(&error) {
            Some(why @ UnusableFile::TooLong { .. }) => Odd::Refused(why.to_string()),
            Some(_) => Odd::because("it is no regular file"),
            None => Odd::from(error),
        }
    })?;
    decode(&bytes).map_err(Odd::Refused)
}

fn decode(bytes: &[u8]) -> Result<Letter, String> {
    #[derive(Deserialize)]
    struct Head {
        message_version: u64,
    }
    let wrong = |error: serde_json::Error| format!("it is no message: {error}");
    let Head { message_version } = serde_json::from_slice(bytes).map_err(wrong)?;
    if message_version != VERSION {
        return Err(format!(
            "it has version {message_version}; this treebeam knows version {VERSION}"
        ));
    }
    serde_json::from_slice(bytes).map_err(wrong)
}

impl Inbox for RunInbox {
    fn look(&self) -> Vec<Message> {
        let mut found = Vec::new();
        for name in self.names() {
            match self.read(&name) {
                Ok(message) => found.extend(message),
                Err(Odd::Gone) => {}
                Err(Odd::Unreadable(why)) => self.mention(&name, "left alone", &why),
                Err(Odd::Refused(why)) => self.move_aside(&name, &why),
            }
        }
        found
    }

    fn forget(&self, message: &MessageId) {
        // One that cannot be removed is known by its name at each look, and tried again.
        drop(withdraw(&self.run, message));
    }

    fn set_aside(&self, message: &MessageId, why: &str) {
        self.move_aside(&format!("{message}.json").into(), why);
    }

    fn rest(&self) -> Duration {
        REST
    }
}
