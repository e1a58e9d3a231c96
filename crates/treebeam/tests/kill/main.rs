//! Killed before and after each lasting step, the real program continues without a difference: the
//! resumed run equals the undisturbed run, and nothing is left over. The program itself lists the
//! steps: one that is not on its list, and one on the list that was not killed at, fail this test.
//!
//! # Layout
//! [`transition`] reads the list, [`scenario`] has the scenarios that cover it, [`matrix`] kills
//! and compares, [`random`] kills at any moment, [`traces`] finds leftovers.

#![cfg(test)]
#![cfg(target_os = "linux")]

mod matrix;
mod random;
mod scenario;
mod traces;
mod transition;

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");

/// Returns true if the long version of tests is requested.
fn is_campaign() -> bool {
    std::env::var_os("TREEBEAM_CAMPAIGN").is_some()
}
