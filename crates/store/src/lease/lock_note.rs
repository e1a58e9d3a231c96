//! The note `run.lock.json` on the process that runs a run, for people and other machines. It is
//! written whole, by that process itself; whether to trust it is decided elsewhere.

use crate::atomic_file;
use crate::error::{StoreError, hint_for_io_error};
use crate::layout::RunDir;
use crate::os;
use crate::record_file::{self, RecordKind};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use treebeam_core::event::RunnerProcess;

/// The process that runs a run, as its note describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    /// Process id.
    pub pid: u32,
    /// Name of the machine.
    pub hostname: String,
    /// Id of the machine's boot, if known.
    #[serde(default)]
    pub boot_id: Option<String>,
    /// Start of the process, in the machine's count since its boot, if known.
    #[serde(default)]
    pub start_time: Option<u64>,
    /// Time at which the process opened the run.
    pub created_at: Timestamp,
    /// Time of the last heartbeat.
    pub last_heartbeat_at: Timestamp,
    /// Number of the opening of the run.
    #[serde(default)]
    pub epoch: u64,
    /// The agent questions that wait at the moment, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingQuestion>,
}

/// A question to an agent that has to wait before it is asked again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingQuestion {
    /// The agent's role.
    pub role: String,
    /// The reason why the agent did not answer.
    pub why: String,
    /// Time of the first unanswered try.
    pub since: Timestamp,
    /// Time at which the question is asked again.
    pub until: Timestamp,
}

impl LockHolder {
    /// Describes this process, from now on.
    pub(super) fn this_process(epoch: u64) -> Self {
        let (now, pid) = (Timestamp::now(), std::process::id());
        Self {
            pid,
            hostname: os::hostname(),
            boot_id: os::boot_id(),
            start_time: os::process_state(pid).start_time(),
            created_at: now,
            last_heartbeat_at: now,
            epoch,
            waiting: Vec::new(),
        }
    }

    /// Returns true for the same opening by the same process; ignores heartbeats and questions.
    pub(super) fn is_same_opening(&self, other: &Self) -> bool {
        let (last_heartbeat_at, waiting) = (self.last_heartbeat_at, self.waiting.clone());
        *self == Self { last_heartbeat_at, waiting, ..other.clone() }
    }

    pub(super) fn to_runner(&self) -> RunnerProcess {
        RunnerProcess {
            pid: self.pid,
            hostname: self.hostname.clone(),
            created_at: self.created_at,
            last_heartbeat_at: self.last_heartbeat_at,
        }
    }

    /// Writes the note, replacing the one that exists.
    pub(super) fn write_note(&self, run: &RunDir) -> Result<(), StoreError> {
        let path = run.lock_note_path();
        atomic_file::replace_file(&path, |file| self.write_json_line(file))
            .map_err(StoreError::io("write", &path))
    }

    /// Writes the note if none exists; returns false if one does.
    pub(super) fn create_note(&self, run: &RunDir) -> Result<bool, StoreError> {
        let path = run.lock_note_path();
        match atomic_file::create_file(&path, |file| self.write_json_line(file)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            put => put.map(|()| true).map_err(StoreError::io("write", &path)),
        }
    }

    fn write_json_line(&self, file: &mut File) -> io::Result<()> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        file.write_all(&line)
    }
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, hostname, created_at, last_heartbeat_at, .. } = self;
        let hostname = hostname.escape_debug();
        write!(
            f,
            "process {pid} on `{hostname}` since {created_at:.0}, last heartbeat {last_heartbeat_at:.0}"
        )
    }
}

/// Content of the note's path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LockNote {
    /// No note: the last owner left cleanly.
    Missing,
    /// An unreadable note, with the time of its writing if known.
    Unreadable(Option<Timestamp>),
    /// A readable note.
    Readable(LockHolder),
}

impl LockNote {
    pub(super) fn read(run: &RunDir) -> Self {
        Self::from_text(run, read_note_text(&run.lock_note_path()))
    }

    /// Reads the note for a decision: a temporary read error is an error, not an unreadable note.
    pub(super) fn try_read(run: &RunDir) -> Result<Self, StoreError> {
        let path = run.lock_note_path();
        match read_note_text(&path) {
            Err(error) if hint_for_io_error(&error).is_some() => {
                Err(StoreError::io("read", &path)(error))
            }
            text => Ok(Self::from_text(run, text)),
        }
    }

    fn from_text(run: &RunDir, text: io::Result<String>) -> Self {
        match text {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::Missing,
            text => {
                let holder = text.ok().and_then(|text| serde_json::from_str(&text).ok());
                holder.map_or_else(
                    || Self::Unreadable(modified_at(&run.lock_note_path())),
                    Self::Readable,
                )
            }
        }
    }
}

fn modified_at(path: &Path) -> Option<Timestamp> {
    let modified = path.metadata().and_then(|found| found.modified()).ok()?;
    Timestamp::try_from(modified).ok()
}

fn read_note_text(path: &Path) -> io::Result<String> {
    let bytes = record_file::read_record(path, RecordKind::LockNote)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
