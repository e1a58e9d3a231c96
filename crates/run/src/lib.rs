//! The loop of treebeam: plans steps, runs their stages and records the outcomes.
//! [`plan`](treebeam_core::plan) chooses the steps. All else goes through its ports: no git, no
//! files, no processes, no network.
//!
//! # Layout
//! - [`port`]: the traits that the loop needs; [`RunPorts`]: all of them together; [`RunHalt`]:
//!   the error of the loop and of each stage.
//! - [`mod@drive`]: the loop; [`mod@clear`] removes leftovers of a run that is not driven.
//! - [`mod@brief`]: the input of each stage; [`mod@stage`]: one file per step.
//! - [`mod@metered_agent`] asks agents and counts the cost, [`mod@idea_batch`] collects the ideas
//!   of a proposal, [`mod@step_files`] notes the digest of each file that a step writes,
//!   [`mod@summary`] writes an eval's page, [`standalone_ideas`] asks for ideas without a run.
//! - [`prompt`], [`outline`], [`reply`], [`mod@review`] and [`patch`]: texts to and from agents;
//!   [`mod@section`] and [`mod@outcome_line`]: parts of these texts.
//! - [`conversation`]: the turns of a branch; [`figures`]: a comparison as JSON.

mod brief;
mod clear;
pub mod conversation;
mod drive;
mod error;
pub mod figures;
mod idea_batch;
mod metered_agent;
mod outcome_line;
pub mod outline;
pub mod patch;
pub mod port;
pub mod prompt;
pub mod reply;
mod review;
mod run_ports;
mod section;
mod stage;
pub mod standalone_ideas;
mod step_files;
mod summary;

pub use clear::{RemovalPorts, remove_leftovers};
pub use drive::drive_run;
pub use error::RunHalt;
pub use run_ports::RunPorts;
