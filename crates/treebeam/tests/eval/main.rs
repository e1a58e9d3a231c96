//! `treebeam eval` with the real program, real git, and agents, tests and sweeps that are scripts.
//!
//! # Layout
//! [`desk`] is a repository with such scripts, [`fates`] has all outcomes of an idea, [`ways`] the
//! options of the command line, [`in_place`] the user's own worktree, [`kills`] kills the program
//! at every stage, [`goes_on`] checks the resume hints.

#![cfg(test)]
#![cfg(target_os = "linux")]

mod desk;
mod fates;
mod goes_on;
mod in_place;
mod kills;
mod ways;
