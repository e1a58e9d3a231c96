//! Scoring: reads results CSVs and compares them, by exact means, by configuration and against
//! chance. Pure: text comes in, figures come out; decisions are made in `treebeam_core`.
//!
//! # Layout
//! [`sweep_csv`] reads a results CSV, [`exact`] sums without rounding, [`mod@rounding`] defines
//! equality up to rounding, [`paired`] compares two sweeps by configuration, [`compare`] makes the
//! recommendation, [`versus`] compares the tree with its control group and [`mod@luck`] the best
//! candidate with chance.

pub mod compare;
pub mod exact;
pub mod luck;
pub mod paired;
mod rounding;
pub mod sweep_csv;
pub mod versus;
