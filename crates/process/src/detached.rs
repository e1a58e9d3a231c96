//! A child that outlives us, and what such a child does to itself. Nobody waits for it; it says what became of it by files.

use super::{ChildProgram, children, system};
use std::fs::File;
use std::io;
use std::process::{Child, Stdio};
use std::time::Duration;

/// What processes have used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Of the processors, by all of them.
    pub cpu: Duration,
    /// The most memory that one of them had, in bytes.
    pub peak_memory: u64,
}

impl ChildProgram {
    /// Starts it and lets it go: it reads from `held`, whose lock it has for as long as it lives, and complains to a file.
    /// It is still in our session and group until it leaves them by [`lead_session`].
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn detach(self, held: File, complaints: File) -> io::Result<Child> {
        let outputs = [Stdio::null(), Stdio::from(complaints)];
        children::ALL_CHILDREN.spawn_detached(|| self.build_ungrouped(held.into(), outputs).spawn())
    }
}

/// Leaves the session, the group and the terminal that this process was started in.
///
/// # Errors
/// When it leads a group already.
pub fn lead_session() -> io::Result<()> {
    system::lead_session()
}

/// How many children a process runs at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildCount {
    /// One: all that came to us was left by it, and is ended with it.
    One,
    /// Many: what came to us is ended with the one whose mark it bears.
    Many,
}

/// From now on this process is the parent of all that its children leave behind: when nothing came to it, nothing was left.
/// For a program that starts all its children here.
///
/// # Errors
/// When the system does not let us.
pub fn become_reaper(children: ChildCount) -> io::Result<()> {
    system::become_reaper(children)
}

/// What all children that have ended, and what they waited for, have used; nothing where that is not known.
#[must_use]
pub fn usage_of_children() -> Option<ProcessUsage> {
    system::usage_of_children()
}
