//! Opens the files of a run's record safely: regular files only, no links, no waiting, a size
//! limit. A run directory may be copied, unpacked or written to by a candidate: a link to a device
//! in place of a file would be read without end, and opening a pipe would wait forever. The content
//! of a file is not interpreted here.

use super::os;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::path::Path;

/// A kind of file in a run directory, which determines the most bytes that such a file may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// The manifest: `manifest.json` and the previous one.
    Manifest,
    /// The journal: `journal.jsonl`, which is read line by line.
    Journal,
    /// A file that exists only to be locked.
    Lock,
    /// The owner's note: `run.lock.json`.
    LockNote,
    /// A file below `artifacts/`, or any other file that the record names with its digest.
    Artifact,
    /// A request or an answer below `calls/`.
    RecordedCall,
    /// A file below `inbox/`.
    InboxMessage,
    /// The order of a sweep: `job.json`.
    JobOrder,
    /// The outcome of a sweep: `eval_result.json`.
    JobResult,
    /// Output of a test, a sweep or a job.
    Log,
}

impl RecordKind {
    /// Returns the most bytes that a file of this kind may have to be opened.
    #[must_use]
    pub const fn max_bytes(self) -> u64 {
        match self {
            Self::Journal => 1 << 36,
            Self::Manifest | Self::Artifact => 1 << 30,
            Self::RecordedCall => 256 << 20,
            Self::JobOrder | Self::JobResult => 16 << 20,
            Self::Lock => 1 << 20,
            Self::InboxMessage => 256 << 10,
            Self::LockNote => 64 << 10,
            Self::Log => u64::MAX,
        }
    }
}

/// The reason why a directory entry is not opened as a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusableFile {
    /// A symbolic link.
    #[error("it is a link, not a regular file")]
    Link,
    /// A folder.
    #[error("it is a folder, not a file")]
    Folder,
    /// A pipe, a device or a socket.
    #[error("it is a pipe, a device or a socket, not a regular file")]
    Special,
    /// A file that is longer than its kind may be.
    #[error("it is longer than {limit} bytes")]
    TooLong {
        /// The most bytes that are read.
        limit: u64,
    },
}

impl UnusableFile {
    /// Returns the reason in an error of this module; none for an error of the system.
    #[must_use]
    pub fn in_error(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }

    fn from_metadata(found: &Metadata) -> Option<Self> {
        if found.is_file() {
            None
        } else if found.is_symlink() {
            Some(Self::Link)
        } else if found.is_dir() {
            Some(Self::Folder)
        } else {
            Some(Self::Special)
        }
    }
}

impl From<UnusableFile> for io::Error {
    fn from(why: UnusableFile) -> Self {
        Self::new(io::ErrorKind::InvalidData, why)
    }
}

/// Policy on a symbolic link in the place of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkPolicy {
    /// Follow the link: the user chose it.
    Follow,
    /// Refuse the link: treebeam never puts one there.
    Refuse,
}

/// Opens a regular file; never waits, even if the name is that of a pipe.
pub(crate) fn open_regular(
    options: &mut OpenOptions,
    path: &Path,
    links: LinkPolicy,
) -> io::Result<(File, Metadata)> {
    os::open_without_waiting(options, links);
    let file = options.open(path).map_err(|error| refusal_reason(path, links).unwrap_or(error))?;
    let found = file.metadata()?;
    match UnusableFile::from_metadata(&found) {
        None => Ok((file, found)),
        Some(why) => Err(why.into()),
    }
}

/// Returns the reason why the system refused, if it is the kind of the directory entry.
fn refusal_reason(path: &Path, links: LinkPolicy) -> Option<io::Error> {
    let found = match links {
        LinkPolicy::Follow => fs::metadata(path),
        LinkPolicy::Refuse => fs::symlink_metadata(path),
    };
    UnusableFile::from_metadata(&found.ok()?).map(io::Error::from)
}

