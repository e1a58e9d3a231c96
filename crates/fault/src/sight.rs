//! Which operation a call is: its name, the paths that it touches, and whether it changes anything. Looks at descriptors
//! through `/proc`; changes nothing itself.

use std::ffi::{CStr, OsStr, OsString};
use std::fs;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// A call that a plan may be about.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) call: &'static str,
    pub(super) kind: Kind,
    /// Relative to the root; empty for a descriptor without a file.
    pub(super) path: String,
    /// Where a rename or a link leads, also relative.
    pub(super) to: String,
    /// The types of the events in a write to a journal.
    pub(super) events: String,
}

/// What a call is to files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It changes them, or makes a change last.
    Change,
    /// It only looks at them, or makes a descriptor.
    Look,
}

impl Operation {
    /// What the words of a rule are looked for in.
    pub(super) fn name(&self, thread: &str) -> String {
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
pub(super) struct Root(pub(super) PathBuf);

impl Root {
    /// What a path is below the root; nothing where it is not.
    fn relative(&self, path: &Path) -> Option<String> {
        path.strip_prefix(&self.0).ok().map(|path| path.to_string_lossy().into_owned())
    }

    /// A call about one path.
    pub(super) fn at(&self, call: &'static str, kind: Kind, path: &Path) -> Option<Operation> {
        let path = self.relative(path)?;
        Some(Operation { call, kind, path, to: String::new(), events: String::new() })
    }

    /// A call about two paths, of which one at least is below the root.
    pub(super) fn between(&self, call: &'static str, from: &Path, to: &Path) -> Option<Operation> {
        let (path, to) = (self.relative(from), self.relative(to));
        path.as_ref().or(to.as_ref())?;
        let (path, to) = (path.unwrap_or_default(), to.unwrap_or_default());
        Some(Operation { call, kind: Kind::Change, path, to, events: String::new() })
    }

    /// A call about an open file.
    pub(super) fn open(&self, call: &'static str, kind: Kind, file: RawFd) -> Option<Operation> {
        self.at(call, kind, &path_of(file)?)
    }

    /// A write of these bytes.
    pub(super) fn write(&self, file: RawFd, bytes: &[u8]) -> Option<Operation> {
        let mut operation = self.open("write", Kind::Change, file)?;
        if operation.path.ends_with("journal.jsonl") {
            operation.events = events(bytes);
        }
        Some(operation)
    }
}

/// A call that makes a descriptor without a file.
#[expect(clippy::unnecessary_wraps, reason = "as all that name a call")]
pub(super) fn descriptor(call: &'static str) -> Option<Operation> {
    let none = String::new;
    Some(Operation { call, kind: Kind::Look, path: none(), to: none(), events: none() })
}

/// Where a path leads that is given relative to a folder's descriptor.
pub(super) fn beside(folder: RawFd, path: &CStr) -> PathBuf {
    let path = Path::new(OsStr::from_bytes(path.to_bytes()));
    if path.is_absolute() {
        return path.to_owned();
    }
    let folder =
        if folder == libc::AT_FDCWD { std::env::current_dir().ok() } else { path_of(folder) };
    folder.unwrap_or_default().join(path)
}

fn path_of(file: RawFd) -> Option<PathBuf> {
    let path = fs::read_link(format!("/proc/self/fd/{file}")).ok()?;
    let bytes = path.as_os_str().as_bytes();
    let bytes = bytes.strip_suffix(b" (deleted)").unwrap_or(bytes);
    path.is_absolute().then(|| OsString::from(OsStr::from_bytes(bytes)).into())
}

/// The types of the events in some lines of a journal, with `,` between them.
fn events(bytes: &[u8]) -> String {
    const MARK: &str = "\"event\":{\"type\":\"";
    let text = String::from_utf8_lossy(bytes);
    let types = text.split(MARK).skip(1).filter_map(|rest| rest.split('"').next());
    types.collect::<Vec<_>>().join(",")
}
