//! A run as HTML and SVG: the parts of `report.html`, which a server can show one by one. Pure like every view: what is
//! not on record, texts and rows of results, comes in as [`Material`]. Nothing here reads a file, and no part carries a
//! style or a script of its own: a page is good under a policy that allows neither.
//!
//! # Layout
//! [`report()`] is the whole file, `page` what stands around every page, [`asset`] its style and its script.
//! The parts: [`head()`] how the run stands, [`tree()`] the tree drawn, [`scores`] every score and the best so far,
//! [`eval`] and [`node`] one of each, [`compare()`] two of them side by side, [`costs()`] what answers took, [`slots()`]
//! what ran when, [`lineage()`] which conversation goes on from which, [`checked()`] what a validation found,
//! [`trust()`] how far to
//! trust the best, [`holdout()`] what is left of a gain on data that the search never saw. [`site`] puts them on pages of their own.
//! What they share: `text` shows foreign text as it is and nothing but text, `mark` gives each outcome its shape, `plot`
//! has scales and axes, `metrics` is the table of metrics, `paired` the drawing of a comparison configuration by
//! configuration, `diff` colours a change, `material` is what the caller brings along.

pub mod asset;
mod checked;
mod compare;
mod costs;
mod diff;
pub mod eval;
mod head;
mod holdout;
mod lineage;
mod mark;
mod material;
mod metrics;
pub mod node;
mod page;
mod paired;
mod plot;
mod report;
pub mod scores;
pub mod site;
mod slots;
mod text;
mod tree;
mod trust;

pub use checked::checked;
pub use compare::compare;
pub use costs::costs;
pub use head::head;
pub use holdout::holdout;
pub use lineage::lineage;
pub use material::{Against, Document, Kind, Material};
pub use maud::Markup;
pub use page::{Assets, page};
pub use report::{Extra, MOST_BYTES, report};
pub use slots::slots;
pub use text::{visible, weight};
pub use tree::tree;
pub use trust::trust;
