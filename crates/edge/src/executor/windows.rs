//! What a job needs of Windows alone.

use std::io;
use std::os::windows::fs::{symlink_dir, symlink_file};
use std::path::Path;

/// Makes a link.
pub(super) fn link(from: &Path, place: &Path) -> io::Result<()> {
    if from.is_dir() { symlink_dir(from, place) } else { symlink_file(from, place) }
}

/// A lock belongs to the process that took it here, and cannot be handed down.
pub(super) fn is_standard_input(_file: &Path) -> bool {
    false
}
