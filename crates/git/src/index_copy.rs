//! Copies of a worktree's index, by which git tells later which files were changed since.
//! They are held in memory while a worktree is known, or as files that a git call is given in place
//! of the index.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::SystemTime;
use tempfile::TempPath;
use treebeam_core::id::Commit;

/// Prefix of the names of copied indexes.
pub(super) const INDEX_COPY_PREFIX: &str = "index-";

/// A copy of a worktree's index, which holds the metadata of all files.
#[derive(Debug)]
pub(super) struct IndexCopy {
    bytes: Vec<u8>,
    modified: SystemTime,
    /// Commit that was made or checked out with this index.
    pub(super) commit: Commit,
}

impl IndexCopy {
    pub(super) fn read(git_dir: &str, commit: &Commit) -> io::Result<Self> {
        let path = Path::new(git_dir).join("index");
        let modified = fs::metadata(&path)?.modified()?;
        Ok(Self { bytes: fs::read(path)?, modified, commit: commit.clone() })
    }

    /// Writes the copy to a temporary file for git. It lives too shortly to be stored in the run.
    pub(super) fn write(&self) -> io::Result<TempPath> {
        let mut file = tempfile::Builder::new().prefix(INDEX_COPY_PREFIX).tempfile()?;
        file.write_all(&self.bytes)?;
        // Git reads the content of files that are as new as the index.
        file.as_file().set_modified(self.modified)?;
        Ok(file.into_temp_path())
    }
}

/// Copies an index into this folder, as a file that is removed when dropped.
pub(super) fn copy_index(index: &Path, folder: impl AsRef<Path>) -> io::Result<TempPath> {
    let mut original = File::open(index)?;
    let mut copy = tempfile::Builder::new().prefix(INDEX_COPY_PREFIX).tempfile_in(folder)?;
    io::copy(&mut original, &mut copy)?;
    // Git reads the content of files that are as new as the index: a newer copy would let it miss
    // an edit from the same moment as the checkout.
    copy.as_file().set_modified(original.metadata()?.modified()?)?;
    Ok(copy.into_temp_path())
}
