//! Writes `summary.json`, the page about an eval for people and programs that read its folder. Each
//! stage fills in its own fields and keeps the rest: a repeated stage gives the same page. A new
//! attempt starts a new page in the same place.

use crate::port::{FileStore, JobEnd, PortError};
use crate::{figures, reply};
use serde_json::{Value, json};
use treebeam_core::bill::RoleBills;
use treebeam_core::event::{Approval, EvalFailure, Idea, SweepSubject};
use treebeam_core::facts::Candidate;
use treebeam_core::id::{Commit, EvalId, NodeId, RunPath};
use treebeam_core::path;
use treebeam_score::compare::ScoringDetails;

/// Name of the summary file.
const SUMMARY_FILE: &str = "summary.json";
/// Largest summary file that is read, in bytes.
const MAX_SUMMARY_BYTES: usize = 4 << 20;
/// Largest part of a text in the summary, in bytes: the whole text has a file of its own.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// Fields that are known before a candidate is measured.
const DRAFT_KEYS: [&str; 5] = ["notes", "plan", "review", "llm_usage", "cost_usd"];

/// An attempt of an eval, which a summary is about.
pub(crate) struct EvalAttempt {
    pub(crate) eval: EvalId,
    pub(crate) attempt: u32,
    pub(crate) idea: Idea,
    pub(crate) parent: NodeId,
    pub(crate) parent_commit: Commit,
}

/// The result of coder and other roles for an idea, as far as they got.
#[derive(Default)]
pub(crate) struct ChangeDraft {
    pub(crate) notes: Option<String>,
    pub(crate) plan: Option<String>,
    /// Number of rounds of the coder.
    pub(crate) rounds: u32,
    /// True if a diff has applied.
    pub(crate) applied: bool,
    /// Number of files in the change, once it is accepted.
    pub(crate) files_changed: Option<u32>,
    pub(crate) review: Option<ReviewRound>,
}

/// The last review of a change.
pub(crate) struct ReviewRound {
    pub(crate) round: u32,
    /// Issues of the review; `None` if the change was approved.
    pub(crate) issues: Option<String>,
}

/// The summary page of an eval.
pub(crate) struct EvalSummary(Value);

impl EvalSummary {
    /// Builds the page of an attempt that has just begun.
    fn blank(about: &EvalAttempt) -> Self {
        let EvalAttempt { eval, attempt, idea, parent, parent_commit } = about;
        Self(json!({
            "schema": "treebeam.summary/1",
            "eval_id": eval,
            "attempt": attempt,
            "attempt_dir": path::attempt_folder(*eval, *attempt),
            "status": "running",
            "idea": idea.title,
            "idea_path": idea.path,
            "idea_sha256": idea.sha256,
            "parent_node_id": parent,
            "parent_commit": parent_commit,
            "notes": null,
            "plan": null,
            "patch_applied": false,
            "coder_rounds": 0,
            "files_changed": null,
            "review": null,
            "approval": null,
            "candidate_commit": null,
            "llm_usage": null,
            "cost_usd": null,
            "commands": [],
            "job_usage": null,
            "same_code_as": null,
            "scoring_summary": null,
            "scoring_summary_root": null,
            "completeness": null,
            "error": null,
        }))
    }

    /// Opens the page of this attempt. One that is missing, or about something else, is begun anew.
    pub(crate) fn open_page(about: &EvalAttempt, files: &dyn FileStore) -> Result<Self, PortError> {
        let (mut page, found) = (Self::blank(about), read_page(about, files)?);
        let same = ["schema", "eval_id", "attempt"].iter().all(|key| found[key] == page.0[key]);
        page.copy_fields(&found, |_| same);
        Ok(page)
    }

