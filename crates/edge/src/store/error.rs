//! What can be wrong with a run on disk: what, where, why, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};
use treebeam_core::state::Unexpected;
use treebeam_run::port::PortError;

/// A run that cannot be created, opened or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system refused.
    #[error("cannot {doing} `{}`", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Another process runs it.
    #[error("the run `{}` is locked by {holder}", path.display())]
    Locked {
        /// The run directory.
        path: PathBuf,
        /// Who, as far as is known.
        holder: String,
        /// Where that process is.
        owner: Whereabouts,
    },
    /// Another process has taken the run from this one.
    #[error("the run `{}` was taken over by {holder}; this process writes nothing more to it", path.display())]
    Lost {
        /// The run directory.
        path: PathBuf,
        /// Who, as far as is known.
        holder: String,
    },
    /// The run id is taken.
    #[error("there is a run `{}` already", path.display())]
    Exists {
        /// The run directory.
        path: PathBuf,
    },
    /// Neither journal nor manifest is there.
    #[error("`{}` is no run: it has neither a journal nor a readable manifest", path.display())]
    NotARun {
        /// The directory.
        path: PathBuf,
    },
    /// A line of the journal is not what was written.
    #[error("`{}` line {line}: {why}", path.display())]
    BadLine {
        /// The journal.
        path: PathBuf,
        /// Which line, counted from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// A line of the journal says what cannot have happened.
    #[error("`{}` line {line} cannot follow the lines before it", path.display())]
    Contradiction {
        /// The journal.
        path: PathBuf,
        /// Which line, counted from 1.
        line: u64,
        /// What contradicts what.
        source: Unexpected,
    },
    /// The journal is gone, the manifest is there.
    #[error("`{}` is missing, but there is a manifest", path.display())]
    JournalMissing {
        /// The journal.
        path: PathBuf,
    },
    /// The journal ends before the manifest does.
    #[error("`{}` ends at event {last}, but the manifest was written at event {seq}", path.display())]
    JournalShort {
        /// The journal.
        path: PathBuf,
        /// Its last event.
        last: u64,
        /// The manifest's.
        seq: u64,
    },
    /// The manifest was written by a newer treebeam.
    #[error("`{}` has version {version}; this treebeam knows versions up to {known}", path.display())]
    Newer {
        /// The manifest.
        path: PathBuf,
        /// Its version.
        version: u64,
        /// The newest version that is known here.
        known: u64,
    },
    /// An event that is too long to be read back.
    #[error("an event for `{}` is {bytes} bytes long, more than {limit}", path.display())]
    TooLong {
        /// The journal.
        path: PathBuf,
        /// Its length.
        bytes: usize,
        /// The most that is read back.
        limit: usize,
    },
    /// An earlier write failed.
    #[error("nothing more is written to `{}`, because an earlier write failed", path.display())]
    Broken {
        /// The journal.
        path: PathBuf,
    },
}

/// Where the process is that has a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// On this machine, and alive.
    Here,
    /// On another machine, and perhaps alive.
    Elsewhere,
}

impl StoreError {
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }

    /// What to do about it.
    #[must_use]
    pub const fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Io { .. } => "check that the disk is there, has room, and may be written",
            Self::Locked { owner: Whereabouts::Here, .. } => {
                "wait for that process, or stop it: `--force` takes no run from a living one; reading commands need no lock"
            }
            Self::Locked { owner: Whereabouts::Elsewhere, .. } => {
                "stop it there, or make sure that it is dead and take the run with `--force`; reading commands need no lock"
            }
            Self::Lost { .. } => {
                "nothing is lost: that process goes on from the record; `treebeam status` shows the run"
            }
            Self::Exists { .. } => "resume it with `treebeam resume`, or choose another `--run-id`",
            Self::NotARun { .. } => {
                "`treebeam list` shows the runs of this repository, `treebeam run` starts one"
            }
            Self::BadLine { .. } | Self::Contradiction { .. } => {
                "the file was changed or damaged: restore it from a backup; nothing was written"
            }
            Self::JournalMissing { .. } | Self::JournalShort { .. } => {
                "restore the journal from a backup, or go on from the manifest alone: `treebeam resume RUN --force`"
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
            Some(hint) => port.hint(hint),
            None => port,
        };
        match error {
            StoreError::Io { source, .. } => port.caused_by(source),
            StoreError::Contradiction { source, .. } => port.caused_by(source),
            StoreError::Locked { .. }
            | StoreError::Lost { .. }
            | StoreError::Exists { .. }
            | StoreError::NotARun { .. }
            | StoreError::BadLine { .. }
            | StoreError::JournalMissing { .. }
            | StoreError::JournalShort { .. }
            | StoreError::Newer { .. }
            | StoreError::TooLong { .. }
            | StoreError::Broken { .. } => port,
        }
    }
}
