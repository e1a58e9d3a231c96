//! What became of an eval, in the manifest: the gate's word, rank and fate.

use super::eval::needed;
use serde::{Deserialize, Serialize};
use treebeam_core::evidence::Scored;
use treebeam_core::facts::{Fate, Stage};
use treebeam_core::gate::{self, Check, Verdict};
use treebeam_core::id::NodeId;
use treebeam_core::num::Finite;
use treebeam_core::policy::Meaning;

/// What became of an eval as it is published.
#[derive(Serialize, Deserialize)]
pub(super) struct Decision {
    #[serde(skip_deserializing)]
    gate_basis: &'static str,
    #[serde(skip_deserializing)]
    rank_basis: &'static str,
    #[serde(skip_deserializing)]
    passed_gate: bool,
    checks: Vec<Check>,
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

impl Decision {
    /// The decision on an eval at this stage, if there is one.
    pub(super) fn of(stage: &Stage, meaning: &Meaning) -> Option<Self> {
        match stage {
            Stage::Decided(measured, word, fate) => {
                let regressed = primary_regressed(&measured.scored, meaning);
                Some(Self::new(word.verdict(measured), *fate, regressed))
            }
            Stage::Failed { failure, .. } => {
                Some(Self::new(gate::failed(failure), Fate::Dropped, None))
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

    fn new(verdict: Verdict, fate: Fate, primary_regressed: Option<bool>) -> Self {
        let (fate, promoted_to_node_id) = match fate {
            Fate::Dropped => (FateName::Dropped, None),
            Fate::Chosen => (FateName::Chosen, None),
            Fate::Promoted(node) => (FateName::Promoted, Some(node)),
        };
        Self {
            gate_basis: "parent_relative",
            rank_basis: "root_relative",
            passed_gate: verdict.passed(),
            promotion_reason: verdict.reason(),
            primary_regressed,
            rank_score: verdict.rank_score,
            checks: verdict.checks,
            fate,
            promoted_to_node_id,
        }
    }

    pub(super) fn into_verdict(self) -> Result<(Verdict, Fate), String> {
        let fate = match self.fate {
            FateName::Dropped => Fate::Dropped,
            FateName::Chosen => Fate::Chosen,
            FateName::Promoted => {
                Fate::Promoted(needed(self.promoted_to_node_id, "promoted_to_node_id")?)
            }
        };
        Ok((Verdict { checks: self.checks, rank_score: self.rank_score }, fate))
    }
}

/// Whether the primary got worse than its parent's; none where that is not known.
fn primary_regressed(scored: &Scored, meaning: &Meaning) -> Option<bool> {
    let delta = scored.vs_parent.primary_delta?;
    let worse = delta.get() < -meaning.gate.primary_tolerance.get();
    Some(worse || scored.vs_parent.recommendation.primary_regressed())
}
