//! Names the operation of a call: its paths and whether it changes anything. Reads descriptors
//! through `/proc`; changes nothing itself.

use std::ffi::{CStr, OsStr, OsString};
use std::fs;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// A call that the rules of a plan can match.
#[derive(Debug)]
pub(super) struct FileOperation {
    pub(super) call: &'static str,
    pub(super) kind: OperationKind,
    /// Path relative to the root; empty for a descriptor without a file.
    pub(super) path: String,
    /// Target path of a rename or a link, relative to the root.
    pub(super) to: String,
    /// Types of the events in a write to a journal.
    pub(super) events: String,
}

/// Kind of effect that a call has on files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperationKind {
    /// The call changes files, or makes a change durable.
    Change,
    /// The call only looks at files, or makes a descriptor.
    Look,
}

impl FileOperation {
    /// Returns the text in which the words of a rule are searched.
    pub(super) fn match_text(&self, thread: &str) -> String {
        let Self { call, path, to, events, .. } = self;
        let beat = if is_heartbeat(thread) { "heartbeat " } else { "" };
        format!("{beat}{call} {path} {to} {events}")
    }
}

/// Returns true for the heartbeat thread, whose operations come at no fixed moments.
pub(super) fn is_heartbeat(thread: &str) -> bool {
    thread == "heartbeat"
}

/// The folder below which operations are counted.
#[derive(Debug)]
pub(super) struct FaultRoot(pub(super) PathBuf);

impl FaultRoot {
    /// Returns a path relative to the root, or `None` if the path is not below it.
    fn relative_path(&self, path: &Path) -> Option<String> {
        path.strip_prefix(&self.0).ok().map(|path| path.to_string_lossy().into_owned())
    }

    /// Builds the operation of a call with one path.
    pub(super) fn path_operation(
        &self,
        call: &'static str,
        kind: OperationKind,
        path: &Path,
    ) -> Option<FileOperation> {
        let path = self.relative_path(path)?;
        Some(FileOperation { call, kind, path, to: String::new(), events: String::new() })
    }

    /// Builds the operation of a call with two paths, at least one of them below the root.
    pub(super) fn two_path_operation(
        &self,
        call: &'static str,
        from: &Path,
        to: &Path,
    ) -> Option<FileOperation> {
        let (path, to) = (self.relative_path(from), self.relative_path(to));
        path.as_ref().or(to.as_ref())?;
        let (path, to) = (path.unwrap_or_default(), to.unwrap_or_default());
        Some(FileOperation { call, kind: OperationKind::Change, path, to, events: String::new() })
    }

    /// Builds the operation of a call on an open file.
    pub(super) fn file_operation(
        &self,
        call: &'static str,
        kind: OperationKind,
        file: RawFd,
    ) -> Option<FileOperation> {
        self.path_operation(call, kind, &descriptor_path(file)?)
    }

    /// Builds the operation of a write, with the types of the events in its bytes.
    pub(super) fn write_operation(&self, file: RawFd, bytes: &[u8]) -> Option<FileOperation> {
        let mut operation = self.file_operation("write", OperationKind::Change, file)?;
        if operation.path.ends_with("journal.jsonl") {
            operation.events = event_types(bytes);
        }
        Some(operation)
    }
}

/// Builds the operation of a call that makes a descriptor without a file.
#[expect(clippy::unnecessary_wraps, reason = "as all that name a call")]
pub(super) fn descriptor_operation(call: &'static str) -> Option<FileOperation> {
    let none = String::new;
    Some(FileOperation {
        call,
        kind: OperationKind::Look,
        path: none(),
        to: none(),
        events: none(),
    })
}

/// Resolves a path that is relative to a folder's descriptor.
pub(super) fn resolve_path(folder: RawFd, path: &CStr) -> PathBuf {
    let path = Path::new(OsStr::from_bytes(path.to_bytes()));
    if path.is_absolute() {
        return path.to_owned();
    }
    let folder = if folder == libc::AT_FDCWD {
        std::env::current_dir().ok()
    } else {
        descriptor_path(folder)
    };
    folder.unwrap_or_default().join(path)
}

fn descriptor_path(file: RawFd) -> Option<PathBuf> {
    let path = fs::read_link(format!("/proc/self/fd/{file}")).ok()?;
    let bytes = path.as_os_str().as_bytes();
    let bytes = bytes.strip_suffix(b" (deleted)").unwrap_or(bytes);
    path.is_absolute().then(|| OsString::from(OsStr::from_bytes(bytes)).into())
}

/// Returns the types of the events in some lines of a journal, separated by `,`.
fn event_types(bytes: &[u8]) -> String {
    const EVENT_TYPE_START: &str = "\"event\":{\"type\":\"";
    let text = String::from_utf8_lossy(bytes);
    let types = text.split(EVENT_TYPE_START).skip(1).filter_map(|rest| rest.split('"').next());
    types.collect::<Vec<_>>().join(",")
}
