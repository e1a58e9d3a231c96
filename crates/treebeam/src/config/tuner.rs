//! Defines `[tuner]`: the files that the built-in agent reads, and its seed.

use super::bounded_values::{PathGlobs, WholeNumber};
use serde::Deserialize;
use treebeam_agent::settings::TunerAgent;

/// Keys of `[tuner]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TunerTable {
    files: Option<PathGlobs>,
    seed: Option<WholeNumber>,
}

impl TunerTable {
    /// Returns the tuner's settings, with defaults for unset keys.
    pub(crate) fn tuner_agent(&self) -> TunerAgent {
        let files = self.files.as_ref().map(|globs| globs.0.clone()).unwrap_or_default();
        TunerAgent { files, seed: self.seed.map_or(0, |seed| seed.0.into()) }
    }
}
