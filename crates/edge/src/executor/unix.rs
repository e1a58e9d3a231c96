//! What a job needs of Unix alone.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

pub(super) use std::fs::remove_file as unlink;
pub(super) use std::os::unix::fs::symlink as link;

/// When anything of a file was last changed, in seconds of Unix time.
pub(super) fn changed_at(found: &fs::Metadata) -> u64 {
    u64::try_from(found.ctime().max(found.mtime())).unwrap_or_default()
}

/// Whether this file is our standard input: whoever started us has given us its lock with it.
pub(super) fn is_standard_input(file: &Path) -> bool {
    let held = io::stdin().as_fd().try_clone_to_owned().map(File::from);
    let held = held.and_then(|file| file.metadata());
    let named = fs::symlink_metadata(file);
    let same = |a: &fs::Metadata, b: &fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    matches!((held, named), (Ok(held), Ok(named)) if same(&held, &named))
}
