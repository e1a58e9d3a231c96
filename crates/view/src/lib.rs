//! Renders a run as text. Pure: every view is a function of the recorded
//! [`Facts`](treebeam_core::facts::Facts), so the same state gives the same bytes. Nothing here
//! reads a clock, a file or the environment, decides anything, or prints.
//!
//! # Layout
//! - Files: [`mod@summary`] is `TREE_SUMMARY.md`, [`mod@graph`] is `TREE_GRAPH.md`, [`results`] is
//!   `results.tsv`, [`validation`] is `VALIDATION_REPORT.md`, [`html`] is `report.html`.
//! - Screens: [`mod@status`], [`mod@score`], [`mod@list`], [`mod@show`], [`mod@best`] and [`log`]
//!   belong to the commands of these names, [`screen`] to `treebeam watch`, [`mod@holdout`] to
//!   `treebeam demo`.
//! - Sections: [`versus`] compares the tree with its control group, [`mod@trust`] the best with
//!   luck, [`mod@busy_places`] lists current activities.
//! - Shared: [`outcome`] is the status of an eval in one word, [`figure`] formats numbers,
//!   [`primary`] the change of the primary, [`mod@words`] describes stops and rules, [`mod@lookup`]
//!   reads indirect facts, [`safe_text`] tames text from models, [`mod@width`] measures it,
//!   [`mod@markdown`] escapes it.

pub mod best;
mod busy_places;
pub mod figure;
pub mod graph;
pub mod holdout;
pub mod html;
pub mod list;
pub mod log;
mod lookup;
mod markdown;
pub mod outcome;
pub mod primary;
pub mod results;
pub mod safe_text;
pub mod score;
pub mod screen;
pub mod show;
pub mod status;
pub mod summary;
mod trust;
pub mod validation;
pub mod versus;
mod width;
mod words;

pub use best::render_best;
pub use graph::render_graph;
pub use list::render_run_list;
pub use outcome::{EvalCounts, EvalStatus};
pub use results::render_results_tsv;
pub use show::render_show;
pub use status::render_status;
pub use summary::render_tree_summary;
