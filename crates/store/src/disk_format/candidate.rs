//! Serialised form of a candidate's code, which is a part of its eval's line in the manifest.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use treebeam_core::event::Approval;
use treebeam_core::facts::Candidate;
use treebeam_core::id::{Commit, GitTree};

/// A candidate that waits for another sweep, as it is written to the manifest.
#[derive(Serialize, Deserialize)]
pub(super) struct CandidateLine {
    attempt: u32,
    started_at: Timestamp,
    implemented_at: Option<Timestamp>,
    candidate_commit: Commit,
    files_changed: u32,
    rounds: u32,
    approval: Approval,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    candidate_tree: Option<GitTree>,
}

impl CandidateLine {
    pub(super) fn from_candidate(work: &Candidate) -> Self {
        Self {
            attempt: work.made_in,
            started_at: work.started_at,
            implemented_at: work.implemented_at,
            candidate_commit: work.commit.clone(),
            files_changed: work.files_changed,
            rounds: work.rounds,
            approval: work.approval,
            candidate_tree: work.tree.clone(),
        }
    }

    pub(super) fn into_candidate(self) -> Candidate {
        Candidate {
            started_at: self.started_at,
            implemented_at: self.implemented_at,
            commit: self.candidate_commit,
            files_changed: self.files_changed,
            rounds: self.rounds,
            approval: self.approval,
            made_in: self.attempt,
            tree: self.candidate_tree,
            same_code_as: None,
        }
    }
}
