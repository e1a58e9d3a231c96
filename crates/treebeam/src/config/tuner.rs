//! `[tuner]`: where the built-in agent looks, and what its choices follow from.

use super::number::{Count, Globs};
use serde::Deserialize;
use treebeam_edge::agent::settings::Tuner;

/// The keys of `[tuner]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TunerTable {
    files: Option<Globs>,
    seed: Option<Count>,
}

impl TunerTable {
    /// What was said, over what is built in.
    pub(crate) fn settings(&self) -> Tuner {
        let files = self.files.as_ref().map(|globs| globs.0.clone()).unwrap_or_default();
        Tuner { files, seed: self.seed.map_or(0, |seed| seed.0.into()) }
    }
}
