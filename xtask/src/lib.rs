//! Library of the chores: knowledge about the project's own sources.
//!
//! # Layout
//! [`sources`] reads the repository's text files, [`survey`] parses the Rust files among them,
//! [`figures`] counts what the survey found, and [`architecture`] makes the table of files in
//! ARCHITECTURE.md. The chores print and write; nothing here does.

pub mod architecture;
pub mod figures;
pub mod sources;
pub mod survey;
