//! Implements file stamps, links, removal, syncing and process checks for Windows.

use std::fs::{self, Metadata};
use std::io;
use std::os::windows::fs::{MetadataExt as _, symlink_dir, symlink_file};
use std::path::Path;

/// Does nothing: on Windows only an administrator can sync, and only a whole volume.
#[expect(clippy::unnecessary_wraps, reason = "Unix has the same function, which can fail")]
pub(super) fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Does nothing: Windows removes read-only files like others, and open ones stay until closed.
#[expect(clippy::unnecessary_wraps, reason = "Unix has the same function, which can fail")]
pub(super) fn make_removable(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Returns true, as Windows offers no simple check; callers limit their wait.
pub(super) fn is_process_alive(_pid: u32) -> bool {
    true
}

/// Returns false: Windows has no executable bit, and git does not use one there.
pub(super) fn is_executable(_file: &Metadata) -> bool {
    false
}

/// File metadata without the access time: attributes, length, and times of creation and change.
pub(crate) type FileStamp = (u32, [u64; 3]);

pub(crate) fn file_stamp(found: &Metadata) -> FileStamp {
    let (made, changed) = (found.creation_time(), found.last_write_time());
    (found.file_attributes(), [found.file_size(), made, changed])
}

/// Creates a symbolic link.
pub(crate) fn link(from: &Path, place: &Path) -> io::Result<()> {
    if from.is_dir() { symlink_dir(from, place) } else { symlink_file(from, place) }
}

/// Removes a symbolic link.
pub(crate) fn unlink(place: &Path) -> io::Result<()> {
    fs::remove_file(place).or_else(|_| fs::remove_dir(place))
}
