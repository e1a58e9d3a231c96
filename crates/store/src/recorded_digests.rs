//! Reads the digests of the files that a run's steps have written from its journal.

use super::error::StoreError;
use super::journal::JournalReader;
use super::layout::RunDir;
use std::collections::BTreeMap;
use treebeam_core::event::Event;
use treebeam_core::id::{RunPath, Sha256};

/// The recorded digests of a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedDigests {
    /// The last recorded digest of each path.
    pub by_path: BTreeMap<RunPath, Sha256>,
    /// True if the journal goes back to the run's first event, false if it was begun anew.
    pub from_the_start: bool,
}

/// Reads the recorded digest of each file that a step of the run has written.
///
/// # Errors
/// When there is no journal, or it is damaged.
pub fn read_recorded_digests(run: &RunDir) -> Result<RecordedDigests, StoreError> {
    let mut reader = JournalReader::open(&run.journal_path())?;
    let mut digests = RecordedDigests::default();
    while let Some(record) = reader.next_record()? {
        digests.from_the_start |= record.seq == 1;
        if let Event::FilesRecorded(recorded) = record.event {
            let files = recorded.files.into_iter().map(|file| (file.path, file.sha256));
            digests.by_path.extend(files);
        }
    }
    Ok(digests)
}
