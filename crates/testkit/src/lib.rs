//! Shared code of the tests of treebeam. No part of the product depends on it.
//!
//! # Layout
//! [`mod@memory`] is a world behind the ports, [`mod@journal`] a journal with a fuse, [`mod@repo`]
//! a repository made by real git, [`mod@program`] the real program in such a repository.
//! [`mod@older_run`] rewrites its run as one of an older version, [`mod@fault`] runs it with faults
//! at chosen moments, [`mod@held`] is a git that blocks it, [`mod@apart`] runs a test in namespaces
//! of its own, [`mod@frozen`] stops a program with all of its children. [`mod@hostile`] is a
//! program that resists termination, [`mod@hostile_text`] a hundred texts that try to be more than
//! text, [`mod@server`] a server that may do everything wrong, [`mod@counterpart`] starts real
//! servers that were not written for treebeam, and [`mod@traces`] finds what a program has left.

#![expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a test that cannot be set up must fail loudly"
)]

#[cfg(target_os = "linux")]
pub mod apart;
pub mod counterpart;
#[cfg(target_os = "linux")]
pub mod fault;
#[cfg(target_os = "linux")]
pub mod frozen;
#[cfg(unix)]
pub mod held;
#[cfg(target_os = "linux")]
pub mod hostile;
pub mod hostile_text;
pub mod journal;
pub mod memory;
pub mod older_run;
pub mod program;
pub mod repo;
pub mod server;
#[cfg(target_os = "linux")]
pub mod traces;
