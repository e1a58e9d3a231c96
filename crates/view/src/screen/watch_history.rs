//! Keeps what a watcher needs of the journal: recent events, starts of activities and ends of
//! evals. Times are those at which events were written, so that they can be compared with the
//! watcher's clock.

use crate::log;
use jiff::Timestamp;
use std::collections::{BTreeMap, VecDeque};
use treebeam_core::event::{Event, PaidStep};
use treebeam_core::id::CodePlace;

/// Maximum number of kept events.
const MAX_EVENTS: usize = 200;
/// Maximum number of kept ends of evals.
const MAX_EVAL_ENDS: usize = 40;

/// Recent events, and times derived from them.
#[derive(Clone, Debug, Default)]
pub struct WatchHistory {
    events: VecDeque<(Timestamp, String)>,
    since: BTreeMap<CodePlace, Timestamp>,
    ends: VecDeque<Timestamp>,
}

impl WatchHistory {
    /// Adds an event that was written at this time.
    pub fn add_event(&mut self, at: Timestamp, event: &Event) {
        // Digests of files are for `treebeam validate`, and no news for a watcher.
        if !matches!(event, Event::FilesRecorded(_)) {
            self.events.push_back((at, log::brief_event(event)));
        }
        if self.events.len() > MAX_EVENTS {
            self.events.pop_front();
        }
        if let Some(place) = begun_place(event) {
            self.since.insert(place, at);
        }
        if let Some(place) = ended_place(event) {
            self.since.remove(&place);
        }
        if matches!(event, Event::Scored { .. } | Event::EvalFailed { .. }) {
            self.ends.push_back(at);
            if self.ends.len() > MAX_EVAL_ENDS {
                self.ends.pop_front();
            }
        }
    }

    /// Returns the last events, the oldest of them first.
    pub(super) fn last_events(&self, most: usize) -> impl Iterator<Item = &(Timestamp, String)> {
        self.events.iter().skip(self.events.len().saturating_sub(most))
    }

    /// Returns when the current activity of a place began, if known.
    pub(super) fn busy_since(&self, place: CodePlace) -> Option<Timestamp> {
        self.since.get(&place).copied()
    }

    /// Returns when evals ended, the oldest first.
    pub(super) fn eval_ends(&self) -> impl ExactSizeIterator<Item = Timestamp> {
        self.ends.iter().copied()
    }
}

/// Returns the place that begins an activity with this event.
const fn begun_place(event: &Event) -> Option<CodePlace> {
    if let Event::StepStarted { step: PaidStep::Propose(source), .. } = event {
        return Some(CodePlace::Node(source.node_id()));
    }
    if let Event::StepStarted { step: PaidStep::Implement(eval), .. }
    | Event::Implemented { eval, .. }
    | Event::Swept { eval, .. } = event
    {
        return Some(CodePlace::Candidate(*eval));
    }
    if let Event::SweepSubmitted { subject, .. } = event {
        return Some(subject.code_place());
    }
    None
}

/// Returns the place that ends its activity with this event.
fn ended_place(event: &Event) -> Option<CodePlace> {
    if let Event::IdeasProposed(proposed) = event {
        return Some(CodePlace::Node(proposed.source.node_id()));
    }
    if let Event::ProposalFailed { source, .. } = event {
        return Some(CodePlace::Node(source.node_id()));
    }
    if let Event::Scored { eval, .. }
    | Event::EvalFailed { eval, .. }
    | Event::AttemptFailed { eval, .. } = event
    {
        return Some(CodePlace::Candidate(*eval));
    }
    if let Event::RootMeasured { .. } | Event::RootRefused { .. } = event {
        return Some(CodePlace::Node(treebeam_core::id::NodeId::ROOT));
    }
    None
}
