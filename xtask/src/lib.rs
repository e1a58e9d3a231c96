//! Library of the chores: knowledge about the project's own sources.
//!
//! # Layout
//! [`sources`] reads the repository's text files, [`survey`] parses the Rust files among them,
//! and [`figures`] counts what the survey found. The chores print and write; nothing here does.

pub mod figures;
pub mod sources;
pub mod survey;