/// Opens a file of a run with these options.
pub(crate) fn open_record_with(
    options: &mut OpenOptions,
    path: &Path,
    kind: RecordKind,
) -> io::Result<File> {
    let (file, found) = open_regular(options, path, LinkPolicy::Refuse)?;
    let limit = kind.max_bytes();
    if found.len() > limit { Err(UnusableFile::TooLong { limit }.into()) } else { Ok(file) }
}

/// Opens a file of a run for reading.
///
/// # Errors
/// When the file is missing, cannot be opened, or is [unusable](UnusableFile).
pub fn open_record(path: &Path, kind: RecordKind) -> io::Result<File> {
    open_record_with(File::options().read(true), path, kind)
}

/// Opens a lock file, which is created if it is missing.
///
/// # Errors
/// If the path is not a regular file or cannot be opened.
pub fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    open_record_with(options.create(true).write(true).truncate(false), path, RecordKind::Lock)
}

/// Reads a whole file of a run.
///
/// # Errors
/// As [`open_record`]; and when the file grows beyond the limit of its kind while it is read.
pub fn read_record(path: &Path, kind: RecordKind) -> io::Result<Vec<u8>> {
    read_to_limit(open_record(path, kind)?, kind.max_bytes())
}

/// Reads the rest of a file that may have at most this many bytes.
///
/// # Errors
/// If the file is longer than its limit or cannot be read.
pub fn read_to_limit(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(UnusableFile::TooLong { limit }.into()) } else { Ok(bytes) }
}

/// Overwrites a file of a run in place. Not for files that a reader must see whole.
pub(crate) fn overwrite_record(path: &Path, kind: RecordKind, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    let mut file =
        open_record_with(File::options().create(true).write(true).truncate(false), path, kind)?;
    if file.metadata()?.len() > 0 {
        file.set_len(0)?;
    }
    file.write_all(bytes)
}

/// Returns true if a possible file of this name exists: anything but a folder, links included.
#[must_use]
pub fn has_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| !found.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused<T>(result: io::Result<T>) -> Option<UnusableFile> {
        UnusableFile::in_error(&result.err()?)
    }

    #[test]
    fn a_regular_file_within_its_limit_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("note");
        assert_eq!(
            open_record(&path, RecordKind::LockNote).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        fs::write(&path, "me").unwrap();
        assert_eq!(read_record(&path, RecordKind::LockNote).unwrap(), b"me");
        File::options().write(true).open(&path).unwrap().set_len((64 << 10) + 1).unwrap();
        let limit = 64 << 10;
        let too_long = Some(UnusableFile::TooLong { limit });
        assert_eq!(refused(open_record(&path, RecordKind::LockNote)), too_long);
        assert_eq!(
            refused(open_record(folder.path(), RecordKind::Journal)),
            Some(UnusableFile::Folder)
        );
        overwrite_record(&path, RecordKind::InboxMessage, b"why").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"why");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_a_pipe_and_a_socket_are_refused_at_once() {
        use rustix::fs::{CWD, mkfifoat};
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), "").unwrap();
        for (to, name) in [("file", "link"), ("/dev/zero", "zero"), ("none", "nowhere")] {
            std::os::unix::fs::symlink(to, path(name)).unwrap();
        }
        mkfifoat(CWD, path("pipe"), 0o600.into()).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        let expected = [
            ("link", UnusableFile::Link),
            ("zero", UnusableFile::Link),
            ("nowhere", UnusableFile::Link),
            ("pipe", UnusableFile::Special),
            ("socket", UnusableFile::Special),
        ];
        for (name, why) in expected {
            let append =
                open_record_with(File::options().append(true), &path(name), RecordKind::Journal);
            let opened =
                [open_record(&path(name), RecordKind::Journal), open_lock(&path(name)), append];
            for opened in opened {
                assert_eq!(refused(opened), Some(why), "{name}");
            }
        }
        let follow =
            |name| open_regular(File::options().read(true), &path(name), LinkPolicy::Follow);
        assert!(follow("link").is_ok());
        assert_eq!(refused(follow("zero")), Some(UnusableFile::Special));
        let full = overwrite_record(&path("link"), RecordKind::Log, b"x");
        assert_eq!(refused(full), Some(UnusableFile::Link));
    }
}
