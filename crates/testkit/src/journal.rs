//! Provides a journal in memory that can fail at any event, like a power cut.

use treebeam_core::event::{Event, RunStarted, WorldKind};
use treebeam_core::policy::{FixedSettings, RecordedAgents, RunLimits};
use treebeam_core::rules_version::RulesVersion;
use treebeam_core::state::State;
use treebeam_run::port::{CheckpointKind, Journal, PortError};

/// A journal in memory.
#[derive(Clone, Debug)]
pub struct MemoryJournal {
    /// Appended events.
    pub events: Vec<Event>,
    /// Number of events after which appending fails.
    pub fuse: Option<usize>,
    /// Number of checkpoints that fail before one succeeds.
    pub failing_checkpoints: u32,
}

impl MemoryJournal {
    /// Creates the journal of a run that has just started.
    #[must_use]
    pub fn begun(settings: FixedSettings, limits: RunLimits) -> Self {
        let started = RunStarted {
            run: "test".parse().expect("a run id"),
            world: WorldKind::Dry { seed: 1 },
            root: crate::memory::MemoryWorld::root(),
            meaning: settings,
            reach: limits,
            agents: RecordedAgents::default(),
            given: None,
            replays: None,
            rules_version: RulesVersion::LATEST,
            at: jiff::Timestamp::UNIX_EPOCH,
        };
        Self {
            events: vec![Event::RunStarted(Box::new(started))],
            fuse: None,
            failing_checkpoints: 0,
        }
    }

    /// Returns the state that the events lead to.
    #[must_use]
    pub fn state(&self) -> State {
        State::from_events(&self.events).expect("the events of a run")
    }
}

impl Journal for MemoryJournal {
    fn append(&mut self, events: &[Event]) -> Result<(), PortError> {
        for event in events {
            if self.fuse == Some(self.events.len()) {
                return Err(PortError::new("power cut"));
            }
            self.events.push(event.clone());
        }
        Ok(())
    }

    fn write_checkpoint(&mut self, _: &State, _: CheckpointKind) -> Result<(), PortError> {
        if self.failing_checkpoints == 0 {
            return Ok(());
        }
        self.failing_checkpoints -= 1;
        Err(PortError::new("disk full"))
    }
}
