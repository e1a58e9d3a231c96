//! Serialised form of the control group in the manifest: its expansions, one per depth. Runs
//! without a control group have no such block.

use super::node::ExpansionLine;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use treebeam_core::bill::RoleBills;
use treebeam_core::facts::{Expansion, Facts};
use treebeam_core::group::IdeaSource;
use treebeam_core::id::RunPath;
use treebeam_core::path;
use treebeam_run::figures;

/// The control group, as it is written to the manifest.
#[derive(Serialize, Deserialize)]
pub(super) struct ControlBlock {
    #[serde(skip_deserializing)]
    ideas_dir: Option<RunPath>,
    /// Usage of the agent calls that asked for the control group's ideas.
    #[serde(skip_deserializing)]
    llm_usage: Value,
    #[serde(skip_deserializing)]
    cost_usd: Option<f64>,
    expansions: Vec<ExpansionLine>,
}

impl ControlBlock {
    /// Returns the block of a run's control group, or none if the run has no control group.
    pub(super) fn from_facts(facts: &Facts) -> Option<Self> {
        facts.control_policy()?;
        let spent: RoleBills = facts.control.iter().map(|expansion| &expansion.bills).collect();
        Some(Self {
            ideas_dir: Some(path::ideas_folder(IdeaSource::Control)),
            llm_usage: figures::usage_json(&spent),
            cost_usd: figures::cost_in_dollars(&spent),
            expansions: facts
                .control
                .iter()
                .map(|expansion| ExpansionLine::from_expansion(facts, expansion))
                .collect(),
        })
    }

    /// Returns the expansions of the block.
    pub(super) fn into_expansions(self) -> Result<Vec<Expansion>, String> {
        self.expansions.into_iter().map(ExpansionLine::into_fact).collect()
    }
}
