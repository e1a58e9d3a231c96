//! A run as HTML and SVG: the parts of `report.html`, which a server can show one by one. Pure like every view: what is
//! not on record, texts and rows of results, comes in as [`PageMaterial`]. Nothing here reads a file, and no part carries a
//! style or a script of its own: a page is good under a policy that allows neither.
//!
//! # Layout
//! [`render_report`] is the whole file, `page` what stands around every page, [`asset`] its style
//! and its script. The parts: [`render_run_head`] how the run stands, [`render_tree`] the tree
//! drawn, [`scores`] every score and the best so far, [`eval`] and [`node`] one of each,
//! [`render_comparison`] two of them side by side, [`render_costs`] what answers took,
//! [`render_timeline`] what ran when, [`render_lineage`] which conversation goes on from which,
//! [`render_findings`] what a validation found, [`render_trust`] how far to trust the best,
//! [`render_holdout`] what is left of a gain on data that the search never saw. [`site`] puts them
//! on pages of their own. What they share: `visible_text` shows foreign text as it is and nothing
//! but text, `status_mark` gives each outcome its shape, `plot` has scales and axes, `metrics` is
//! the table of metrics, `paired` the drawing of a comparison configuration by configuration,
//! `diff` colours a change, `page_material` is what the caller brings along.

pub mod asset;
mod compare;
mod costs;
mod diff;
pub mod eval;
mod findings;
mod holdout;
mod lineage;
mod metrics;
pub mod node;
mod page;
mod page_material;
mod paired;
mod plot;
mod report;
mod run_head;
pub mod scores;
pub mod site;
mod status_mark;
mod timeline;
mod tree;
mod trust;
mod visible_text;

pub use compare::render_comparison;
pub use costs::render_costs;
pub use findings::render_findings;
pub use holdout::render_holdout;
pub use lineage::render_lineage;
pub use maud::Markup;
pub use page::{PageAssets, render_page};
pub use page_material::{DocumentKind, PageMaterial, RunDocument, SweepComparison};
pub use report::{MAX_EVAL_PAGES_BYTES, ReportExtra, render_report};
pub use run_head::render_run_head;
pub use timeline::render_timeline;
pub use tree::render_tree;
pub use trust::render_trust;
pub use visible_text::{escape_hidden, shown_bytes};
