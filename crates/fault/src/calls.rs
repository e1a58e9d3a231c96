//! Replacements of the C library's calls: each names its operation, applies the plan and makes the
//! system call. Only calls that `std` and `rustix` use are here.

#![expect(unsafe_code, reason = "these are the C library's own signatures, and raw system calls")]

use crate::operation::{
    FaultRoot, FileOperation, OperationKind, descriptor_operation, resolve_path,
};
use crate::plan::{FaultEffect, KillMoment};
use crate::record::ProcessFaults;
use libc::{
    AT_FDCWD, SYS_copy_file_range, SYS_dup, SYS_fcntl, SYS_fdatasync, SYS_flock, SYS_fsync,
    SYS_ftruncate, SYS_linkat, SYS_mkdirat, SYS_openat, SYS_pipe2, SYS_pread64, SYS_pwrite64,
    SYS_read, SYS_renameat2, SYS_sendfile, SYS_socketpair, SYS_symlinkat, SYS_unlinkat, SYS_write,
    SYS_writev, c_char, c_int, c_long, c_uint, c_void, iovec, mode_t, off_t, size_t, syscall,
};
use std::ffi::CStr;
use std::io;

/// How much of a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallShare {
    All,
    Half,
}

impl CallShare {
    fn scaled_length(self, length: size_t) -> size_t {
        match self {
            Self::All => length,
            Self::Half => length / 2,
        }
    }
}

/// Makes a call, or applies the plan's fault to it. A half of an indivisible call is no call.
fn intercept_call(
    see: impl FnOnce(&FaultRoot) -> Option<FileOperation>,
    make: impl Fn(CallShare) -> Option<c_long>,
) -> c_long {
    let all = || make(CallShare::All).unwrap_or(-1);
    let Some(orders) = ProcessFaults::get() else { return all() };
    let error = io::Error::last_os_error();
    let Some(operation) = see(&orders.root) else {
        restore_errno(&error);
        return all();
    };
    let met = orders.count_operation(&operation);
    let log_operation = |outcome: &str| orders.log_operation(&operation, &met, outcome);
    restore_errno(&error);
    match met.fault {
        None => {
            let done = all();
            let error = io::Error::last_os_error();
            log_operation(&if done < 0 {
                format!("error {}", error_number(&error))
            } else {
                "done".to_owned()
            });
            restore_errno(&error);
            done
        }
        Some(FaultEffect::Fail(number)) => {
            log_operation(&format!("failed {number}"));
            restore_errno(&io::Error::from_raw_os_error(number));
            -1
        }
        Some(FaultEffect::Short) => {
            log_operation("short");
            make(CallShare::Half).unwrap_or_else(all)
        }
        Some(FaultEffect::Lose) => {
            let done = all();
            let error = io::Error::last_os_error();
            unlink_directly(&orders.root.0.join(&operation.path));
            log_operation("lost");
            restore_errno(&error);
            done
        }
        Some(FaultEffect::Kill(when)) => {
            let outcome = match when {
                KillMoment::Before => "killed before",
                KillMoment::Amid => {
                    let _ = make(CallShare::Half);
                    "killed amid"
                }
                KillMoment::After if all() < 0 => "killed after an error",
                KillMoment::After => "killed after",
            };
            log_operation(outcome);
            kill_self()
        }
    }
}

/// Removes a name with a system call that the plan does not see.
fn unlink_directly(path: &std::path::Path) {
    use std::os::unix::ffi::OsStrExt as _;
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return };
    // SAFETY: the path ends with a zero and lives as long as the call.
    unsafe { syscall(SYS_unlinkat, AT_FDCWD, path.as_ptr(), 0) };
}

fn error_number(error: &io::Error) -> c_int {
    error.raw_os_error().unwrap_or(0)
}

fn restore_errno(error: &io::Error) {
    // SAFETY: it is the address of this thread's own error number.
    unsafe { *libc::__errno_location() = error_number(error) };
}

