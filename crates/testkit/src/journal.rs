//! A journal in memory that can be told to fail at any event, as a power cut would.

use treebeam_core::event::{Event, RunStarted, WorldKind};
use treebeam_core::policy::{FixedSettings, RecordedAgents, RunLimits};
use treebeam_core::rules_version::RulesVersion;
use treebeam_core::state::State;
use treebeam_run::port::{CheckpointKind, Journal, PortError};

/// A journal in memory.
#[derive(Clone, Debug)]
pub struct MemoryJournal {
    /// What was appended.
    pub events: Vec<Event>,
    /// After this many events the power is cut.
    pub fuse: Option<usize>,
    /// How many checkpoints fail before one succeeds.
    pub failing_checkpoints: u32,
}

impl MemoryJournal {
    /// A journal of a run that has just begun.
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

    /// The state that the events lead to.
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
