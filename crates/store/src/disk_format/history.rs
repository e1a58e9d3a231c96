//! The manifest's block `history`: everything that depends on how often the run was interrupted.

use super::document::JournalMark;
use super::run::CopiedFile;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use treebeam_core::event::{MessageId, SweepSubject};
use treebeam_core::facts::RunHistory;
use treebeam_core::id::{CodePlace, Depth, EvalId};

/// The counts of interruptions and repeated work, with the position in the journal.
#[derive(Serialize, Deserialize)]
pub(super) struct HistoryBlock {
    #[serde(flatten)]
    pub(super) mark: JournalMark,
    submissions: BTreeMap<String, u32>,
    settings_changes: u32,
    promotion_failures: u32,
    deferred_cleanups: u32,
    cleanups: u32,
    /// Absent in the manifests of the first treebeam.
    #[serde(default)]
    lock_takeovers: u32,
    /// Written only if the journal was restored: manifests of older runs have no such field.
    #[serde(default, skip_serializing_if = "is_zero")]
    journal_restorations: u32,
    #[serde(default)]
    paused_since: Option<Timestamp>,
    #[serde(default)]
    stop_after_depth: Option<Depth>,
    #[serde(default)]
    messages: Vec<MessageId>,
    /// Results of sweeps that an older twin's results replace. Rarely present.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    replaced_sweeps: BTreeMap<EvalId, CopiedFile>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    suspects: BTreeSet<EvalId>,
}

impl HistoryBlock {
    pub(super) fn from_history(history: &RunHistory, mark: JournalMark) -> Self {
        let submissions = history.submissions.iter();
        Self {
            mark,
            submissions: submissions.map(|(subject, n)| (subject.to_string(), *n)).collect(),
            settings_changes: history.settings_changes,
            promotion_failures: history.promotion_failures,
            deferred_cleanups: history.deferred_cleanups,
            cleanups: history.cleanups,
            lock_takeovers: history.lock_takeovers,
            journal_restorations: history.journal_restorations,
            paused_since: history.paused_since,
            stop_after_depth: history.stop_after,
            messages: history.messages.clone(),
            replaced_sweeps: history
                .replaced_sweeps
                .iter()
                .map(|(eval, results)| (*eval, CopiedFile::from_artifact(results)))
                .collect(),
            suspects: history.suspects.clone(),
        }
    }

    pub(super) fn into_history(self) -> Result<RunHistory, String> {
        let submissions =
            self.submissions.into_iter().map(|(text, n)| Ok((parse_subject(&text)?, n)));
        let replaced = self.replaced_sweeps.into_iter();
        Ok(RunHistory {
            submissions: submissions.collect::<Result<_, String>>()?,
            settings_changes: self.settings_changes,
            promotion_failures: self.promotion_failures,
            deferred_cleanups: self.deferred_cleanups,
            cleanups: self.cleanups,
            lock_takeovers: self.lock_takeovers,
            journal_restorations: self.journal_restorations,
            paused_since: self.paused_since,
            stop_after: self.stop_after_depth,
            messages: self.messages,
            replaced_sweeps: replaced.map(|(eval, file)| (eval, file.into_artifact())).collect(),
            suspects: self.suspects,
        })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn parse_subject(text: &str) -> Result<SweepSubject, String> {
    if text == "root" {
        return Ok(SweepSubject::Root);
    }
    match text.parse() {
        Ok(CodePlace::Candidate(eval)) => Ok(SweepSubject::Eval(eval)),
        Ok(CodePlace::Node(_)) | Err(_) => Err(format!("`submissions` has {text:?}")),
    }
}
