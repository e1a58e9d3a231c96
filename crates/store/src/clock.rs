//! The wall clock, which also gives the times that are recorded.

use jiff::Timestamp;
use treebeam_run::port::{Clock, RecordedMoment};

/// The clock of the real world.
#[derive(Clone, Copy, Debug)]
pub struct WallClock;

impl Clock for WallClock {
    fn recorded_time(&self, _: RecordedMoment) -> Timestamp {
        self.now()
    }
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
