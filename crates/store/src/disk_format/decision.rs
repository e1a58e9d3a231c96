//! Serialised form of the decision on an eval in the manifest: gate verdict, rank and fate.

use super::eval::require_field;
use serde::{Deserialize, Serialize};
use treebeam_core::evidence::CandidateScore;
use treebeam_core::facts::{CandidateFate, Stage};
use treebeam_core::gate::{self, GateCheck, GateVerdict};
use treebeam_core::id::NodeId;
use treebeam_core::num::Finite;
use treebeam_core::policy::FixedSettings;

/// The decision on an eval, as it is written to the manifest.
#[derive(Serialize, Deserialize)]
pub(super) struct DecisionLine {
    #[serde(skip_deserializing)]
    gate_basis: &'static str,
    #[serde(skip_deserializing)]
    rank_basis: &'static str,
    #[serde(skip_deserializing)]
    passed_gate: bool,
    checks: Vec<GateCheck>,
    #[serde(skip_deserializing)]
    promotion_reason: String,
    #[serde(skip_deserializing)]
    primary_regressed: Option<bool>,
    rank_score: Option<Finite>,
    fate: FateName,
    promoted_to_node_id: Option<NodeId>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FateName {
    Dropped,
    Chosen,
    Promoted,
}

impl DecisionLine {
    /// Returns the decision on an eval at this stage, if there is one.
    pub(super) fn from_stage(stage: &Stage, settings: &FixedSettings) -> Option<Self> {
        match stage {
            Stage::Decided(measured, word, fate) => {
                let regressed = has_primary_regressed(&measured.scored, settings);
                Some(Self::new(word.to_verdict(measured), *fate, regressed))
            }
            Stage::Failed { failure, .. } => {
                Some(Self::new(gate::verdict_on_failure(failure), CandidateFate::Dropped, None))
            }
            Stage::Queued
            | Stage::Implementing(_)
            | Stage::Implemented(_)
            | Stage::Sweeping(_)
            | Stage::Swept(..)
            | Stage::Scored(_)
            | Stage::Unfinished { .. }
            | Stage::Superseded(..)
            | Stage::SetAside => None,
        }
    }

    fn new(verdict: GateVerdict, fate: CandidateFate, primary_regressed: Option<bool>) -> Self {
        let (fate, promoted_to_node_id) = match fate {
            CandidateFate::Dropped => (FateName::Dropped, None),
            CandidateFate::Chosen => (FateName::Chosen, None),
            CandidateFate::Promoted(node) => (FateName::Promoted, Some(node)),
        };
        Self {
            gate_basis: "parent_relative",
            rank_basis: "root_relative",
            passed_gate: verdict.has_passed(),
            promotion_reason: verdict.reason(),
            primary_regressed,
            rank_score: verdict.rank_score,
            checks: verdict.checks,
            fate,
            promoted_to_node_id,
        }
    }

    pub(super) fn into_verdict(self) -> Result<(GateVerdict, CandidateFate), String> {
        let fate = match self.fate {
            FateName::Dropped => CandidateFate::Dropped,
            FateName::Chosen => CandidateFate::Chosen,
            FateName::Promoted => CandidateFate::Promoted(require_field(
                self.promoted_to_node_id,
                "promoted_to_node_id",
            )?),
        };
        Ok((GateVerdict { checks: self.checks, rank_score: self.rank_score }, fate))
    }
}

/// Returns true if the primary metric is worse than the parent's; none if that is unknown.
fn has_primary_regressed(scored: &CandidateScore, settings: &FixedSettings) -> Option<bool> {
    let delta = scored.vs_parent.primary_delta?;
    let worse = delta.get() < -settings.gate.primary_tolerance.get();
    Some(worse || scored.vs_parent.recommendation.has_primary_regression())
}
