//! The loop of treebeam: it asks [`plan`](treebeam_core::plan) what to do, lets a stage do it, and records what came of it.
//! It knows the world only through its ports: no git, no files, no processes, no network.
//!
//! # Layout
//! [`port`] is what the world must offer. [`drive_run`] is the loop, [`remove_leftovers`] removes
//! what a run left that nobody drives. `brief` says what a stage is told, `stage` has one file per
//! step, `metered_agent` asks and counts, `idea_batch` is what asking for ideas has brought,
//! `step_files` notes the digest of each file that a step writes, [`standalone_ideas`] asks for
//! them without a run, `summary` is an eval's page, [`prompt`], [`outline`], `reply`, `review` and
//! [`patch`] are the texts that go to and come from agents, [`conversation`] is what a branch has
//! said and goes on from, [`figures`] is a comparison as JSON.

mod brief;
mod clear;
pub mod conversation;
mod drive;
pub mod figures;
mod idea_batch;
mod metered_agent;
pub mod outline;
pub mod patch;
pub mod port;
pub mod prompt;
pub mod reply;
mod review;
mod stage;
pub mod standalone_ideas;
mod step_files;
mod summary;

pub use clear::{RemovalPorts, remove_leftovers};
pub use drive::{RunHalt, drive_run};
