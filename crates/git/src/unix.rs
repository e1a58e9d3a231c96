//! What keeping a folder, removing a stubborn one, knowing it again, and knowing the living, needs of Unix alone.

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

pub(crate) use std::fs::remove_file as unlink;
pub(crate) use std::os::unix::fs::symlink as link;

/// Puts on disk what was written to the file system of a folder: a call for each file of a large checkout takes longer.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    let folder = File::open(folder)?;
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(&folder)?;
    #[cfg(not(target_os = "linux"))]
    rustix::fs::sync();
    drop(folder);
    Ok(())
}

/// Lets us write to a folder and to every folder in it. Follows no links.
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

/// Whether there is such a process; one of somebody else's cannot be signalled, but is there.
pub(super) fn is_process_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| !matches!(test_kill_process(pid), Err(Errno::SRCH)))
}

/// Whether its owner may run a file: all that git knows of permissions.
pub(super) fn is_executable(file: &Metadata) -> bool {
    file.permissions().mode() & 0o100 != 0
}

/// All that the system says of a file, but for when it was read: device, number, mode, names, owner, group, length, and
/// when its content and anything of it were changed.
pub(crate) type FileStamp = ([u64; 4], [u32; 3], [i64; 4]);

pub(crate) fn file_stamp(found: &Metadata) -> FileStamp {
    let number = [found.dev(), found.ino(), found.nlink(), found.size()];
    let times = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()];
    (number, [found.mode(), found.uid(), found.gid()], times)
}
