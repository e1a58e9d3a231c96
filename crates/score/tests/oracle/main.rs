//! The scoring oracle: what the system that treebeam's scoring comes from made of 270 pairs of small CSVs and of the
//! sweeps of 35 real changes. The data lie beside this file; nothing here says how scoring works inside.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "the oracle's data are files")]

mod cases;
mod changes;
mod figures;
mod reference;
mod tree;

use serde_json::Value;
use std::path::{Path, PathBuf};

/// A file of the oracle.
fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle").join(name)
}

fn json(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(path(name)).unwrap()).unwrap()
}
