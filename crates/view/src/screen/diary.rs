//! What somebody who watches a run remembers of its journal: the last events in words, since when each place is busy, and
//! when evals ended. Times are those at which events were written, so that they can be compared with the watcher's clock.

use crate::log;
use jiff::Timestamp;
use std::collections::{BTreeMap, VecDeque};
use treebeam_core::event::{Event, Intent};
use treebeam_core::id::Place;

/// How many events are remembered.
const EVENTS: usize = 200;
/// How many ends of evals.
const ENDS: usize = 40;

/// What is remembered.
#[derive(Clone, Debug, Default)]
pub struct Diary {
    events: VecDeque<(Timestamp, String)>,
    since: BTreeMap<Place, Timestamp>,
    ends: VecDeque<Timestamp>,
}

impl Diary {
    /// Remembers an event that was written at this time.
    pub fn note(&mut self, at: Timestamp, event: &Event) {
        // Digests are for `validate`: no news for a person who watches.
        if !matches!(event, Event::FilesRecorded(_)) {
            self.events.push_back((at, log::brief(event)));
        }
        if self.events.len() > EVENTS {
            self.events.pop_front();
        }
        if let Some(place) = began(event) {
            self.since.insert(place, at);
        }
        if let Some(place) = ended(event) {
            self.since.remove(&place);
        }
        if matches!(event, Event::Scored { .. } | Event::EvalFailed { .. }) {
            self.ends.push_back(at);
            if self.ends.len() > ENDS {
                self.ends.pop_front();
            }
        }
    }

    /// The last events, the oldest of them first.
    pub(super) fn last(&self, most: usize) -> impl Iterator<Item = &(Timestamp, String)> {
        self.events.iter().skip(self.events.len().saturating_sub(most))
    }

    /// Since when a place does what it does, if that is remembered.
    pub(super) fn since(&self, place: Place) -> Option<Timestamp> {
        self.since.get(&place).copied()
    }

    /// When evals ended, the oldest first.
    pub(super) fn ends(&self) -> impl ExactSizeIterator<Item = Timestamp> {
        self.ends.iter().copied()
    }
}

/// The place that begins something with this event.
const fn began(event: &Event) -> Option<Place> {
    if let Event::StepStarted { step: Intent::Propose(source), .. } = event {
        return Some(Place::Node(source.node()));
    }
    if let Event::StepStarted { step: Intent::Implement(eval), .. }
    | Event::Implemented { eval, .. }
    | Event::Swept { eval, .. } = event
    {
        return Some(Place::Candidate(*eval));
    }
    if let Event::SweepSubmitted { subject, .. } = event {
        return Some(subject.place());
    }
    None
}

/// The place that ends what it did with this event.
fn ended(event: &Event) -> Option<Place> {
    if let Event::IdeasProposed(proposed) = event {
        return Some(Place::Node(proposed.source.node()));
    }
    if let Event::ProposalFailed { source, .. } = event {
        return Some(Place::Node(source.node()));
    }
    if let Event::Scored { eval, .. }
    | Event::EvalFailed { eval, .. }
    | Event::AttemptFailed { eval, .. } = event
    {
        return Some(Place::Candidate(*eval));
    }
    if let Event::RootMeasured { .. } | Event::RootRefused { .. } = event {
        return Some(Place::Node(treebeam_core::id::NodeId::ROOT));
    }
    None
}
