//! Killed before and after everything that it makes last, the real program goes on as if nothing had been: the run that is
//! resumed is the run that nobody killed, and nothing is left lying about. Which steps there are, the program itself says:
//! one that is not on its list, and one on the list that was not killed at, fail this test.
//!
//! # Layout
//! [`transition`] reads the list, [`scenario`] has the ways through all of it, [`matrix`] kills and compares, [`random`]
//! kills at any moment, [`traces`] looks for what was left.

#![cfg(test)]
#![cfg(target_os = "linux")]

mod matrix;
mod random;
mod scenario;
mod traces;
mod transition;

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");

/// Whether there is time for more.
fn is_campaign() -> bool {
    std::env::var_os("TREEBEAM_CAMPAIGN").is_some()
}
