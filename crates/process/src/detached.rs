//! A child that outlives this process, and the calls by which such a child detaches itself. This
//! process does not wait for such a child, which reports its result through files.

use super::{ChildProgram, children, system};
use std::fs::File;
use std::io;
use std::process::{Child, Stdio};
use std::time::Duration;

/// Resources that processes have used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Processor time of all of them.
    pub cpu: Duration,
    /// Largest memory of any one of them, in bytes.
    pub peak_memory: u64,
}

impl ChildProgram {
    /// Starts the child and lets it go. It reads from `held`, whose lock it holds while it lives,
    /// and writes its standard error to a file. It stays in the session and group of this process
    /// until it leaves them by [`lead_session`].
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
/// When this process leads a group already.
pub fn lead_session() -> io::Result<()> {
    system::lead_session()
}

/// The number of children that a reaper runs at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildCount {
    /// A single child: every adopted process was left by it, and is ended with it.
    One,
    /// Many children: an adopted process is ended with the child whose mark it bears.
    Many,
}

/// Makes this process the parent of all processes that its children leave behind: if it adopted
/// none, none was left. For a program that starts all its children here.
///
/// # Errors
/// When the system refuses.
pub fn become_reaper(children: ChildCount) -> io::Result<()> {
    system::become_reaper(children)
}

/// Returns the resources used by all children that have ended and by the processes they waited for;
/// `None` where the system does not report them.
#[must_use]
pub fn usage_of_children() -> Option<ProcessUsage> {
    system::usage_of_children()
}
