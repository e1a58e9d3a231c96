//! `treebeam eval` with the real program, real git, and agents, tests and sweeps that are scripts.
//!
//! # Layout
//! [`desk`] is a repository with such scripts, [`fates`] is what can become of an idea, [`ways`] what can be said on the
//! command line, [`in_place`] the user's own worktree, [`kills`] kills the program at every stage,
//! [`goes_on`] is what is said then.

#![cfg(test)]
#![cfg(target_os = "linux")]

mod desk;
mod fates;
mod goes_on;
mod in_place;
mod kills;
mod ways;
