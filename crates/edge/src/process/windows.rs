//! What starting a child needs of Windows alone.

use std::os::windows::process::CommandExt as _;
use std::process::Command;

const CREATE_NEW_PROCESS_GROUP: u32 = 0x0000_0200;
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

/// Gives the child a process group of its own, and no window.
pub(super) fn own_group(command: &mut Command) {
    command.creation_flags(CREATE_NEW_PROCESS_GROUP | CREATE_NO_WINDOW);
}
