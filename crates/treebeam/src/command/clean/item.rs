//! One thing that `treebeam clean` is about: what it is, whose, how large, and what becomes of it.

use serde::Serialize;
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::id::Place;
use treebeam_core::id::RunId;
use treebeam_core::path;
use treebeam_edge::git::journal_ref;

#[derive(Clone, Debug, Serialize)]
pub(super) struct Item {
    /// Whose; nobody's where it never became a run.
    run_id: Option<RunId>,
    kind: Kind,
    name: String,
    bytes: Option<u64>,
    #[serde(flatten)]
    pub(super) outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Worktree,
    Ref,
    SweepOutput,
    /// What was never finished.
    Unfinished,
    /// What git knows of a worktree that is gone.
    GitEntry,
    RunDirectory,
    /// A process, with all that it has started, that goes on though nobody runs its run.
    RunningSweep,
}

/// What becomes of it, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", content = "why", rename_all = "snake_case")]
pub(super) enum Outcome {
    /// It is to go.
    Planned,
    Removed,
    /// It is not for us to remove now.
    Kept(String),
    /// It should be gone, and is not.
    NotRemoved(String),
}

impl Item {
    pub(super) fn new(run: Option<&RunId>, kind: Kind, name: impl Into<String>) -> Self {
        let (run_id, outcome) = (run.cloned(), Outcome::Planned);
        Self { run_id, kind, name: name.into(), bytes: None, outcome }
    }

    pub(super) fn of_leftover(run: &RunId, leftover: Leftover) -> Self {
        let (kind, name) = match (leftover.kind, leftover.place) {
            (LeftoverKind::Worktree, place) => (Kind::Worktree, place.worktree().to_string()),
            (LeftoverKind::Branch, place) => (Kind::Ref, place.ref_name(run)),
            (LeftoverKind::Dir, Place::Candidate(eval)) => {
                (Kind::SweepOutput, path::eval(eval).to_string())
            }
            (LeftoverKind::Dir, place @ Place::Node(_)) => (Kind::SweepOutput, place.to_string()),
        };
        Self::new(Some(run), kind, name)
    }

    /// The ref that names the last line of a run's journal.
    pub(super) fn of_journal_ref(run: &RunId) -> Self {
        Self::new(Some(run), Kind::Ref, journal_ref(run))
    }

    /// Whether it is the same thing, whatever becomes of it.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        (&self.run_id, self.kind, &self.name) == (&other.run_id, other.kind, &other.name)
    }

    pub(super) fn weighing(self, bytes: u64) -> Self {
        Self { bytes: Some(bytes), ..self }
    }

    pub(super) fn but(self, outcome: Outcome) -> Self {
        Self { outcome, ..self }
    }

    /// The same thing, after it was tried to remove it.
    pub(super) fn tried<T, E: ToString>(self, removed: Result<T, E>) -> Self {
        let outcome = match removed {
            Ok(_) => Outcome::Removed,
            Err(error) => Outcome::NotRemoved(error.to_string()),
        };
        self.but(outcome)
    }

    /// Whether it is something on disk.
    pub(super) fn is_stored(&self) -> bool {
        self.kind != Kind::RunningSweep
    }

    pub(super) fn is_left(&self) -> bool {
        matches!(self.outcome, Outcome::NotRemoved(_))
    }

    /// What it is, and whether it goes; its size may change.
    pub(super) fn name(&self) -> (&str, &Outcome) {
        (&self.name, &self.outcome)
    }

    /// The item on a line.
    pub(super) fn line(&self) -> String {
        let what = match self.kind {
            Kind::Worktree => "worktree",
            Kind::Ref => "ref",
            Kind::SweepOutput => "sweep output in",
            Kind::Unfinished => "unfinished",
            Kind::GitEntry => "git's entry for",
            Kind::RunDirectory => "directory",
            Kind::RunningSweep => "running sweep",
        };
        let [to_go, gone, left] = match self.kind {
            Kind::RunningSweep => ["to end", "ended", "not ended"],
            Kind::Worktree
            | Kind::Ref
            | Kind::SweepOutput
            | Kind::Unfinished
            | Kind::GitEntry
            | Kind::RunDirectory => ["to remove", "removed", "not removed"],
        };
        let run = self.run_id.as_ref().map_or_else(String::new, |run| format!("run {run}: "));
        let size = self.bytes.map_or_else(String::new, |bytes| format!(", {}", size(bytes)));
        let what = format!("{run}{what} `{}`{size}", self.name);
        match &self.outcome {
            Outcome::Planned => format!("{to_go}: {what}"),
            Outcome::Removed => format!("{gone}: {what}"),
            Outcome::Kept(why) => format!("kept: {what}: {why}"),
            Outcome::NotRemoved(why) => format!("{left}: {what}: {why}"),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.unwrap_or_default()
    }
}

/// Bytes, for people.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..=9_999 => format!("{bytes} B"),
        10_000..=9_999_999 => format!("{} KiB", bytes >> 10),
        10_000_000.. => format!("{} MiB", bytes >> 20),
    }
}
