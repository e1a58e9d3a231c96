//! The control group in the manifest: what was asked for it at each depth. Runs without one have no such block.

use super::node::ExpansionLine;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use treebeam_core::bill::Bills;
use treebeam_core::facts::{Expansion, Facts};
use treebeam_core::group::IdeaSource;
use treebeam_core::id::RunPath;
use treebeam_core::path;
use treebeam_run::figures;

/// The control group as it is published.
#[derive(Serialize, Deserialize)]
pub(super) struct ControlBlock {
    #[serde(skip_deserializing)]
    ideas_dir: Option<RunPath>,
    /// What asking for its ideas took.
    #[serde(skip_deserializing)]
    llm_usage: Value,
    #[serde(skip_deserializing)]
    cost_usd: Option<f64>,
    expansions: Vec<ExpansionLine>,
}

impl ControlBlock {
    /// How it is published.
    pub(super) fn of(facts: &Facts) -> Option<Self> {
        facts.control_group()?;
        let spent: Bills = facts.control.iter().map(|expansion| &expansion.bills).collect();
        Some(Self {
            ideas_dir: Some(path::ideas(IdeaSource::Control)),
            llm_usage: figures::usage(&spent),
            cost_usd: figures::cost(&spent),
            expansions: facts.control.iter().map(|told| ExpansionLine::of(facts, told)).collect(),
        })
    }

    /// What it says.
    pub(super) fn into_facts(self) -> Result<Vec<Expansion>, String> {
        self.expansions.into_iter().map(ExpansionLine::into_fact).collect()
    }
}
