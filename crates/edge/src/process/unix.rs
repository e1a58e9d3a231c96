//! What starting and ending a child needs of Unix alone.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs;
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

/// Kills a child, its group, and those of its descendants that have left the group. One whose parent is gone is nobody's
/// descendant any more, and stays.
pub(super) fn kill_tree(leader: u32) {
    let descendants = descendants(leader);
    kill_group(leader);
    for pid in descendants {
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// All that a process has started and that was started by those, as far as the system tells.
fn descendants(leader: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pid = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let parents: Vec<(u32, u32)> =
        entries.filter_map(pid).filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = vec![leader];
    let mut next = 0;
    while let Some(&above) = found.get(next) {
        let below = parents.iter().filter(|(_, parent)| *parent == above).map(|(pid, _)| *pid);
        found.extend(below);
        next += 1;
    }
    found.remove(0);
    found
}

/// The number after the state, which comes after the name in brackets.
fn parent(pid: u32) -> Option<u32> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    line.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// A group that is gone needs no signal.
fn send(leader: u32, signal: Signal) {
    if let Some(group) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, signal);
    }
}
