//! What Windows does its own way: names of hosts, and directories that need no syncing.

use std::io;
use std::path::Path;

/// Makes the names in a directory durable: the file system does that by itself.
#[expect(clippy::unnecessary_wraps, reason = "it can fail elsewhere")]
pub(super) fn sync_dir(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// This machine's name.
pub(super) fn hostname() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "unknown".to_owned())
}

/// A temporary file.
pub(super) fn temporary_in(dir: &Path) -> io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new().prefix(super::durable::UNFINISHED).tempfile_in(dir)
}
