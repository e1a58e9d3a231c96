//! Renders a run as HTML and SVG: the parts of `report.html`, which a server can show one by one.
//! Pure like every view: texts and rows of results, which are not on record, are passed in as
//! [`PageMaterial`]. Nothing here reads a file, and no part has a style or script of its own, so
//! that a page works under a policy that allows neither.
//!
//! # Layout
//! - [`mod@report`] is the whole file, [`mod@page`] the frame of every page, [`asset`] its style
//!   and script, [`site`] the pages of a server.
//! - Parts: [`mod@run_head`] is the outcome at a glance, [`mod@tree`] the drawn tree, [`scores`]
//!   all scores with the best so far, [`eval`] and [`node`] a single one, [`mod@compare`] two side
//!   by side, [`mod@costs`] the costs of answers, [`mod@timeline`] the times, [`mod@lineage`] the
//!   conversations and their forks, [`mod@findings`] a validation, [`mod@trust`] the reliability of
//!   the best, [`mod@holdout`] its gain on hold-out data.
//! - Shared: [`mod@visible_text`] escapes foreign text, [`mod@status_mark`] has a shape for each
//!   status, [`mod@plot`] scales and axes, [`mod@metrics`] the table of metrics, [`mod@paired`] the
//!   plot of a paired comparison, [`mod@diff`] coloured changes, [`mod@page_material`] the caller's
//!   material.

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
