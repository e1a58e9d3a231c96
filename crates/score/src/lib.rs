//! Reads results and compares them: means that are exact, configuration by configuration, and what luck alone would show.
//! Pure: text comes in, figures come out; what follows from them is decided in `treebeam_core`.
//!
//! # Layout
//! [`sweep_csv`] reads a results CSV, [`exact`] sums without rounding, [`paired`] compares two sweeps by configuration,
//! [`compare`] makes the recommendation, [`versus`] compares the tree with its control group and [`mod@luck`] the best
//! candidate with what chance would show.

pub mod compare;
pub mod exact;
pub mod luck;
pub mod paired;
mod rounding;
pub mod sweep_csv;
pub mod versus;
