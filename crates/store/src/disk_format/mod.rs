//! The shapes on disk: the line of the journal and the document that the manifest is, with versions and checksums.
//! Shapes only; which file, and in which order files are written, is decided elsewhere. Fields are only added.
//!
//! In the manifest's shapes a field marked `skip_deserializing` is derived: written for readers of the file, never believed.

mod candidate;
mod comparison;
mod control;
mod csv_form;
mod decision;
pub(super) mod document;
mod eval;
mod history;
pub(super) mod journal_line;
mod manifest_v1;
mod node;
mod run;
