//! Faults at chosen moments, for tests only: a library for `LD_PRELOAD` in front of the C library.
//! It counts and logs the unchanged program's operations on files, and kills the program, fails an
//! operation or does half of it where its plan says so. It is empty on systems other than Linux.
//!
//! The program must touch files through the C library, as `std` does: direct system calls are not
//! seen. Children are left alone. Nothing links to this crate: tests load it by `testkit::fault`.
//!
//! # Layout
//! [`plan`] holds the rules, [`mod@operation`] names the operation of a call, [`mod@record`] counts
//! and logs operations, [`mod@calls`] replaces the C library's calls.

pub mod plan;

#[cfg(all(target_os = "linux", target_pointer_width = "64", not(test)))]
mod calls;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(test)))]
mod direct_calls;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(test)))]
mod operation;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(test)))]
mod record;
