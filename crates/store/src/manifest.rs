//! `manifest.json`: the whole state at one point of the journal, so that opening a run need not read all of it.
//! A short cut, never the truth: one that is damaged is passed over.

use super::atomic_file;
use super::disk_format::document;
use super::error::StoreError;
use super::layout::RunDir;
use super::record_file::{self, RecordKind, UnusableFile};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use treebeam_core::facts::Facts;

/// Where the journal stood when a manifest was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalMark {
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
pub enum ManifestError {
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
pub fn encode_manifest(facts: &Facts, mark: JournalMark, to: impl Write) -> io::Result<()> {
    document::write_document(facts, mark, to)
}

/// The facts that a manifest of this or an older version holds. What can be derived from them is not believed.
///
/// # Errors
/// When it is damaged or of a newer version.
pub fn decode_manifest(bytes: &[u8]) -> Result<(Facts, JournalMark), ManifestError> {
    document::read_document(bytes)
}

/// A manifest that was found.
pub(super) struct FoundManifest {
    pub(super) facts: Facts,
    pub(super) mark: JournalMark,
    pub(super) bytes: u64,
}

/// Reads a manifest file. None: there is no such file; a string: it is damaged, and why.
pub(super) fn read_manifest(
    path: &Path,
) -> Result<Option<Result<FoundManifest, String>>, StoreError> {
    let bytes = match record_file::read_record(path, RecordKind::Manifest) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => match UnusableFile::in_error(&error) {
            Some(why) => return Ok(Some(Err(why.to_string()))),
            None => return Err(StoreError::io("read", path)(error)),
        },
    };
    match decode_manifest(&bytes) {
        Ok((facts, mark)) => {
            let bytes = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            Ok(Some(Ok(FoundManifest { facts, mark, bytes })))
        }
        Err(ManifestError::Damaged(why)) => Ok(Some(Err(why))),
        Err(ManifestError::Newer(version)) => {
            let (path, known) = (path.to_owned(), document::MANIFEST_VERSION);
            Err(StoreError::Newer { path, version, known })
        }
    }
}

/// Whether the manifest that is there may become the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ManifestCondition {
    /// It is good.
    Good,
    /// There is none, or a damaged one.
    Unusable,
}

/// Writes the manifest, keeps the one before, and says how long it is.
pub(super) fn write_manifest(
    run: &RunDir,
    facts: &Facts,
    mark: JournalMark,
    present: ManifestCondition,
) -> Result<u64, StoreError> {
    let path = run.manifest_path();
    let mut bytes = 0;
    let content = |file: &mut File| {
        encode_manifest(facts, mark, BufWriter::with_capacity(64 * 1024, &mut *file))?;
        bytes = file.metadata()?.len();
        Ok(())
    };
    let keep = || match present {
        ManifestCondition::Good => atomic_file::link_or_copy(&path, &run.previous_manifest_path()),
        ManifestCondition::Unusable => Ok(()),
    };
    atomic_file::replace_after(&path, content, keep).map_err(StoreError::io("write", &path))?;
    atomic_file::sync_dir(run.root()).map_err(StoreError::io("sync", run.root()))?;
    Ok(bytes)
}
