//! What keeping a folder, removing a stubborn one, knowing it again, and knowing the living, needs
//! of Windows alone.

use std::fs::{self, Metadata};
use std::io;
use std::os::windows::fs::{MetadataExt as _, symlink_dir, symlink_file};
use std::path::Path;

/// Only a volume as a whole can be put on disk there, by an administrator.
#[expect(clippy::unnecessary_wraps, reason = "Unix has the same function, which can fail")]
pub(super) fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Read-only files are removed like others there; what is open somewhere stays until it is closed.
#[expect(clippy::unnecessary_wraps, reason = "Unix has the same function, which can fail")]
pub(super) fn make_removable(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Not known here; whoever asks does not wait for ever.
pub(super) fn is_process_alive(_pid: u32) -> bool {
    true
}

/// Not known there, and git does not ask.
pub(super) fn is_executable(_file: &Metadata) -> bool {
    false
}

/// What the system says of a file, but for when it was read: attributes, length, and when it was
/// made and changed.
pub(crate) type FileStamp = (u32, [u64; 3]);

pub(crate) fn file_stamp(found: &Metadata) -> FileStamp {
    let (made, changed) = (found.creation_time(), found.last_write_time());
    (found.file_attributes(), [found.file_size(), made, changed])
}

/// Makes a symbolic link.
pub(crate) fn link(from: &Path, place: &Path) -> io::Result<()> {
    if from.is_dir() { symlink_dir(from, place) } else { symlink_file(from, place) }
}

/// Removes a symbolic link.
pub(crate) fn unlink(place: &Path) -> io::Result<()> {
    fs::remove_file(place).or_else(|_| fs::remove_dir(place))
}
