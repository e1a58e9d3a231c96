//! Agents that work in the worktrees of a run, with real git and the real door.
//!
//! # Layout
//! [`edits`] is about what they change, [`kill`] about a process that is killed meanwhile; [`workplace`] is a run for them.

#![cfg(unix)]

mod edits;
#[cfg(target_os = "linux")]
mod kill;
mod workplace;
