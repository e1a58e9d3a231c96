//! Notes for the user on how a run was opened. None of them is an error: the run was opened.

use std::fmt;
use std::path::PathBuf;
use treebeam_core::event::{RunnerProcess, TakeoverReason};

/// A note for the user on how a run was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenNote {
    /// A manifest is damaged.
    Damaged {
        /// Path of the manifest.
        path: PathBuf,
        /// Description of the damage.
        why: String,
    },
    /// The journal does not reach as far as the manifest.
    ManifestAlone {
        /// State of the journal: missing, or too short.
        journal_is: &'static str,
        /// Number of the manifest's event.
        seq: u64,
    },
    /// A manifest was written by a process that had lost the run.
    Late {
        /// Path of the manifest.
        path: PathBuf,
    },
    /// The run was taken from a process that did not leave cleanly.
    TakenOver {
        /// The previous owner, if known.
        from: Option<RunnerProcess>,
        /// The reason why the run could be taken.
        because: TakeoverReason,
    },
    /// The last line of the journal was not written whole.
    Torn {
        /// Offset of the line.
        at: u64,
    },
}

impl fmt::Display for OpenNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged { path, why } => {
                write!(f, "`{}` is damaged and was passed over: {why}", path.display())
            }
            Self::ManifestAlone { journal_is, seq } => {
                write!(f, "the journal is {journal_is}: going on from the manifest of event {seq}")
            }
            Self::Late { path } => {
                let path = path.display();
                write!(f, "`{path}` is by a process that had lost the run, and was passed over")
            }
            Self::TakenOver { from: Some(RunnerProcess { pid, hostname, .. }), because } => {
                let hostname = hostname.escape_debug();
                write!(f, "the run was taken over from process {pid} on `{hostname}`, {because}")
            }
            Self::TakenOver { from: None, because } => {
                write!(f, "the run was taken over from a process without a name, {because}")
            }
            Self::Torn { at } => {
                write!(f, "the journal's last line is torn and does not count (from byte {at})")
            }
        }
    }
}
