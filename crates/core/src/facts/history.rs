//! How a run came to be what it is, as far as nothing else depends on it.

use crate::event::{MessageId, SweepSubject};
use crate::evidence::Artifact;
use crate::id::{Depth, EvalId};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// What depends on how often the run was interrupted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunHistory {
    /// How often each sweep was submitted.
    pub submissions: BTreeMap<SweepSubject, u32>,
    /// How often the run was taken from a process that did not leave cleanly.
    pub lock_takeovers: u32,
    /// How often the journal had lost its name and was put back.
    pub journal_restorations: u32,
    /// How often the reach was changed.
    pub settings_changes: u32,
    /// How often a promotion had to be tried again.
    pub promotion_failures: u32,
    /// Leftovers whose removal did not work at first.
    pub deferred_cleanups: u32,
    /// Leftovers that are gone.
    pub cleanups: u32,
    /// Since when the run is paused, if it is.
    pub paused_since: Option<Timestamp>,
    /// The depth that the user wants the run to stop after, if it is not the last one anyway.
    pub stop_after: Option<Depth>,
    /// The messages that were taken last, the oldest first: none of them counts a second time.
    pub messages: Vec<MessageId>,
    /// Results of sweeps that the results of an older twin stand in for: whether a candidate was swept before its twin was
    /// known depends on what ended first.
    pub replaced_sweeps: BTreeMap<EvalId, Artifact>,
    /// Evals that were being swept when artifacts were found changed: none of their results count.
    pub suspects: BTreeSet<EvalId>,
}
