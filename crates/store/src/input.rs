//! Reads files that the user names or provides, without interpreting their content. Only regular
//! files are opened, because opening a pipe or a device may wait forever.

use crate::record_file::{LinkPolicy, UnusableFile, open_regular};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The reason why a file of the user's cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The file does not exist.
    #[error("there is no file `{file}`")]
    Missing {
        /// Name of the file, as the user gave it.
        file: String,
    },
    /// The name is that of a folder.
    #[error("`{file}` is a folder, not a file")]
    Folder {
        /// Name of the folder.
        file: String,
    },
    /// The name is that of a pipe, a device or a socket.
    #[error("`{file}` is no regular file: a pipe, a device or a socket")]
    Special {
        /// Name of the entry.
        file: String,
    },
    /// The file is longer than the limit.
    #[error("`{file}` is longer than {limit} bytes")]
    TooLong {
        /// Name of the file.
        file: String,
        /// The most bytes that are read.
        limit: u64,
    },
    /// The file is not UTF-8 text.
    #[error("`{file}`, line {line}: not UTF-8")]
    NotUtf8 {
        /// Name of the file.
        file: String,
        /// Number of the first line that is not UTF-8.
        line: usize,
    },
    /// The file cannot be read.
    #[error("cannot read `{file}`")]
    Io {
        /// Name of the file.
        file: String,
        /// The system's error.
        source: io::Error,
    },
}

impl InputError {
    /// Returns a hint on what to do about the error.
    #[must_use]
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Missing { .. } => {
                Some("a relative path begins at the current folder, or at that of `-C`")
            }
            Self::Folder { .. } => Some("name a file in it"),
            Self::Special { .. } => Some("write its content to a file first, and name that"),
            Self::TooLong { .. } | Self::NotUtf8 { .. } | Self::Io { .. } => None,
        }
    }

    fn from_io(source: io::Error, file: &str) -> Self {
        let file = file.to_owned();
        match UnusableFile::in_error(&source) {
            Some(UnusableFile::Folder) => return Self::Folder { file },
            Some(UnusableFile::Special | UnusableFile::Link) => return Self::Special { file },
            Some(UnusableFile::TooLong { limit }) => return Self::TooLong { file, limit },
            None => {}
        }
        if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
            return Self::Missing { file };
        }
        Self::Io { file, source }
    }
}

/// Opens a regular file, called `name` in errors. Links are followed: the user chose them.
///
/// # Errors
/// When the file is missing, not a regular file, or cannot be opened.
pub fn open_input(path: &Path, name: &str) -> Result<File, InputError> {
    let opened = open_regular(File::options().read(true), path, LinkPolicy::Follow);
    opened.map(|(file, _)| file).map_err(|error| InputError::from_io(error, name))
}

/// Reads a whole file as text.
///
/// # Errors
/// As [`open_input`]; and when the file is longer than `limit` bytes or not UTF-8.
pub fn read_text(path: &Path, name: &str, limit: u64) -> Result<String, InputError> {
    read_all(open_input(path, name)?, name, limit)
}

/// Reads standard input as text, to its end.
///
/// # Errors
/// When standard input cannot be read, is longer than `limit` bytes or not UTF-8.
pub fn read_standard_input(limit: u64) -> Result<String, InputError> {
    read_all(io::stdin().lock(), "-", limit)
}

fn read_all(from: impl Read, name: &str, limit: u64) -> Result<String, InputError> {
    let mut bytes = Vec::new();
    from.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| InputError::from_io(error, name))?;
    if bytes.len() as u64 > limit {
        return Err(InputError::TooLong { file: name.to_owned(), limit });
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let line = good.split(|byte| *byte == b'\n').count();
        InputError::NotUtf8 { file: name.to_owned(), line }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn said<T>(result: Result<T, InputError>) -> String {
        result.map_or_else(|error| error.to_string(), |_| "read".to_owned())
    }

    #[test]
    fn only_regular_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let read = |name: &str| said(read_text(&path(name), name, 8));
        fs::write(path("good"), "a\nb\n").unwrap();
        fs::write(path("long"), "123456789").unwrap();
        fs::write(path("latin"), b"a\nb\xe4\n").unwrap();
        assert_eq!(read("good"), "read");
        assert_eq!(read("long"), "`long` is longer than 8 bytes");
        assert_eq!(read("latin"), "`latin`, line 2: not UTF-8");
        assert_eq!(read("none"), "there is no file `none`");
        assert_eq!(read("good/none"), "there is no file `good/none`");
        assert_eq!(said(open_input(folder.path(), "folder")), "`folder` is a folder, not a file");
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_not_opened_and_a_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("good"), "a\n").unwrap();
        std::os::unix::fs::symlink("good", folder.path().join("link")).unwrap();
        assert_eq!(said(open_input(&folder.path().join("link"), "link")), "read");
        let zero = said(open_input(Path::new("/dev/zero"), "zero"));
        assert_eq!(zero, "`zero` is no regular file: a pipe, a device or a socket");
    }
}
