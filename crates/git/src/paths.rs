//! Converts paths to git's form (absolute, without links, UTF-8), and syncs or removes folders.

use std::fs;
use std::io;
use std::path::Path;
use treebeam_run::port::PortError;

#[cfg(unix)]
#[path = "unix.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;

pub(crate) use system::{link, unlink};

/// File metadata that differs for another or a changed file.
pub type FileStamp = system::FileStamp;

/// Returns the stamp of a file.
#[must_use]
pub fn file_stamp(found: &fs::Metadata) -> FileStamp {
    system::file_stamp(found)
}

/// Returns true if a process with this id exists.
pub(super) fn is_process_alive(pid: u32) -> bool {
    system::is_process_alive(pid)
}

/// Returns true if the owner may execute the file; always false on Windows.
pub(super) fn is_executable(file: &fs::Metadata) -> bool {
    system::is_executable(file)
}

/// Returns the canonical path of something that exists.
pub(super) fn real_path(path: &Path) -> Result<String, PortError> {
    let fail = |why: &str| PortError::new(format!("`{}` {why}", path.display()));
    let real = fs::canonicalize(path).map_err(|error| fail("cannot be found").with_cause(error))?;
    let text = real.to_str().ok_or_else(|| fail("lies at a path that is not UTF-8"))?;
    Ok(git_path(text))
}

/// Returns a path in git's form: `/` as separator, without the `\\?\` of canonical paths on
/// Windows.
pub(super) fn git_path(path: &str) -> String {
    if !cfg!(windows) {
        return path.to_owned();
    }
    let path = path.replace('\\', "/");
    match path.strip_prefix("//?/UNC/") {
        Some(share) => format!("//{share}"),
        None => path.strip_prefix("//?/").unwrap_or(&path).to_owned(),
    }
}

/// Returns true if `path` is a link to exactly `target`.
#[must_use]
pub fn is_link_to(path: &Path, target: &Path) -> bool {
    fs::read_link(path).is_ok_and(|found| found == target)
}

/// Returns true if `path` is a dangling link to an absolute path that ends with `end`.
pub(super) fn is_dangling_link_to(path: &Path, end: &Path) -> bool {
    fs::read_link(path)
        .is_ok_and(|found| found.is_absolute() && found.ends_with(end) && !path.exists())
}

/// Syncs a folder and everything in it to disk.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    system::sync_folder(folder)
}

/// Removes a folder, a file or a link itself, also if a folder inside is not writable. A missing
/// path is no error.
pub(super) fn remove_path(path: &Path) -> io::Result<()> {
    match remove_once(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            system::make_removable(path)?;
            remove_once(path)
        }
        other => other,
    }
}

fn remove_once(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if is_absent_error(error.kind()) => Ok(()),
        other => other,
    }
}

fn is_absent_error(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_unwritable_goes_and_what_a_link_leads_to_stays() -> io::Result<()> {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let temporary = tempfile::tempdir()?;
        let (kept, gone) = (temporary.path().join("kept"), temporary.path().join("gone"));
        fs::create_dir_all(kept.join("inside"))?;
        fs::create_dir_all(gone.join("a/b"))?;
        fs::write(gone.join("a/b/file"), "x")?;
        symlink(&kept, gone.join("a/link"))?;
        for folder in ["a/b", "a"] {
            fs::set_permissions(gone.join(folder), fs::Permissions::from_mode(0o500))?;
        }
        fs::set_permissions(&kept, fs::Permissions::from_mode(0o500))?;
        remove_path(&gone)?;
        remove_path(&gone)?;
        remove_path(&kept.join("no/such/thing"))?;
        assert!(!gone.exists() && kept.join("inside").exists());
        assert_eq!(fs::metadata(&kept)?.permissions().mode() & 0o777, 0o500);
        fs::set_permissions(&kept, fs::Permissions::from_mode(0o700))
    }
}
