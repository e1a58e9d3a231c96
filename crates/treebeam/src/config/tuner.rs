//! `[tuner]`: where the built-in agent looks, and what its choices follow from.

use super::bounded_values::{PathGlobs, WholeNumber};
use serde::Deserialize;
use treebeam_agent::settings::TunerAgent;

/// The keys of `[tuner]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TunerTable {
    files: Option<PathGlobs>,
    seed: Option<WholeNumber>,
}

impl TunerTable {
    /// What was said, over what is built in.
    pub(crate) fn tuner_agent(&self) -> TunerAgent {
        let files = self.files.as_ref().map(|globs| globs.0.clone()).unwrap_or_default();
        TunerAgent { files, seed: self.seed.map_or(0, |seed| seed.0.into()) }
    }
}
