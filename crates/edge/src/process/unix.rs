//! What starting and ending a child needs of Unix alone.

use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitStatus};

/// The signal that ended a child, if one did.
pub(super) fn signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// Gives the child a process group of its own.
pub(super) fn own_group(command: &mut Command) {
    command.process_group(0);
}

/// Asks a child and its group to end. git then takes its lock files with it.
pub(super) fn ask_group(leader: u32) {
    send(leader, Signal::TERM);
}

/// Kills a child and its group.
pub(super) fn kill_group(leader: u32) {
    send(leader, Signal::KILL);
}

/// A group that is gone needs no signal.
fn send(leader: u32, signal: Signal) {
    if let Some(group) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, signal);
    }
}
