//! Windows side of the platform layer: host name, file ids; directories need no syncing. Processes
//! are not looked up: the lock on `run.lock` ends with its process, which is enough.

use super::error::SystemErrorKind;
use super::lease::ProcessState;
use super::record_file::LinkPolicy;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Does nothing: the file system makes the names in a directory durable by itself.
#[expect(clippy::unnecessary_wraps, reason = "it can fail elsewhere")]
pub(super) fn sync_dir(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Makes the content of a file durable, whichever process wrote it. Needs write access here.
pub(super) fn sync_file(path: &Path) -> io::Result<()> {
    File::options().write(true).open(path)?.sync_all()
}

/// Makes an open return a link itself if it is not to be followed. No file name opens a pipe.
pub(super) fn open_without_waiting(options: &mut OpenOptions, links: LinkPolicy) {
    /// The flag `FILE_FLAG_OPEN_REPARSE_POINT`.
    const OPEN_REPARSE_POINT_FLAG: u32 = 0x0020_0000;
    #[cfg(windows)]
    if links == LinkPolicy::Refuse {
        use std::os::windows::fs::OpenOptionsExt as _;
        options.custom_flags(OPEN_REPARSE_POINT_FLAG);
    }
    #[cfg(not(windows))]
    let _ = (options, links, OPEN_REPARSE_POINT_FLAG);
}

/// Returns none: errors without a name in the standard library are not classified here.
pub(super) fn system_error_kind(_error: &io::Error) -> Option<SystemErrorKind> {
    None
}

/// Returns this machine's name.
pub(super) fn hostname() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "unknown".to_owned())
}

/// Returns none: the boot is not looked up here.
pub(super) const fn boot_id() -> Option<String> {
    None
}

/// Returns `Unknown`: process states are not looked up here.
pub(super) const fn process_state(_pid: u32) -> ProcessState {
    ProcessState::Unknown
}

/// Identity of a file, independent of its names: its creation time, which a copy does not inherit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId(std::time::SystemTime);

/// Returns the identity of an open file.
pub(super) fn file_id(file: &File) -> io::Result<FileId> {
    file.metadata()?.created().map(FileId)
}

/// Length and time of a file's content: another stamp means that somebody may have written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    /// Length in bytes.
    pub(super) length: u64,
    modified: std::time::SystemTime,
}

/// Reads the stamp of an open file.
pub(super) fn file_stamp(file: &File) -> io::Result<FileStamp> {
    let found = file.metadata()?;
    Ok(FileStamp { length: found.len(), modified: found.modified()? })
}

/// Creates a temporary file.
pub(super) fn create_temp_file(dir: &Path) -> io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new().prefix(super::atomic_file::UNFINISHED_PREFIX).tempfile_in(dir)
}
