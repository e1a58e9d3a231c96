//! Agents that work in the worktrees of a run, with real git and the real door.
//!
//! # Layout
//! [`edits`] is about what they change, `kill` about a process that is killed meanwhile, `lost` about one
//! that loses its run to another, `real` about real coding agents;
//! [`workplace`] is a run for them.

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
