//! History of a run's interruptions and requests, apart because no other fact depends on it.

use crate::event::{MessageId, SweepSubject};
use crate::evidence::Artifact;
use crate::id::{Depth, EvalId};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Counts and records that depend on how often the run was interrupted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunHistory {
    /// Number of submissions of each sweep.
    pub submissions: BTreeMap<SweepSubject, u32>,
    /// Number of times the run was taken over from a process that did not exit cleanly.
    pub lock_takeovers: u32,
    /// Number of times the journal had lost its name and was restored.
    pub journal_restorations: u32,
    /// Number of changes of the limits.
    pub settings_changes: u32,
    /// Number of promotions that had to be retried.
    pub promotion_failures: u32,
    /// Number of leftovers whose removal failed at first.
    pub deferred_cleanups: u32,
    /// Number of leftovers that are removed.
    pub cleanups: u32,
    /// Time since which the run is paused, if it is.
    pub paused_since: Option<Timestamp>,
    /// Depth after which the user wants the run to stop, if not the last one anyway.
    pub stop_after: Option<Depth>,
    /// Messages that were handled last, oldest first: none is handled a second time.
    pub messages: Vec<MessageId>,
    /// Results of sweeps that the results of an older twin replace: whether a candidate was swept
    /// before its twin was known depends on the order of finishing.
    pub replaced_sweeps: BTreeMap<EvalId, Artifact>,
    /// Evals that were being swept when artifacts were found changed: their results do not count.
    pub suspects: BTreeSet<EvalId>,
}
