//! Copies of a worktree's index, by which git tells later which files were changed since.
//! They are held in memory while a worktree is known, or as files that a git call is given in place
//! of the index.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::SystemTime;
use tempfile::TempPath;
use treebeam_core::id::Commit;

/// Prefix of the file names of copied indexes.
pub(super) const INDEX_COPY_PREFIX: &str = "index-";

/// A copy of a worktree's index in memory, with the time of the file.
#[derive(Debug)]
pub(super) struct IndexCopy {
    bytes: Vec<u8>,
    modified: SystemTime,
    /// The commit that was made or checked out with this index.
    pub(super) commit: Commit,
}

impl IndexCopy {
    /// Reads the index in a git folder whose files are those of `commit`.
    pub(super) fn read(git_dir: &str, commit: &Commit) -> io::Result<Self> {
        let path = Path::new(git_dir).join("index");
        let modified = fs::metadata(&path)?.modified()?;
        Ok(Self { bytes: fs::read(path)?, modified, commit: commit.clone() })
    }

    /// Writes it to a file of the system's temporary folder, which is removed when it is dropped.
    pub(super) fn write(&self) -> io::Result<TempPath> {
        let mut file = tempfile::Builder::new().prefix(INDEX_COPY_PREFIX).tempfile()?;
        file.write_all(&self.bytes)?;
        // Git looks into files that are no older than the index.
        file.as_file().set_modified(self.modified)?;
        Ok(file.into_temp_path())
    }
}

/// Copies an index into this folder. The copy is removed when it is dropped.
pub(super) fn copy_index(index: &Path, folder: impl AsRef<Path>) -> io::Result<TempPath> {
    let mut original = File::open(index)?;
    let mut copy = tempfile::Builder::new().prefix(INDEX_COPY_PREFIX).tempfile_in(folder)?;
    io::copy(&mut original, &mut copy)?;
    // Git looks into files that are no older than the index: a newer copy would let it overlook an edit that came in the
    // same moment as the checkout.
    copy.as_file().set_modified(original.metadata()?.modified()?)?;
    Ok(copy.into_temp_path())
}
