//! Tests whether a folder can hold runs (locks exclude, renames replace). Leaves nothing behind.

use super::{atomic_file, os};
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Tries in a folder all file operations of a run: write, sync, lock, rename.
///
/// # Errors
/// When one of these operations fails; the error names it.
pub fn try_folder(folder: &Path) -> io::Result<()> {
    let named = |what: &str| {
        let what = what.to_owned();
        move |error: io::Error| io::Error::new(error.kind(), format!("{what}: {error}"))
    };
    let mut file = os::create_temp_file(folder).map_err(named("no file can be made"))?;
    let write = file.write_all(b"treebeam\n").and_then(|()| file.as_file().sync_all());
    write.map_err(named("nothing can be written"))?;
    check_lock_excludes(file.path()).map_err(named("files cannot be locked"))?;
    let moved = file.path().with_extension("moved");
    let renamed = fs::rename(file.path(), &moved).and_then(|()| fs::remove_file(&moved));
    renamed.map_err(named("files cannot be renamed"))?;
    atomic_file::sync_dir(folder).map_err(named("the folder cannot be synced"))
}

/// Checks that a held lock excludes a second one.
fn check_lock_excludes(path: &Path) -> io::Result<()> {
    let (one, other) = (File::open(path)?, File::open(path)?);
    one.lock()?;
    match other.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(()),
        Err(TryLockError::Error(error)) => Err(error),
        Ok(()) => Err(io::Error::other("two can hold one lock at once")),
    }
}

/// Returns the folder itself, or its nearest ancestor that exists.
#[must_use]
pub fn nearest_folder(folder: &Path) -> PathBuf {
    folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(folder).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_folder_is_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        try_folder(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let missing = folder.path().join("a/b");
        assert_eq!(nearest_folder(&missing), folder.path());
        let said = try_folder(&missing).unwrap_err().to_string();
        assert!(said.starts_with("no file can be made: "), "{said}");
    }
}
