//! Scoring oracle: results of the system that treebeam's scoring comes from. Covers 270 pairs of
//! small CSVs and the sweeps of 35 real changes; the data are beside this file. Tests only results.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "the oracle's data are files")]

mod cases;
mod changes;
mod figures;
mod reference;
mod tree;

use serde_json::Value;
use std::path::{Path, PathBuf};

/// Returns the path of a file of the oracle.
fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle").join(name)
}

fn json(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(path(name)).unwrap()).unwrap()
}
