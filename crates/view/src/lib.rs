//! A run as text. Pure: every view is a function of the recorded [`Facts`](treebeam_core::facts::Facts), so the same
//! state gives the same bytes. Nothing here reads a clock, a file or the environment, decides anything, or prints.
//!
//! # Layout
//! The views: [`mod@summary`] is `TREE_SUMMARY.md`, [`mod@graph`] is `TREE_GRAPH.md`, [`results`]
//! is `results.tsv`, [`mod@status`] is the screen of `treebeam status`, [`mod@score`] that of
//! `treebeam score`, [`mod@list`] that of `treebeam list`, [`mod@show`] that of `treebeam show`,
//! [`mod@best`] that of `treebeam best`, [`mod@holdout`] a table of `treebeam demo`, [`log`] a line
//! of `treebeam log`, [`screen`] that of `treebeam watch`, [`versus`] the tree against its control
//! group, `trust` the best against luck, [`validation`] is `VALIDATION_REPORT.md`, and [`html`] is
//! `report.html` with all of its parts. What they share: [`outcome`] says in one word what became
//! of an eval, [`figure`] writes numbers, `words` says stops and rules for people, `lookup` looks
//! up what the facts hold in two steps, [`safe_text`] tames text that a model wrote, `width`
//! measures it, and `markdown` makes tables in which such text cannot break out of its cell.

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
