//! Reads file metadata and checks the standard input on Windows.

use std::fs::Metadata;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the last change of a file, in Unix time.
pub(super) fn changed_at(found: &Metadata) -> Duration {
    let since = |time: SystemTime| time.duration_since(UNIX_EPOCH).ok();
    found.modified().ok().and_then(since).unwrap_or_default()
}

/// Returns 1: Windows does not report the number of links without opening the file.
pub(super) fn hard_link_count(_found: &Metadata) -> u64 {
    1
}

/// Returns false: on Windows a lock belongs to the process that took it, and is not inherited.
pub(super) fn is_standard_input(_file: &Path) -> bool {
    false
}
