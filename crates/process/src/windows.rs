//! What starting and ending a child needs of Windows alone.

use super::detached::{ChildCount, ProcessUsage};
use super::process_tree::TreeMarker;
use std::ffi::OsString;
use std::io;
use std::os::windows::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

const CREATE_NEW_PROCESS_GROUP: u32 = 0x0000_0200;
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

/// A command for a program, before it has anything else.
pub(super) fn new_command(program: &Path, _: &[(OsString, OsString)]) -> Command {
    #[expect(clippy::disallowed_methods, reason = "this is the one door for processes")]
    Command::new(program)
}

/// No signal ends a child here.
pub(super) const fn exit_signal(_status: ExitStatus) -> Option<i32> {
    None
}

/// Gives the child a process group of its own, and no window.
pub(super) fn set_own_group(command: &mut Command) {
    command.creation_flags(CREATE_NEW_PROCESS_GROUP | CREATE_NO_WINDOW);
}

/// A child without a window cannot be asked to end.
pub(super) fn ask_group(_leader: u32) {}

/// The same: its descendants are among what is killed.
pub(super) fn kill_tree(leader: u32) {
    kill_group(leader);
}

/// Kills a child and what it has started.
pub(super) fn kill_group(leader: u32) {
    #[expect(clippy::disallowed_methods, reason = "this is the one door for processes")]
    let mut command = Command::new("taskkill");
    command.args(["/T", "/F", "/PID", &leader.to_string()]).creation_flags(CREATE_NO_WINDOW);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // One that is gone already need not be killed.
    drop(command.status());
}

/// Whether a child has ended.
pub(super) fn has_ended(child: &mut Child) -> io::Result<bool> {
    Ok(child.try_wait()?.is_some())
}

/// Waits this long.
pub(super) fn wait_for_any(_: &[u32], most: Duration) {
    std::thread::sleep(most);
}

/// A child cannot be asked to end.
pub(super) fn ask_all(_pids: &[u32]) {}

/// Kills each of these with what it has started.
pub(super) fn kill_all(pids: &[u32]) {
    pids.iter().copied().for_each(kill_group);
}

/// Not known: a job object, which every child would be put into as it starts, would tell.
pub(super) fn find_survivors(_leader: Option<u32>, _mark: &TreeMarker) -> Vec<u32> {
    Vec::new()
}

/// Not known either.
pub(super) fn has_left_nothing(_leader: u32) -> bool {
    false
}

/// Nobody has to be reaped here.
pub(super) fn reap_adopted() {}

/// A job object would do that.
#[expect(clippy::unnecessary_wraps, reason = "it can fail elsewhere")]
pub(super) fn become_reaper(_: ChildCount) -> io::Result<()> {
    Ok(())
}

/// There are no sessions here that end with a terminal.
#[expect(clippy::unnecessary_wraps, reason = "it can fail elsewhere")]
pub(super) fn lead_session() -> io::Result<()> {
    Ok(())
}

/// Not known.
pub(super) const fn usage_of_children() -> Option<ProcessUsage> {
    None
}

/// Not known: there is no safe call for it in what we depend on.
pub(super) fn free_space(_folder: &Path) -> Option<u64> {
    None
}
