//! `manifest.json`: the whole state at one point of the journal, so that opening a run need not read all of it.
//! A short cut, never the truth: one that is damaged is passed over.

use super::durable;
use super::error::StoreError;
use super::layout::RunDir;
use super::record_file::{self, RecordKind, UnusableFile};
use super::wire::document;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use treebeam_core::facts::Facts;

/// Where the journal stood when a manifest was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The last event that the manifest covers.
    pub seq: u64,
    /// Which opening of the run wrote it.
    pub epoch: u64,
    /// The first event of the journal: 1, unless the run had to go on from a manifest alone.
    pub journal_starts_at: u64,
    /// The byte at which that event's line begins, if it is in the journal.
    pub journal_line_at: Option<u64>,
}

/// Why a manifest cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is not what was written.
    #[error("{0}")]
    Damaged(String),
    /// It was written by a newer treebeam.
    #[error("it has version {0}")]
    Newer(u64),
}

/// Writes the manifest of these facts.
///
/// # Errors
/// When `to` does not take it.
pub fn encode(facts: &Facts, mark: Mark, to: impl Write) -> io::Result<()> {
    document::write(facts, mark, to)
}

/// The facts that a manifest of this or an older version holds. What can be derived from them is not believed.
///
/// # Errors
/// When it is damaged or of a newer version.
pub fn decode(bytes: &[u8]) -> Result<(Facts, Mark), Unreadable> {
    document::read(bytes)
}

/// A manifest that was found.
pub(super) struct Found {
    pub(super) facts: Facts,
    pub(super) mark: Mark,
    pub(super) bytes: u64,
}

/// Reads a manifest file. None: there is no such file; a string: it is damaged, and why.
pub(super) fn read(path: &Path) -> Result<Option<Result<Found, String>>, StoreError> {
    let bytes = match record_file::read(path, RecordKind::Manifest) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => match UnusableFile::in_error(&error) {
            Some(why) => return Ok(Some(Err(why.to_string()))),
            None => return Err(StoreError::io("read", path)(error)),
        },
    };
    match decode(&bytes) {
        Ok((facts, mark)) => {
            let bytes = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            Ok(Some(Ok(Found { facts, mark, bytes })))
        }
        Err(Unreadable::Damaged(why)) => Ok(Some(Err(why))),
        Err(Unreadable::Newer(version)) => {
            let (path, known) = (path.to_owned(), document::VERSION);
            Err(StoreError::Newer { path, version, known })
        }
    }
}

/// Whether the manifest that is there may become the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Present {
    /// It is good.
    Good,
    /// There is none, or a damaged one.
    Unusable,
}

/// Writes the manifest, keeps the one before, and says how long it is.
pub(super) fn write(
    run: &RunDir,
    facts: &Facts,
    mark: Mark,
    present: Present,
) -> Result<u64, StoreError> {
    let path = run.manifest();
    let mut bytes = 0;
    let content = |file: &mut File| {
        encode(facts, mark, BufWriter::with_capacity(64 * 1024, &mut *file))?;
        bytes = file.metadata()?.len();
        Ok(())
    };
    let keep = || match present {
        Present::Good => durable::also_name(&path, &run.previous_manifest()),
        Present::Unusable => Ok(()),
    };
    durable::replace_after(&path, content, keep).map_err(StoreError::io("write", &path))?;
    durable::sync_dir(run.root()).map_err(StoreError::io("sync", run.root()))?;
    Ok(bytes)
}
