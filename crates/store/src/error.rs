//! Errors of a run on disk, each with a hint on what to do about it.

use super::os;
use super::record_file::UnusableFile;
use std::io;
use std::path::{Path, PathBuf};
use treebeam_core::state::StateError;
use treebeam_run::port::PortError;

/// An error of creating, opening or writing a run.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system refused.
    #[error("cannot {doing} `{}`", path.display())]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// The path that it failed on.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another process runs the run.
    #[error("the run `{}` is locked by {holder}", path.display())]
    Locked {
        /// The run directory.
        path: PathBuf,
        /// Description of the other process, as far as it is known.
        holder: String,
        /// Location of the other process.
        owner: OwnerLocation,
    },
    /// Another process has taken the run from this one.
    #[error("the run `{}` was taken over by {holder}; this process writes nothing more to it", path.display())]
    Lost {
        /// The run directory.
        path: PathBuf,
        /// Description of the other process, as far as it is known.
        holder: String,
    },
    /// The run id is taken.
    #[error("there is a run `{}` already", path.display())]
    Exists {
        /// The run directory.
        path: PathBuf,
    },
    /// The directory has neither a journal nor a manifest.
    #[error("`{}` is no run: it has neither a journal nor a readable manifest", path.display())]
    NotARun {
        /// The directory.
        path: PathBuf,
    },
    /// The manifest is damaged, and there is no journal.
    #[error("`{}` is damaged, and there is no journal beside it: {why}", path.display())]
    ManifestDamaged {
        /// Path of the manifest.
        path: PathBuf,
        /// Description of the damage, and where it is.
        why: String,
    },
    /// A line of the journal is not what was written.
    #[error("`{}` line {line}: {why}", path.display())]
    BadLine {
        /// Path of the journal.
        path: PathBuf,
        /// Number of the line, counted from 1.
        line: u64,
        /// Description of the damage.
        why: String,
    },
    /// A line of the journal records an event that cannot follow the lines before it.
    #[error("`{}` line {line} cannot follow the lines before it", path.display())]
    Contradiction {
        /// Path of the journal.
        path: PathBuf,
        /// Number of the line, counted from 1.
        line: u64,
        /// The contradiction between the event and the state.
        source: StateError,
    },
    /// The journal is missing although there is a manifest.
    #[error("`{}` is missing, but there is a manifest", path.display())]
    JournalMissing {
        /// Path of the journal.
        path: PathBuf,
    },
    /// The journal ends before the manifest's event.
    #[error("`{}` ends at event {last}, but the manifest was written at event {seq}", path.display())]
    JournalShort {
        /// Path of the journal.
        path: PathBuf,
        /// Number of the journal's last event.
        last: u64,
        /// Number of the manifest's event.
        seq: u64,
    },
    /// The journal was cut or changed while this process ran the run.
    #[error("`{}` was changed while the run went on: {why}", path.display())]
    JournalChanged {
        /// Path of the journal.
        path: PathBuf,
        /// Difference from what was written.
        why: String,
    },
    /// The manifest was written by a newer treebeam.
    #[error("`{}` has version {version}; this treebeam knows versions up to {known}", path.display())]
    Newer {
        /// Path of the manifest.
        path: PathBuf,
        /// Version of the manifest.
        version: u64,
        /// The newest version that this treebeam reads.
        known: u64,
    },
    /// An event is too long to be read back.
    #[error("an event for `{}` is {bytes} bytes long, more than {limit}", path.display())]
    TooLong {
        /// Path of the journal.
        path: PathBuf,
        /// Length of the event in bytes.
        bytes: usize,
        /// The most bytes that are read back.
        limit: usize,
    },
    /// An earlier write failed.
    #[error("nothing more is written to `{}`, because an earlier write failed", path.display())]
    Broken {
        /// Path of the journal.
        path: PathBuf,
    },
}

/// Location of the process that holds a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerLocation {
    /// The process is alive on this machine.
    Here,
    /// The process is on another machine, and perhaps alive.
    Elsewhere,
}

