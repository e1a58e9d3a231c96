//! Describes one item of `treebeam clean`: kind, run, size, and outcome.

use serde::Serialize;
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::id::CodePlace;
use treebeam_core::id::RunId;
use treebeam_core::path;
use treebeam_git::journal_ref;

#[derive(Clone, Debug, Serialize)]
pub(super) struct CleanItem {
    /// Run of the item; `None` for a run that was never completed.
    run_id: Option<RunId>,
    kind: CleanItemKind,
    name: String,
    bytes: Option<u64>,
    #[serde(flatten)]
    pub(super) outcome: CleanOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CleanItemKind {
    Worktree,
    Ref,
    SweepOutput,
    /// Directory of a run that was never completed.
    Unfinished,
    /// Git's entry of a worktree that is gone.
    GitEntry,
    RunDirectory,
    /// A process, with all its children, that still runs though no process holds its run.
    RunningSweep,
}

impl CleanItemKind {
    /// The name of several; none where each one has to be named.
    const fn plural(self) -> Option<&'static str> {
        match self {
            Self::Ref => Some("refs"),
            Self::Worktree
            | Self::SweepOutput
            | Self::Unfinished
            | Self::GitEntry
            | Self::RunDirectory
            | Self::RunningSweep => None,
        }
    }
}

/// Outcome of an item, with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", content = "why", rename_all = "snake_case")]
pub(super) enum CleanOutcome {
    /// Planned for removal.
    Planned,
    Removed,
    /// Must not be removed now.
    Kept(String),
    /// Removal failed.
    NotRemoved(String),
}

impl CleanItem {
    pub(super) fn new(run: Option<&RunId>, kind: CleanItemKind, name: impl Into<String>) -> Self {
        let (run_id, outcome) = (run.cloned(), CleanOutcome::Planned);
        Self { run_id, kind, name: name.into(), bytes: None, outcome }
    }

    pub(super) fn from_leftover(run: &RunId, leftover: Leftover) -> Self {
        let (kind, name) = match (leftover.kind, leftover.place) {
            (LeftoverKind::Worktree, place) => {
                (CleanItemKind::Worktree, place.worktree_path().to_string())
            }
            (LeftoverKind::Branch, place) => (CleanItemKind::Ref, place.ref_name(run)),
            (LeftoverKind::Dir, CodePlace::Candidate(eval)) => {
                (CleanItemKind::SweepOutput, path::eval_folder(eval).to_string())
            }
            (LeftoverKind::Dir, place @ CodePlace::Node(_)) => {
                (CleanItemKind::SweepOutput, place.to_string())
            }
        };
        Self::new(Some(run), kind, name)
    }

    /// Returns the item of a run's journal ref.
    pub(super) fn from_journal_ref(run: &RunId) -> Self {
        Self::new(Some(run), CleanItemKind::Ref, journal_ref(run))
    }

    /// Returns true if both are the same item, whatever their outcomes.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        (&self.run_id, self.kind, &self.name) == (&other.run_id, other.kind, &other.name)
    }

    pub(super) fn with_bytes(self, bytes: u64) -> Self {
        Self { bytes: Some(bytes), ..self }
    }

    pub(super) fn with_outcome(self, outcome: CleanOutcome) -> Self {
        Self { outcome, ..self }
    }

    /// Returns the item with the result of its removal.
    pub(super) fn with_removal_result<T, E: ToString>(self, removed: Result<T, E>) -> Self {
        let outcome = match removed {
            Ok(_) => CleanOutcome::Removed,
            Err(error) => CleanOutcome::NotRemoved(error.to_string()),
        };
        self.with_outcome(outcome)
    }

    /// Returns true if the item is on disk.
    pub(super) fn is_stored(&self) -> bool {
        self.kind != CleanItemKind::RunningSweep
    }

    pub(super) fn is_not_removed(&self) -> bool {
        matches!(self.outcome, CleanOutcome::NotRemoved(_))
    }

    /// Returns name and outcome, without the size, which may change.
    pub(super) fn name_and_outcome(&self) -> (&str, &CleanOutcome) {
        (&self.name, &self.outcome)
    }

    /// Formats the item as one line.
    fn render_line(&self) -> String {
        let what = match self.kind {
            CleanItemKind::Worktree => "worktree",
            CleanItemKind::Ref => "ref",
            CleanItemKind::SweepOutput => "sweep output in",
            CleanItemKind::Unfinished => "unfinished",
            CleanItemKind::GitEntry => "git's entry for",
            CleanItemKind::RunDirectory => "directory",
            CleanItemKind::RunningSweep => "running sweep",
        };
        let [to_go, gone, left] = match self.kind {
            CleanItemKind::RunningSweep => ["to end", "ended", "not ended"],
            CleanItemKind::Worktree
            | CleanItemKind::Ref
            | CleanItemKind::SweepOutput
            | CleanItemKind::Unfinished
            | CleanItemKind::GitEntry
            | CleanItemKind::RunDirectory => ["to remove", "removed", "not removed"],
        };
        let run = self.run_id.as_ref().map_or_else(String::new, |run| format!("run {run}: "));
        let size =
            self.bytes.map_or_else(String::new, |bytes| format!(", {}", format_bytes(bytes)));
        let what = format!("{run}{what} `{}`{size}", self.name);
        match &self.outcome {
            CleanOutcome::Planned => format!("{to_go}: {what}"),
            CleanOutcome::Removed => format!("{gone}: {what}"),
            CleanOutcome::Kept(why) => format!("kept: {what}: {why}"),
            CleanOutcome::NotRemoved(why) => format!("{left}: {what}: {why}"),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.unwrap_or_default()
    }
}

/// A line for each item. Those of one kind that stay for the same reason are counted on one line.
pub(super) fn render_lines<'a>(items: impl IntoIterator<Item = &'a CleanItem>) -> Vec<String> {
    let items: Vec<_> = items.into_iter().collect();
    let mut lines = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let CleanOutcome::NotRemoved(why) = &item.outcome else {
            lines.push(item.render_line());
            continue;
        };
        let is_alike =
            |other: &&&CleanItem| other.kind == item.kind && other.outcome == item.outcome;
        let count = items.iter().filter(is_alike).count();
        match item.kind.plural() {
            Some(plural) if count > 1 => {
                let is_first = items.iter().position(|other| is_alike(&other)) == Some(at);
                lines.extend(is_first.then(|| format!("not removed: {count} {plural}: {why}")));
            }
            Some(_) | None => lines.push(item.render_line()),
        }
    }
    lines
}

/// Formats a number of bytes for people.
pub(super) fn format_bytes(bytes: u64) -> String {
    match bytes {
        0..=9_999 => format!("{bytes} B"),
        10_000..=9_999_999 => format!("{} KiB", bytes >> 10),
        10_000_000.. => format!("{} MiB", bytes >> 20),
    }
}
