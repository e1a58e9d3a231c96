//! What a person should know about how a run was opened. Nothing here is an error: the run was opened.

use std::fmt;
use std::path::PathBuf;

/// What a person should know about how a run was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A manifest is not what was written.
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The journal does not reach as far as the manifest.
    ManifestAlone {
        /// Missing, or too short.
        journal_is: &'static str,
        /// The manifest's event.
        seq: u64,
    },
    /// The last line of the journal was not written whole.
    Torn {
        /// Where it begins.
        at: u64,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged { path, why } => {
                write!(f, "`{}` is damaged and was passed over: {why}", path.display())
            }
            Self::ManifestAlone { journal_is, seq } => {
                write!(f, "the journal is {journal_is}: going on from the manifest of event {seq}")
            }
            Self::Torn { at } => {
                write!(f, "the journal's last line is torn and does not count (from byte {at})")
            }
        }
    }
}
