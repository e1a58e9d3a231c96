//! The memory of this process: how the system's allocator keeps it. Counts nothing and limits nothing.

/// Lets all threads take their memory from one place. Otherwise glibc gives each thread that runs beside others a store of its
/// own, which keeps the most that any step ever needed: steps have a thread each, so a long night ends with many such stores.
/// To be called before there is a second thread.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the C library has no other way to say it")]
pub fn share_memory() {
    // SAFETY: it sets a number of the allocator's, while no other thread can be allocating.
    // Refused, it costs memory and nothing else.
    let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

/// Other allocators do without.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub const fn share_memory() {}
