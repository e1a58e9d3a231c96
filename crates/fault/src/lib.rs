//! Faults at chosen moments, for tests only: a library that `LD_PRELOAD` puts between the unchanged program and the C
//! library. It counts the program's operations on files, writes them down, and kills the program, fails an operation or
//! does half of it where its plan says so. On other systems than Linux it is empty.
//!
//! The program must touch files through the C library (as `std` does), because a system call that is made directly is
//! not seen here. Children are left alone. Nothing links to this crate: tests load its library, `testkit::fault` says how.
//!
//! # Layout
//! [`plan`] says what happens when, `operation` which operation a call is, `record` writes it down,
//! `calls` are the calls that are taken the place of, `direct_calls` those that the library makes itself.

pub mod plan;

#[cfg(all(target_os = "linux", target_pointer_width = "64", not(test)))]
mod calls;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(test)))]
mod direct_calls;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(test)))]
mod operation;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(test)))]
mod record;
