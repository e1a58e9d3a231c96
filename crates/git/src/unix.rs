//! Implements file stamps, links, removal, syncing and process checks for Unix.

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

pub(crate) use std::fs::remove_file as unlink;
pub(crate) use std::os::unix::fs::symlink as link;

/// Syncs the file system of a folder: a call for each file of a large checkout would take longer.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    let folder = File::open(folder)?;
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(&folder)?;
    #[cfg(not(target_os = "linux"))]
    rustix::fs::sync();
    drop(folder);
    Ok(())
}

/// Makes a folder and all its subfolders writable for us. Follows no links.
pub(super) fn make_removable(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.is_dir() {
        return Ok(());
    }
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Ok(())
}

/// Returns true if a process with this id exists, even if it belongs to another user.
pub(super) fn is_process_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| !matches!(test_kill_process(pid), Err(Errno::SRCH)))
}

/// Returns true if the owner may execute the file, the only permission that git tracks.
pub(super) fn is_executable(file: &Metadata) -> bool {
    file.permissions().mode() & 0o100 != 0
}

/// File metadata without the access time: device, inode, link count, length, mode, owner, group,
/// and the times at which the content and the metadata changed.
pub(crate) type FileStamp = ([u64; 4], [u32; 3], [i64; 4]);

pub(crate) fn file_stamp(found: &Metadata) -> FileStamp {
    let number = [found.dev(), found.ino(), found.nlink(), found.size()];
    let times = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()];
    (number, [found.mode(), found.uid(), found.gid()], times)
}
