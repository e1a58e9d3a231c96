//! Calls past the faults: how the library itself writes its record, and ends the program.

#![expect(unsafe_code, reason = "raw system calls")]

use libc::{AT_FDCWD, SYS_close, SYS_openat, SYS_write, syscall};
use std::ffi::CStr;

/// Ends the program where the plan itself is wrong: nothing may go on as if there were none.
pub(super) fn abort_process(why: &str) -> ! {
    let text = format!("treebeam-fault: {why}\n");
    // SAFETY: the buffer lives as long as the call; ending at once runs nothing of the program.
    unsafe {
        syscall(SYS_write, 2, text.as_ptr(), text.len());
        libc::_exit(99)
    }
}

/// The name that the thread gave itself.
pub(super) fn thread_name() -> String {
    let mut name = [0_u8; 16];
    // SAFETY: the kernel writes at most 16 bytes, with a zero at the end.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Appends a line to a file, past everything here.
pub(super) fn append_directly(path: &CStr, line: &[u8]) {
    let how = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero, the line lives as long as the call, and the descriptor is
    // ours.
    unsafe {
        let file = syscall(SYS_openat, AT_FDCWD, path.as_ptr(), how, 0o644);
        syscall(SYS_write, file, line.as_ptr(), line.len());
        syscall(SYS_close, file);
    }
}
