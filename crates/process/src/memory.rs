//! Sets up the system's allocator of this process. Counts nothing and limits nothing.

/// Makes all threads share one memory arena. Otherwise glibc gives each concurrent thread an arena,
/// which keeps the most memory that any step ever needed: steps have a thread each, so a long night
/// ends with many such arenas. To be called before there is a second thread.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the C library has no other way to say it")]
pub fn share_memory() {
    // SAFETY: it sets a number of the allocator's, while no other thread can be allocating. A
    // refusal costs memory and nothing else.
    let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

/// Does nothing: other allocators need no such setting.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub const fn share_memory() {}
