//! Reads file metadata and checks the standard input on Unix.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

/// Returns the last change of a file or its metadata, in Unix time.
pub(super) fn changed_at(found: &fs::Metadata) -> Duration {
    let time = |seconds: i64, nanos: i64| {
        let (seconds, nanos) = (u64::try_from(seconds), u32::try_from(nanos));
        Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
    };
    let content = time(found.mtime(), found.mtime_nsec());
    time(found.ctime(), found.ctime_nsec()).max(content)
}

/// Returns the number of hard links of a file.
pub(super) fn hard_link_count(found: &fs::Metadata) -> u64 {
    found.nlink()
}

/// Returns true if this file is our standard input: then its lock was inherited with it.
pub(super) fn is_standard_input(file: &Path) -> bool {
    let held = io::stdin().as_fd().try_clone_to_owned().map(File::from);
    let held = held.and_then(|file| file.metadata());
    let named = fs::symlink_metadata(file);
    let same = |a: &fs::Metadata, b: &fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    matches!((held, named), (Ok(held), Ok(named)) if same(&held, &named))
}
