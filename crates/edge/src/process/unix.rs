//! What starting a child needs of Unix alone.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Gives the child a process group of its own.
pub(super) fn own_group(command: &mut Command) {
    command.process_group(0);
}
