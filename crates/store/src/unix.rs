//! Unix side of the platform layer: host name, processes, file ids, temporary files, syncing of
//! directories. Facts that only `/proc` provides are unknown where it is missing.

use super::error::SystemErrorKind;
use super::lease::ProcessState;
use super::record_file::{self, LinkPolicy, RecordKind};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Makes the names in a directory durable.
pub(super) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Makes the content of a file durable, whichever process wrote it.
pub(super) fn sync_file(path: &Path) -> io::Result<()> {
    record_file::open_record(path, RecordKind::Log)?.sync_all()
}

/// Makes an open return at once for any entry, and fail for a link that is not to be followed.
pub(super) fn open_without_waiting(options: &mut OpenOptions, links: LinkPolicy) {
    let at_once = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = match links {
        LinkPolicy::Follow => at_once,
        LinkPolicy::Refuse => at_once | OFlags::NOFOLLOW,
    };
    options.custom_flags(flags.bits().cast_signed());
}

/// Classifies an error that the standard library has no name for.
pub(super) fn system_error_kind(error: &io::Error) -> Option<SystemErrorKind> {
    match Errno::from_io_error(error)? {
        Errno::MFILE | Errno::NFILE => Some(SystemErrorKind::OpenFiles),
        Errno::AGAIN => Some(SystemErrorKind::Processes),
        Errno::IO => Some(SystemErrorKind::Device),
        _ => None,
    }
}

/// Returns this machine's name.
pub(super) fn hostname() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = kernel.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "unknown".to_owned() } else { name.to_owned() }
}

/// Returns the id of this machine's boot.
pub(super) fn boot_id() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let id = id.trim();
    (!id.is_empty()).then(|| id.to_owned())
}

/// Returns the state of a process of this machine. A zombie counts as gone.
pub(super) fn process_state(pid: u32) -> ProcessState {
    let Ok(line) = fs::read(format!("/proc/{pid}/stat")) else {
        let readable = fs::read("/proc/self/stat").is_ok();
        return if readable { ProcessState::Gone } else { ProcessState::Unknown };
    };
    match parse_proc_stat(&line) {
        Some((b'Z' | b'X' | b'x', _)) => ProcessState::Gone,
        Some((_, start)) => ProcessState::Started(start),
        None => ProcessState::Unknown,
    }
}

/// Parses fields 3 and 22. The second is a name in brackets that may hold anything.
fn parse_proc_stat(line: &[u8]) -> Option<(u8, u64)> {
    let name_end = line.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(line.get(name_end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

/// Identity of a file, independent of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId(u64, u64);

/// Returns the identity of an open file.
pub(super) fn file_id(file: &File) -> io::Result<FileId> {
    let found = file.metadata()?;
    Ok(FileId(found.dev(), found.ino()))
}

/// Length and times of a file's content: another stamp means that somebody may have written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    /// Length in bytes.
    pub(super) length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// Reads the stamp of an open file.
pub(super) fn file_stamp(file: &File) -> io::Result<FileStamp> {
    let found = file.metadata()?;
    let modified = (found.mtime(), found.mtime_nsec());
    let changed = (found.ctime(), found.ctime_nsec());
    Ok(FileStamp { length: found.len(), modified, changed })
}

/// Creates a temporary file with the usual permissions; an error is the system's own.
pub(super) fn create_temp_file(dir: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut how = File::options();
    how.read(true).write(true).create_new(true);
    let name = super::atomic_file::UNFINISHED_PREFIX;
    tempfile::Builder::new().prefix(name).make_in(dir, |path| how.open(path))
}

#[cfg(test)]
mod tests {
    use super::super::error::hint_for_io_error;
    use super::*;

    #[test]
    fn a_limit_of_the_system_is_told_as_what_it_is() {
        for (errno, expect) in [
            (Errno::AGAIN, "too few processes are allowed: raise the limit (`ulimit -u`)"),
            (Errno::MFILE, "too many files are open: raise the limit (`ulimit -n`)"),
            (Errno::NFILE, "too many files are open: raise the limit (`ulimit -n`)"),
            (Errno::FBIG, "a file may not grow larger than the limit of this shell allows"),
            (Errno::IO, "the disk itself reports an error"),
        ] {
            let cure = hint_for_io_error(&io::Error::from(errno)).unwrap_or_default();
            assert!(cure.starts_with(expect), "{errno}: {cure}");
        }
        assert_eq!(hint_for_io_error(&io::Error::from(Errno::NOENT)), None);
    }

    #[test]
    fn a_name_may_hold_anything() {
        let line = |name: &str, state: char| {
            let zeros = "0 ".repeat(18);
            format!("7 ({name}) {state} {zeros}4711 0 0\n")
        };
        for name in ["cat", "a) R 1 2 3", "((", "x y"] {
            assert_eq!(parse_proc_stat(line(name, 'S').as_bytes()), Some((b'S', 4711)), "{name}");
        }
        for text in ["", "7 (cat", "7 (cat) S 1 2", "7 (cat) S 1 2 3 x"] {
            assert_eq!(parse_proc_stat(text.as_bytes()), None, "{text}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_started_and_none_has_the_highest_number() {
        assert!(matches!(process_state(std::process::id()), ProcessState::Started(_)));
        assert_eq!(process_state(u32::MAX), ProcessState::Gone);
        assert_eq!(boot_id(), boot_id());
        assert!(boot_id().is_some());
    }
}