fn kill_self() -> ! {
    loop {
        // SAFETY: a signal to this process itself, which ends it.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
}

/// Returns the caller's path as a C string.
///
/// # Safety
/// The path ends with a zero and is not changed meanwhile, as the C library demands it, too.
unsafe fn path_from_ptr<'a>(path: *const c_char) -> &'a CStr {
    // SAFETY: the caller keeps this function's own contract.
    unsafe { CStr::from_ptr(path) }
}

#[expect(clippy::cast_possible_truncation, reason = "the kernel's answer to a call with this type")]
fn to_c_int(answer: c_long) -> c_int {
    answer as c_int
}

/// Builds an indivisible system call; the C library's caller answers for its arguments.
macro_rules! whole {
    ($($argument:expr),+) => {
        // SAFETY: the arguments come unchanged from a caller who asked for this very call.
        |share: CallShare| (share == CallShare::All).then(|| unsafe { syscall($($argument),+) })
    };
}

/// Builds a system call with a length that can be halved.
macro_rules! partly {
    ($share:ident, $($argument:expr),+) => {
        // SAFETY: a caller asked for this very call with these arguments; half a buffer fits.
        |$share: CallShare| Some(unsafe { syscall($($argument),+) })
    };
}

// ---- descriptors

fn open_at(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    let makes = flags & (libc::O_CREAT | libc::O_TRUNC) != 0;
    let (call, kind) =
        if makes { ("create", OperationKind::Change) } else { ("open", OperationKind::Look) };
    // SAFETY: the caller's path.
    let see = |root: &FaultRoot| {
        root.path_operation(call, kind, &resolve_path(folder, unsafe { path_from_ptr(path) }))
    };
    to_c_int(intercept_call(see, whole!(SYS_openat, folder, path, flags, mode)))
}

// The C library's own functions are variadic; the mode is in the same register either way.
#[unsafe(no_mangle)]
unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    open_at(AT_FDCWD, path, flags, mode)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    open_at(AT_FDCWD, path, flags, mode)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn openat(at: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    open_at(at, path, flags, mode)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn openat64(at: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    open_at(at, path, flags, mode)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fcntl(file: c_int, command: c_int, argument: c_long) -> c_int {
    let copies = [libc::F_DUPFD, libc::F_DUPFD_CLOEXEC].contains(&command);
    let see = |_: &FaultRoot| if copies { descriptor_operation("dup") } else { None };
    to_c_int(intercept_call(see, whole!(SYS_fcntl, file, command, argument)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn dup(file: c_int) -> c_int {
    to_c_int(intercept_call(|_| descriptor_operation("dup"), whole!(SYS_dup, file)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pipe2(files: *mut c_int, flags: c_int) -> c_int {
    to_c_int(intercept_call(|_| descriptor_operation("pipe"), whole!(SYS_pipe2, files, flags)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn socketpair(
    domain: c_int,
    kind: c_int,
    protocol: c_int,
    files: *mut c_int,
) -> c_int {
    let make = whole!(SYS_socketpair, domain, kind, protocol, files);
    to_c_int(intercept_call(|_| descriptor_operation("socketpair"), make))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn flock(file: c_int, operation: c_int) -> c_int {
    to_c_int(intercept_call(
        |root| root.file_operation("flock", OperationKind::Look, file),
        whole!(SYS_flock, file, operation),
    ))
}

// ---- bytes; a signed size is a `c_long` wherever this is built

#[unsafe(no_mangle)]
unsafe extern "C" fn read(file: c_int, to: *mut c_void, length: size_t) -> c_long {
    let make = partly!(share, SYS_read, file, to, share.scaled_length(length));
    intercept_call(|root| root.file_operation("read", OperationKind::Look, file), make)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pread64(file: c_int, to: *mut c_void, length: size_t, at: off_t) -> c_long {
    let make = partly!(share, SYS_pread64, file, to, share.scaled_length(length), at);
    intercept_call(|root| root.file_operation("read", OperationKind::Look, file), make)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn write(file: c_int, from: *const c_void, length: size_t) -> c_long {
    let see = |root: &FaultRoot| {
        // SAFETY: the caller's buffer has this length.
        let bytes = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), length) };
        root.write_operation(file, bytes)
    };
    intercept_call(see, partly!(share, SYS_write, file, from, share.scaled_length(length)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite64(
    file: c_int,
    from: *const c_void,
    length: size_t,
    at: off_t,
) -> c_long {
    let make = partly!(share, SYS_pwrite64, file, from, share.scaled_length(length), at);
    intercept_call(|root| root.file_operation("write", OperationKind::Change, file), make)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn writev(file: c_int, from: *const iovec, count: c_int) -> c_long {
    let make = whole!(SYS_writev, file, from, count);
    intercept_call(|root| root.file_operation("write", OperationKind::Change, file), make)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn copy_file_range(
    from: c_int,
    from_at: *mut off_t,
    to: c_int,
    to_at: *mut off_t,
    length: size_t,
    flags: c_uint,
) -> c_long {
    let make = partly!(
        share,
        SYS_copy_file_range,
        from,
        from_at,
        to,
        to_at,
        share.scaled_length(length),
        flags
    );
    intercept_call(|root| root.file_operation("copy", OperationKind::Change, to), make)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sendfile64(to: c_int, from: c_int, at: *mut off_t, length: size_t) -> c_long {
    let make = partly!(share, SYS_sendfile, to, from, at, share.scaled_length(length));
    intercept_call(|root| root.file_operation("copy", OperationKind::Change, to), make)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fsync(file: c_int) -> c_int {
    to_c_int(intercept_call(
        |root| root.file_operation("fsync", OperationKind::Change, file),
        whole!(SYS_fsync, file),
    ))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fdatasync(file: c_int) -> c_int {
    to_c_int(intercept_call(
        |root| root.file_operation("fsync", OperationKind::Change, file),
        whole!(SYS_fdatasync, file),
    ))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ftruncate64(file: c_int, length: off_t) -> c_int {
    let make = whole!(SYS_ftruncate, file, length);
    to_c_int(intercept_call(
        |root| root.file_operation("ftruncate", OperationKind::Change, file),
        make,
    ))
}

// ---- names

fn rename_at(
    from_at: c_int,
    from: *const c_char,
    to_at: c_int,
    to: *const c_char,
    flags: c_uint,
) -> c_int {
    let see = |root: &FaultRoot| {
        // SAFETY: the caller's paths.
        let (from, to) = unsafe { (path_from_ptr(from), path_from_ptr(to)) };
        root.two_path_operation("rename", &resolve_path(from_at, from), &resolve_path(to_at, to))
    };
    to_c_int(intercept_call(see, whole!(SYS_renameat2, from_at, from, to_at, to, flags)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    rename_at(AT_FDCWD, from, AT_FDCWD, to, 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn renameat(
    from_at: c_int,
    from: *const c_char,
    to_at: c_int,
    to: *const c_char,
) -> c_int {
    rename_at(from_at, from, to_at, to, 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn renameat2(
    from_at: c_int,
    from: *const c_char,
    to_at: c_int,
    to: *const c_char,
    flags: c_uint,
) -> c_int {
    rename_at(from_at, from, to_at, to, flags)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn linkat(
    from_at: c_int,
    from: *const c_char,
    to_at: c_int,
    to: *const c_char,
    flags: c_int,
) -> c_int {
    let see = |root: &FaultRoot| {
        // SAFETY: the caller's paths.
        let (from, to) = unsafe { (path_from_ptr(from), path_from_ptr(to)) };
        root.two_path_operation("link", &resolve_path(from_at, from), &resolve_path(to_at, to))
    };
    to_c_int(intercept_call(see, whole!(SYS_linkat, from_at, from, to_at, to, flags)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn symlink(target: *const c_char, path: *const c_char) -> c_int {
    // SAFETY: the caller's path.
    let see = |root: &FaultRoot| {
        root.path_operation(
            "symlink",
            OperationKind::Change,
            &resolve_path(AT_FDCWD, unsafe { path_from_ptr(path) }),
        )
    };
    to_c_int(intercept_call(see, whole!(SYS_symlinkat, target, AT_FDCWD, path)))
}

fn unlink_at(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    let call = if flags & libc::AT_REMOVEDIR != 0 { "rmdir" } else { "unlink" };
    // SAFETY: the caller's path.
    let see = |root: &FaultRoot| {
        root.path_operation(
            call,
            OperationKind::Change,
            &resolve_path(folder, unsafe { path_from_ptr(path) }),
        )
    };
    to_c_int(intercept_call(see, whole!(SYS_unlinkat, folder, path, flags)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    unlink_at(AT_FDCWD, path, 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unlinkat(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    unlink_at(folder, path, flags)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rmdir(path: *const c_char) -> c_int {
    unlink_at(AT_FDCWD, path, libc::AT_REMOVEDIR)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mkdir(path: *const c_char, mode: mode_t) -> c_int {
    // SAFETY: the caller's path.
    let see = |root: &FaultRoot| {
        root.path_operation(
            "mkdir",
            OperationKind::Change,
            &resolve_path(AT_FDCWD, unsafe { path_from_ptr(path) }),
        )
    };
    to_c_int(intercept_call(see, whole!(SYS_mkdirat, AT_FDCWD, path, mode)))
}
