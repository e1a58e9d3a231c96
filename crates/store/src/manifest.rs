//! Writes and reads `manifest.json`: the whole state at one point of the journal. With it, opening
//! a run need not read the whole journal. A short cut, never the truth: a damaged one is skipped.

use super::atomic_file;
use super::disk_format::document;
use super::error::StoreError;
use super::layout::RunDir;
use super::record_file::{self, RecordKind, UnusableFile};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use treebeam_core::facts::Facts;

pub use super::disk_format::document::{JournalMark, ManifestError};

/// Writes the manifest of these facts.
///
/// # Errors
/// When `to` reports an error.
pub fn encode_manifest(facts: &Facts, mark: JournalMark, to: impl Write) -> io::Result<()> {
    document::write_document(facts, mark, to)
}

/// Parses a manifest of this version or an older one. Derived values are ignored.
///
/// # Errors
/// When the manifest is damaged or of a newer version.
pub fn decode_manifest(bytes: &[u8]) -> Result<(Facts, JournalMark), ManifestError> {
    document::read_document(bytes)
}

/// A manifest that was read from disk.
pub(super) struct FoundManifest {
    pub(super) facts: Facts,
    pub(super) mark: JournalMark,
    pub(super) bytes: u64,
}

/// Reads a manifest file. None if there is no such file; an inner error describes the damage.
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

/// Condition of the manifest on disk, which decides whether it may become the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ManifestCondition {
    /// The manifest is good.
    Good,
    /// The manifest is missing or damaged.
    Unusable,
}

/// Writes the manifest, keeps the previous one, and returns the length in bytes.
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
