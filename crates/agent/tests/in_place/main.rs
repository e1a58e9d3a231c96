//! Agents that work in the worktrees of a run, with real git and the real door.
//!
//! # Layout
//! [`mod@edits`] tests their changes, [`mod@kill`] a process that is killed meanwhile, [`mod@lost`]
//! one that loses its run to another, [`mod@real`] real coding agents; [`mod@workplace`] is a run
//! for them.

#![cfg(test)]
#![cfg(unix)]
#![expect(
    clippy::disallowed_methods,
    reason = "tests start what is killed, and what is left behind"
)]
#![expect(clippy::wildcard_enum_match_arm, reason = "of the tools not all are met here")]

mod edits;
#[cfg(target_os = "linux")]
mod kill;
mod lost;
#[cfg(target_os = "linux")]
mod real;
mod workplace;
