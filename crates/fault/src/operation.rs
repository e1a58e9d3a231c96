//! Which operation a call is: its name, the paths that it touches, and whether it changes anything. Looks at descriptors
//! through `/proc`; changes nothing itself.

use std::ffi::{CStr, OsStr, OsString};
use std::fs;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// A call that a plan may be about.
#[derive(Debug)]
pub(super) struct FileOperation {
    pub(super) call: &'static str,
    pub(super) kind: OperationKind,
    /// Relative to the root; empty for a descriptor without a file.
    pub(super) path: String,
    /// Where a rename or a link leads, also relative.
    pub(super) to: String,
    /// The types of the events in a write to a journal.
    pub(super) events: String,
}

/// What a call is to files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperationKind {
    /// It changes them, or makes a change last.
    Change,
    /// It only looks at them, or makes a descriptor.
    Look,
}

impl FileOperation {
    /// What the words of a rule are looked for in.
    pub(super) fn match_text(&self, thread: &str) -> String {
        let Self { call, path, to, events, .. } = self;
        let beat = if is_heartbeat(thread) { "heartbeat " } else { "" };
        format!("{beat}{call} {path} {to} {events}")
    }
}

/// The thread that beats when it likes.
pub(super) fn is_heartbeat(thread: &str) -> bool {
    thread == "heartbeat"
}

/// The folder that operations are looked at in.
#[derive(Debug)]
pub(super) struct FaultRoot(pub(super) PathBuf);

impl FaultRoot {
    /// What a path is below the root; nothing where it is not.
    fn relative_path(&self, path: &Path) -> Option<String> {
        path.strip_prefix(&self.0).ok().map(|path| path.to_string_lossy().into_owned())
    }

    /// A call about one path.
    pub(super) fn path_operation(
        &self,
        call: &'static str,
        kind: OperationKind,
        path: &Path,
    ) -> Option<FileOperation> {
        let path = self.relative_path(path)?;
        Some(FileOperation { call, kind, path, to: String::new(), events: String::new() })
    }

    /// A call about two paths, of which one at least is below the root.
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

    /// A call about an open file.
    pub(super) fn file_operation(
        &self,
        call: &'static str,
        kind: OperationKind,
        file: RawFd,
    ) -> Option<FileOperation> {
        self.path_operation(call, kind, &descriptor_path(file)?)
    }

    /// A write of these bytes.
    pub(super) fn write_operation(&self, file: RawFd, bytes: &[u8]) -> Option<FileOperation> {
        let mut operation = self.file_operation("write", OperationKind::Change, file)?;
        if operation.path.ends_with("journal.jsonl") {
            operation.events = event_types(bytes);
        }
        Some(operation)
    }
}

/// A call that makes a descriptor without a file.
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

/// Where a path leads that is given relative to a folder's descriptor.
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

/// The types of the events in some lines of a journal, with `,` between them.
fn event_types(bytes: &[u8]) -> String {
    const EVENT_TYPE_START: &str = "\"event\":{\"type\":\"";
    let text = String::from_utf8_lossy(bytes);
    let types = text.split(EVENT_TYPE_START).skip(1).filter_map(|rest| rest.split('"').next());
    types.collect::<Vec<_>>().join(",")
}
