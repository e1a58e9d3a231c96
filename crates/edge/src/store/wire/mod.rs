//! The shapes on disk: the line of the journal and the document that the manifest is, with versions and checksums.
//! Shapes only; which file, and in which order files are written, is decided elsewhere. Fields are only added.
//!
//! In the manifest's shapes a field marked `skip_deserializing` is derived: written for readers of the file, never believed.

mod control;
mod decision;
pub(super) mod document;
mod eval;
mod form;
pub(super) mod line;
mod node;
mod relative;
mod run;
mod v1;
mod work;
