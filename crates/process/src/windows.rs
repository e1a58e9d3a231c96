//! Starting and ending child processes on Windows.

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

/// Builds a command for a program, without arguments.
pub(super) fn new_command(program: &Path, _: &[(OsString, OsString)]) -> Command {
    #[expect(clippy::disallowed_methods, reason = "this is the one door for processes")]
    Command::new(program)
}

/// Returns `None`: no signal ends a child on Windows.
pub(super) const fn exit_signal(_status: ExitStatus) -> Option<i32> {
    None
}

/// Gives the child a process group of its own, and no window.
pub(super) fn set_own_group(command: &mut Command) {
    command.creation_flags(CREATE_NEW_PROCESS_GROUP | CREATE_NO_WINDOW);
}

/// Does nothing: a child without a window cannot be asked to end.
pub(super) fn ask_group(_leader: u32) {}

/// Kills a child and its descendants, as [`kill_group`] does.
pub(super) fn kill_tree(leader: u32) {
    kill_group(leader);
}

/// Kills a child and its descendants.
pub(super) fn kill_group(leader: u32) {
    #[expect(clippy::disallowed_methods, reason = "this is the one door for processes")]
    let mut command = Command::new("taskkill");
    command.args(["/T", "/F", "/PID", &leader.to_string()]).creation_flags(CREATE_NO_WINDOW);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // The process may be gone already.
    drop(command.status());
}

pub(super) fn has_ended(child: &mut Child) -> io::Result<bool> {
    Ok(child.try_wait()?.is_some())
}

/// Waits this long.
pub(super) fn wait_for_any(_: &[u32], most: Duration) {
    std::thread::sleep(most);
}

/// Does nothing: a child cannot be asked to end.
pub(super) fn ask_all(_pids: &[u32]) {}

/// Kills each of these processes and its descendants.
pub(super) fn kill_all(pids: &[u32]) {
    pids.iter().copied().for_each(kill_group);
}

/// Returns no process: only a job object, joined by each child at its start, would report them.
pub(super) fn find_survivors(_leader: Option<u32>, _mark: &TreeMarker) -> Vec<u32> {
    Vec::new()
}

/// Returns false: without a job object it is not known.
pub(super) fn has_left_nothing(_leader: u32) -> bool {
    false
}

/// Does nothing: Windows has no processes to reap.
pub(super) fn reap_adopted() {}

/// Does nothing: a job object would be needed.
#[expect(clippy::unnecessary_wraps, reason = "it can fail elsewhere")]
pub(super) fn become_reaper(_: ChildCount) -> io::Result<()> {
    Ok(())
}

/// Does nothing: Windows has no sessions that end with a terminal.
#[expect(clippy::unnecessary_wraps, reason = "it can fail elsewhere")]
pub(super) fn lead_session() -> io::Result<()> {
    Ok(())
}

/// Returns `None`: the used resources are not known.
pub(super) const fn usage_of_children() -> Option<ProcessUsage> {
    None
}

/// Returns `None`: no dependency has a safe call for the free space.
pub(super) fn free_space(_folder: &Path) -> Option<u64> {
    None
}
