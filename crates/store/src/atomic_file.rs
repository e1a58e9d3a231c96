//! Whole files or none: written under another name, synced, then renamed. Knows nothing of what is in them.

use super::os;
use super::record_file::{self, RecordKind};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// How the name of a file begins that is not written whole yet.
pub(super) const UNFINISHED_PREFIX: &str = ".new-";

/// Removes what a process that was killed did not finish writing. Only who owns the folder may do this.
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

/// Writes a new file in place of whatever has this name. The content is durable; the name becomes so with [`sync_dir`].
///
/// # Errors
/// Where the file cannot be written, synced or moved into place.
pub fn replace_file(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    replace_after(path, write, || Ok(()))
}

/// The same; something else happens between the writing and the renaming.
pub(super) fn replace_after(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
    between: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    write_and_rename(path.parent().unwrap_or(Path::new(".")), path, write, between)
}

/// The same, begun in another directory of the same file system: one place to look for what was not finished.
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

/// Writes a new file in place of whatever has this name, and keeps it open to append to: this file, whatever takes the
/// name next.
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

/// Writes a new file where none has this name, and keeps it open to read it and to append to it.
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

/// Writes a new file where none has this name; an error where one has, and that stays as it is.
///
/// # Errors
/// Where there is such a file already, or it cannot be written.
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

/// Makes what is in a file durable, whoever wrote it.
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

/// Gives a file a second name, in place of whatever has that name; a copy, where there can be no second name.
pub(super) fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    let step = &pending_link_path(to);
    remove_if_present(step)?;
    if fs::hard_link(from, step).is_err() {
        let mut source = record_file::open_record(from, RecordKind::Artifact)?;
        return replace_file(to, |file| io::copy(&mut source, file).map(drop));
    }
    fs::rename(step, to)?;
    // Renaming one name of a file to another of its names does nothing at all.
    remove_if_present(step)
}

/// What a file is called before it gets this name as its second one.
pub(super) fn pending_link_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".link");
    name.into()
}

/// Removes a file that may be gone already.
///
/// # Errors
/// Where the file is there and cannot be removed.
pub fn remove_if_present(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
