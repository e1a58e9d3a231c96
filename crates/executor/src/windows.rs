//! What a job needs of Windows alone.

use std::fs::Metadata;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// When a file was last changed, in Unix time.
pub(super) fn changed_at(found: &Metadata) -> Duration {
    let since = |time: SystemTime| time.duration_since(UNIX_EPOCH).ok();
    found.modified().ok().and_then(since).unwrap_or_default()
}

/// How many names a file has; not told there without opening it.
pub(super) fn hard_link_count(_found: &Metadata) -> u64 {
    1
}

/// A lock belongs to the process that took it here, and cannot be handed down.
pub(super) fn is_standard_input(_file: &Path) -> bool {
    false
}
