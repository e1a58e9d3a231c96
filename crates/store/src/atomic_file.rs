//! Writes whole files or none: under a temporary name, synced, then renamed.

use super::os;
use super::record_file::{self, RecordKind};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Name prefix of a file that is not written completely yet.
pub(super) const UNFINISHED_PREFIX: &str = ".new-";

/// Removes the unfinished files that killed processes left. Only for the folder's owner.
pub(crate) fn clear_unfinished_files(dir: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let unfinished = entry.file_name().to_string_lossy().starts_with(UNFINISHED_PREFIX);
        if unfinished && entry.file_type()?.is_file() {
            remove_if_present(&entry.path())?;
        }
    }
    Ok(())
}

/// Writes a file durably, replacing any of this name; [`sync_dir`] makes the name durable.
///
/// # Errors
/// Where the file cannot be written, synced or moved into place.
pub fn replace_file(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    replace_after(path, write, || Ok(()))
}

/// Writes a file as [`replace_file`] does, and calls `between` before the rename.
pub(super) fn replace_after(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
    between: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    write_and_rename(path.parent().unwrap_or(Path::new(".")), path, write, between)
}

/// Writes a file as [`replace_file`] does, with the temporary file in another directory of the same
/// file system, so that unfinished files are all in one place.
///
/// # Errors
/// Where the file cannot be written, synced or moved into place.
pub fn replace_from(
    dir: &Path,
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    write_and_rename(dir, path, write, || Ok(()))
}

/// Writes a file, replacing any file of this name, and returns it open for appending. The handle
/// stays on this file even if another one takes the name later.
pub(super) fn replace_and_open(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<File> {
    let mut file = os::create_temp_file(path.parent().unwrap_or(Path::new(".")))?;
    write(file.as_file_mut())?;
    file.as_file().sync_all()?;
    let open = OpenOptions::new().read(true).append(true).open(file.path())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(open)
}

/// Writes a new file and returns it open for reading and appending. Fails if the name is taken.
pub(super) fn create_and_open(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<File> {
    let mut file = os::create_temp_file(path.parent().unwrap_or(Path::new(".")))?;
    write(file.as_file_mut())?;
    file.as_file().sync_all()?;
    let open = OpenOptions::new().read(true).append(true).open(file.path())?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    Ok(open)
}

/// Writes a new file. Fails if the name is taken, and leaves the file that has it as it is.
///
/// # Errors
/// If the name is taken, or the file cannot be written.
pub fn create_file(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut file = os::create_temp_file(path.parent().unwrap_or(Path::new(".")))?;
    write(file.as_file_mut())?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    Ok(())
}

fn write_and_rename(
    dir: &Path,
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
    between: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let mut file = os::create_temp_file(dir)?;
    write(file.as_file_mut())?;
    file.as_file().sync_all()?;
    between()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Makes the content of a file durable, whichever process wrote it.
pub(super) fn sync_file(path: &Path) -> io::Result<()> {
    os::sync_file(path)
}

/// Makes the names in a directory durable.
///
/// # Errors
/// Where the folder cannot be opened or synced.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    os::sync_dir(dir)
}

/// Gives a file a second name, replacing any file there. Copies it if it cannot be linked.
pub(super) fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    let step = &pending_link_path(to);
    remove_if_present(step)?;
    if fs::hard_link(from, step).is_err() {
        let mut source = record_file::open_record(from, RecordKind::Artifact)?;
        return replace_file(to, |file| io::copy(&mut source, file).map(drop));
    }
    fs::rename(step, to)?;
    // A rename between two names of one file does nothing at all.
    remove_if_present(step)
}

/// Returns the temporary path of a hard link that is then renamed to `path`.
pub(super) fn pending_link_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".link");
    name.into()
}

/// Removes a file if it exists.
///
/// # Errors
/// If the file exists and cannot be removed.
pub fn remove_if_present(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
