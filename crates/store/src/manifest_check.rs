//! Compares a run's manifest with its journal: it must be, to the byte, what the journal leads to.

use super::disk_format::document;
use super::error::StoreError;
use super::journal::JournalReader;
use super::layout::RunDir;
use super::manifest::{self, JournalMark};
use super::record_file::{self, RecordKind, UnusableFile};
use std::io;
use treebeam_core::event::Event;
use treebeam_core::state::State;

/// Returns a description of the first difference between the manifest and the journal's state. A
/// missing or damaged manifest gives none.
///
/// # Errors
/// When the journal is damaged, or a file cannot be read.
pub fn find_manifest_mismatch(run: &RunDir) -> Result<Option<String>, StoreError> {
    let path = run.manifest_path();
    let found = match record_file::read_record(&path, RecordKind::Manifest) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if UnusableFile::in_error(&error).is_some() => return Ok(None),
        Err(error) => return Err(StoreError::io("read", &path)(error)),
    };
    let mark = match manifest::decode_manifest(&found) {
        Ok((_, mark)) => Some(mark),
        Err(_) => document::unverified_mark(&found),
    };
    let Some(mark) = mark else { return Ok(None) };
    if mark.journal_starts_at != 1 {
        return Ok(None);
    }
    let state = state_at(run, mark)?;
    let mut expected = Vec::new();
    manifest::encode_manifest(&state, mark, &mut expected)
        .map_err(StoreError::io("write", &path))?;
    Ok(first_difference(&found, &expected))
}

fn state_at(run: &RunDir, mark: JournalMark) -> Result<State, StoreError> {
    let mut reader = JournalReader::open(&run.journal_path())?;
    let not_a_run = || StoreError::NotARun { path: run.root().to_owned() };
    let first = reader.next_record()?.ok_or_else(not_a_run)?;
    let Event::RunStarted(started) = &first.event else { return Err(not_a_run()) };
    let mut state = State::from_run_started(started);
    let mut seq = first.seq;
    while seq < mark.seq
        && let Some(record) = reader.next_record()?
    {
        seq = record.seq;
        state.apply(&record.event).map_err(|source| StoreError::Contradiction {
            path: reader.path().to_owned(),
            line: reader.line_number(),
            source,
        })?;
    }
    Ok(state)
}

fn first_difference(found: &[u8], expected: &[u8]) -> Option<String> {
    if found == expected {
        return None;
    }
    let lines = |bytes: &[u8]| -> Vec<Vec<u8>> {
        bytes.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect()
    };
    let (found, expected) = (lines(found), lines(expected));
    let same = found.iter().zip(&expected).take_while(|(a, b)| a == b).count();
    Some(format!("line {} is not what the journal leads to", same + 1))
}
