//! `run.lock.json`: who runs a run, for people and for other machines. It is written whole and says what a process says
//! of itself; whether to believe it is decided elsewhere.

use crate::store::durable;
use crate::store::error::{StoreError, cure};
use crate::store::layout::RunDir;
use crate::store::os;
use crate::store::record_file::{self, RecordKind};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use treebeam_core::event::Runner;

/// Who runs a run, as its note says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// The machine.
    pub hostname: String,
    /// Which boot of the machine, where that is known.
    #[serde(default)]
    pub boot_id: Option<String>,
    /// When the process started, in the machine's own count since its boot, where that is known.
    #[serde(default)]
    pub start_time: Option<u64>,
    /// Since when it runs the run.
    pub created_at: Timestamp,
    /// When it last said that it is alive.
    pub last_heartbeat_at: Timestamp,
    /// Which opening of the run this is.
    #[serde(default)]
    pub epoch: u64,
    /// The questions to agents that it cannot ask at the moment, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingQuestion>,
}

/// A question to an agent that has to wait before it is asked again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingQuestion {
    /// The role that is asked.
    pub role: String,
    /// Why it was not answered.
    pub why: String,
    /// When that was first so.
    pub since: Timestamp,
    /// When it is asked again.
    pub until: Timestamp,
}

impl Holder {
    /// This process, from now on.
    pub(super) fn this_process(epoch: u64) -> Self {
        let (now, pid) = (Timestamp::now(), std::process::id());
        Self {
            pid,
            hostname: os::hostname(),
            boot_id: os::boot_id(),
            start_time: os::process(pid).start(),
            created_at: now,
            last_heartbeat_at: now,
            epoch,
            waiting: Vec::new(),
        }
    }

    /// Whether this is the same opening by the same process; heartbeats and what waits do not count.
    pub(super) fn is(&self, other: &Self) -> bool {
        let (last_heartbeat_at, waiting) = (self.last_heartbeat_at, self.waiting.clone());
        *self == Self { last_heartbeat_at, waiting, ..other.clone() }
    }

    pub(super) fn runner(&self) -> Runner {
        Runner {
            pid: self.pid,
            hostname: self.hostname.clone(),
            created_at: self.created_at,
            last_heartbeat_at: self.last_heartbeat_at,
        }
    }

    /// Puts the note in place of the one that is there.
    pub(super) fn write(&self, run: &RunDir) -> Result<(), StoreError> {
        let path = run.holder();
        durable::replace(&path, |file| self.put(file)).map_err(StoreError::io("write", &path))
    }

    /// Puts the note where there is none; false if there is one by now.
    pub(super) fn write_first(&self, run: &RunDir) -> Result<bool, StoreError> {
        let path = run.holder();
        match durable::put_first(&path, |file| self.put(file)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            put => put.map(|()| true).map_err(StoreError::io("write", &path)),
        }
    }

    fn put(&self, file: &mut File) -> io::Result<()> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        file.write_all(&line)
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, hostname, created_at, last_heartbeat_at, .. } = self;
        let hostname = hostname.escape_debug();
        write!(
            f,
            "process {pid} on `{hostname}` since {created_at:.0}, last heartbeat {last_heartbeat_at:.0}"
        )
    }
}

/// What lies where the note should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// Nothing: whoever was here left cleanly.
    Missing,
    /// Something that says nothing; when it was written, if that is known.
    Unreadable(Option<Timestamp>),
    /// A note.
    Of(Holder),
}

impl Note {
    pub(super) fn read(run: &RunDir) -> Self {
        Self::of(run, text(&run.holder()))
    }

    /// The same for one who decides by it: that it cannot be read just now says nothing about who wrote it.
    pub(super) fn look(run: &RunDir) -> Result<Self, StoreError> {
        let path = run.holder();
        match text(&path) {
            Err(error) if cure(&error).is_some() => Err(StoreError::io("read", &path)(error)),
            text => Ok(Self::of(run, text)),
        }
    }

    fn of(run: &RunDir, text: io::Result<String>) -> Self {
        match text {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::Missing,
            text => {
                let holder = text.ok().and_then(|text| serde_json::from_str(&text).ok());
                holder.map_or_else(|| Self::Unreadable(written_at(&run.holder())), Self::Of)
            }
        }
    }
}

fn written_at(path: &Path) -> Option<Timestamp> {
    let modified = path.metadata().and_then(|found| found.modified()).ok()?;
    Timestamp::try_from(modified).ok()
}

fn text(path: &Path) -> io::Result<String> {
    let bytes = record_file::read(path, RecordKind::LockNote)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