/// Hints for system errors that have one cause, whichever operation failed.
const IO_ERROR_HINTS: [(io::ErrorKind, &str); 6] = [
    (
        io::ErrorKind::FileTooLarge,
        "a file may not grow larger than the limit of this shell allows: raise it (`ulimit -f unlimited`), then try again",
    ),
    (
        io::ErrorKind::OutOfMemory,
        "the machine has too little memory: end something else, or lower `--max-parallel-evals`",
    ),
    (
        io::ErrorKind::StorageFull,
        "the disk is full: make room, then try again; a run that has begun goes on with `treebeam resume`",
    ),
    (
        io::ErrorKind::QuotaExceeded,
        "your disk quota is used up: make room, then try again; a run that has begun goes on with `treebeam resume`",
    ),
    (
        io::ErrorKind::ReadOnlyFilesystem,
        "the file system is read-only: make it writable, or use another place (`runs_root`)",
    ),
    (
        io::ErrorKind::NotADirectory,
        "a part of that path is a file where a folder should be: rename or remove it",
    ),
];

/// Returns the hint for a system error whose cause does not depend on the operation.
#[must_use]
pub fn hint_for_io_error(error: &io::Error) -> Option<&'static str> {
    let known =
        IO_ERROR_HINTS.iter().find(|(kind, _)| *kind == error.kind()).map(|(_, cure)| *cure);
    known.or_else(|| {
        Some(match os::system_error_kind(error)? {
            SystemErrorKind::OpenFiles => {
                "too many files are open: raise the limit (`ulimit -n`), or lower `--max-parallel-evals`"
            }
            SystemErrorKind::Processes => {
                "too few processes are allowed: raise the limit (`ulimit -u`), or lower `--max-parallel-evals`"
            }
            SystemErrorKind::Device => {
                "the disk itself reports an error: see the system's log, and save what is on it before you go on"
            }
        })
    })
}

/// A kind of system error that `std::io::ErrorKind` does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SystemErrorKind {
    /// This process, or the system, can open no more files.
    OpenFiles,
    /// This user, or the system, can have no more processes or threads.
    Processes,
    /// The disk reports an error.
    Device,
}

impl StoreError {
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }

    /// Returns a hint on what to do about the error.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Io { source, .. } if UnusableFile::in_error(source).is_some() => {
                "something else has the name of a file of the run: move it away, and put the file back from a backup"
            }
            Self::Io { source, .. } => hint_for_io_error(source)
                .unwrap_or("check that the disk is there, has room, and may be written"),
            Self::Locked { owner: OwnerLocation::Here, .. } => {
                "wait for that process, or stop it: `--force` takes no run from a living one; reading commands need no lock"
            }
            Self::Locked { owner: OwnerLocation::Elsewhere, .. } => {
                "stop it there, or make sure that it is dead and take the run with `--force`; reading commands need no lock"
            }
            Self::Lost { .. } => {
                "nothing is lost: that process goes on from the record; `treebeam status` shows the run"
            }
            Self::Exists { .. } => "resume it with `treebeam resume`, or choose another `--run-id`",
            Self::NotARun { .. } => {
                "`treebeam list` shows the runs of this repository, `treebeam run` starts one"
            }
            Self::ManifestDamaged { .. } => {
                "restore the run directory from a backup: nothing else has its record; `treebeam clean RUN --delete` removes it"
            }
            Self::BadLine { .. } | Self::Contradiction { .. } => {
                "the file was changed or damaged: restore it from a backup; nothing was written"
            }
            Self::JournalMissing { .. } | Self::JournalShort { .. } => {
                "restore the journal from a backup, or go on from the manifest alone: `treebeam resume RUN --force`"
            }
            Self::JournalChanged { .. } => {
                "the file was left as it is, and `manifest.json` has all that was recorded: move the journal away, then `treebeam resume RUN --force` goes on from the manifest; or restore the journal from a backup"
            }
            Self::Newer { .. } => "use the newer treebeam that wrote it; the file was not touched",
            Self::TooLong { .. } => return None,
            Self::Broken { .. } => "resume the run: it goes on from what is on disk",
        })
    }
}

impl From<StoreError> for PortError {
    fn from(error: StoreError) -> Self {
        let port = Self::new(error.to_string());
        let port = match error.hint() {
            Some(hint) => port.with_hint(hint),
            None => port,
        };
        match error {
            StoreError::Io { source, .. } => port.with_cause(source),
            StoreError::Contradiction { source, .. } => port.with_cause(source),
            StoreError::Locked { .. }
            | StoreError::Lost { .. }
            | StoreError::Exists { .. }
            | StoreError::NotARun { .. }
            | StoreError::BadLine { .. }
            | StoreError::JournalMissing { .. }
            | StoreError::JournalShort { .. }
            | StoreError::ManifestDamaged { .. }
            | StoreError::JournalChanged { .. }
            | StoreError::Newer { .. }
            | StoreError::TooLong { .. }
            | StoreError::Broken { .. } => port,
        }
    }
}
