//! What Windows does its own way: names of hosts, and directories that need no syncing. It asks for
//! nothing about other processes: the lock on `run.lock` ends with its process, and says enough.

use super::error::SystemErrorKind;
use super::lease::ProcessState;
use super::record_file::LinkPolicy;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Makes the names in a directory durable: the file system does that by itself.
#[expect(clippy::unnecessary_wraps, reason = "it can fail elsewhere")]
pub(super) fn sync_dir(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Makes what is in a file durable, whoever wrote it: only one who may write to it can ask for that.
pub(super) fn sync_file(path: &Path) -> io::Result<()> {
    File::options().write(true).open(path)?.sync_all()
}

/// Lets an open see a link itself where that is not to be followed. No name of a folder leads to a pipe.
pub(super) fn open_without_waiting(options: &mut OpenOptions, links: LinkPolicy) {
    /// `FILE_FLAG_OPEN_REPARSE_POINT`.
    const OPEN_REPARSE_POINT_FLAG: u32 = 0x0020_0000;
    #[cfg(windows)]
    if links == LinkPolicy::Refuse {
        use std::os::windows::fs::OpenOptionsExt as _;
        options.custom_flags(OPEN_REPARSE_POINT_FLAG);
    }
    #[cfg(not(windows))]
    let _ = (options, links, OPEN_REPARSE_POINT_FLAG);
}

/// What trouble an error is, where the standard library does not say: not asked for.
pub(super) fn system_error_kind(_error: &io::Error) -> Option<SystemErrorKind> {
    None
}

/// This machine's name.
pub(super) fn hostname() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "unknown".to_owned())
}

/// Which boot of this machine it is: not asked for.
pub(super) const fn boot_id() -> Option<String> {
    None
}

/// What is known about a process of this machine: nothing.
pub(super) const fn process_state(_pid: u32) -> ProcessState {
    ProcessState::Unknown
}

/// What tells one file from another: the time of its making, which a copy does not inherit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId(std::time::SystemTime);

/// Which file this is.
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

/// A temporary file.
pub(super) fn create_temp_file(dir: &Path) -> io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new().prefix(super::atomic_file::UNFINISHED_PREFIX).tempfile_in(dir)
}
