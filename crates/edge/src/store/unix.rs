//! What Unix does its own way: names of hosts, and directories that are synced like files.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Makes the names in a directory durable.
pub(super) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// This machine's name.
pub(super) fn hostname() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = kernel.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "unknown".to_owned() } else { name.to_owned() }
}

/// A temporary file that, once renamed, is as readable as any other.
pub(super) fn temporary_in(dir: &Path) -> io::Result<tempfile::NamedTempFile> {
    let readable = Permissions::from_mode(0o666);
    tempfile::Builder::new()
        .prefix(super::durable::UNFINISHED)
        .permissions(readable)
        .tempfile_in(dir)
}
