//! What the tests of treebeam share. Nothing of the product depends on it.
//!
//! # Layout
//! [`memory`] is a world behind the ports, [`journal`] a journal with a fuse, [`repo`] a repository made by real git,
//! [`program`] the real program in such a repository, [`older_run`] makes such a run one of an older treebeam, [`fault`] the same with faults at chosen moments,
//! `held` a git that such a program has to wait for, [`apart`] runs a test in namespaces of its own, [`frozen`] stops a program
//! with all that it has started, [`hostile`] is a program that does not want to end, [`hostile_text`] a hundred texts that want
//! to be more than text, [`server`] is a server that may do everything wrong, [`counterpart`] real ones that know nothing of
//! treebeam, `traces` looks for what a program has left.

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
