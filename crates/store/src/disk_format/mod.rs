//! The on-disk formats: the lines of the journal and the manifest document, with versions and
//! checksums. Which files are written, and in which order, is decided elsewhere. Fields are only
//! added.
//!
//! In the manifest's types a field marked `skip_deserializing` is derived: written for readers of
//! the file, ignored when the manifest is read.

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