    /// Builds a page for the candidate of an earlier attempt, which is measured again.
    pub(crate) fn from_candidate(
        about: &EvalAttempt,
        work: &Candidate,
        files: &dyn FileStore,
    ) -> Result<Self, PortError> {
        let (mut page, found) = (Self::blank(about), read_page(about, files)?);
        let same = ["schema", "eval_id"].iter().all(|key| found[key] == page.0[key]);
        page.copy_fields(&found, |key| same && DRAFT_KEYS.contains(&key));
        page.0["patch_applied"] = json!(true);
        page.0["coder_rounds"] = json!(work.rounds);
        page.0["files_changed"] = json!(work.files_changed);
        Ok(page.with_commit(&work.commit, work.approval))
    }

    fn copy_fields(&mut self, found: &Value, wanted: impl Fn(&str) -> bool) {
        let page = self.0.as_object_mut().into_iter().flatten();
        for (key, value) in page.filter(|(key, _)| wanted(key)) {
            if let Some(found) = found.get(key) {
                value.clone_from(found);
            }
        }
    }

    /// Builds a page for the result of asking the roles, with the bills of all attempts.
    pub(crate) fn from_draft(about: &EvalAttempt, draft: &ChangeDraft, bills: &RoleBills) -> Self {
        let mut page = Self::blank(about);
        let text = |text: &Option<String>| {
            json!(text.as_deref().map(|t| reply::truncate_text(t, MAX_TEXT_BYTES)))
        };
        page.0["notes"] = text(&draft.notes);
        page.0["plan"] = text(&draft.plan);
        page.0["patch_applied"] = json!(draft.applied);
        page.0["coder_rounds"] = json!(draft.rounds);
        page.0["files_changed"] = json!(draft.files_changed);
        page.0["review"] = json!(draft.review.as_ref().map(|review| json!({
            "round": review.round,
            "verdict": if review.issues.is_none() { "approve" } else { "reject" },
            "issues": review.issues,
        })));
        page.0["llm_usage"] = figures::usage_json(bills);
        page.0["cost_usd"] = json!(figures::cost_in_dollars(bills));
        page
    }

    pub(crate) fn with_commit(mut self, commit: &Commit, approval: Approval) -> Self {
        self.0["candidate_commit"] = json!(commit);
        self.0["approval"] = json!(approval);
        self
    }

    pub(crate) fn with_job_end(mut self, end: &JobEnd) -> Self {
        self.0["commands"] = json!(end.commands);
        self.0["job_usage"] = json!(end.usage);
        self
    }

    pub(crate) fn with_scoring(mut self, judgement: &ScoringDetails) -> Self {
        let scored = &judgement.scored;
        self.0["status"] = json!("completed");
        self.0["scoring_summary"] = json!({
            "recommendation": figures::recommendation_json(&judgement.vs_parent),
            "primary_delta": scored.vs_parent.primary_delta,
        });
        self.0["scoring_summary_root"] = json!({
            "recommendation": figures::recommendation_json(&judgement.vs_root),
            "primary_delta": scored.vs_root.primary_delta,
        });
        self.0["completeness"] = json!(scored.completeness);
        self
    }

    /// Adds the older twin whose results were compared instead of own ones.
    pub(crate) fn with_original(mut self, original: Option<SweepSubject>) -> Self {
        self.0["same_code_as"] = json!(original.map(|original| original.to_string()));
        self
    }

    pub(crate) fn with_failure(mut self, failure: &EvalFailure) -> Self {
        self.0["status"] = json!("failed");
        self.0["error"] = json!(failure);
        self
    }

    pub(crate) fn write(
        &self,
        about: &EvalAttempt,
        files: &dyn FileStore,
    ) -> Result<(), PortError> {
        files.write_file(&summary_path(about.eval), format!("{:#}\n", self.0).as_bytes())
    }
}

/// Reads the page as it is on disk; null if there is none.
fn read_page(about: &EvalAttempt, files: &dyn FileStore) -> Result<Value, PortError> {
    let text = files.find_file(&summary_path(about.eval), MAX_SUMMARY_BYTES)?.unwrap_or_default();
    Ok(serde_json::from_slice(&text).unwrap_or_default())
}

fn summary_path(eval: EvalId) -> RunPath {
    path::experiment_folder(eval).join(SUMMARY_FILE)
}
