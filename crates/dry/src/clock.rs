//! Generates the recorded times of the dry world from the root commit's time. Each recorded time is
//! that time plus a function of the recorded moment. The wall clock is real, and is only used in
//! `history`.

use jiff::{SignedDuration, Timestamp};
use treebeam_core::event::EvalStage;
use treebeam_run::port::{Clock, RecordedMoment};

/// A clock with generated recorded times.
#[derive(Clone, Copy, Debug)]
pub struct DryClock {
    root: Timestamp,
}

impl DryClock {
    /// Creates a clock that starts at the root commit's time.
    #[must_use]
    pub const fn new(root: Timestamp) -> Self {
        Self { root }
    }
}

impl Clock for DryClock {
    fn recorded_time(&self, moment: RecordedMoment) -> Timestamp {
        let minutes = |number: u32| i64::from(number) * 60;
        let seconds = match moment {
            RecordedMoment::Start => 0,
            RecordedMoment::Expansion(_, first) => minutes(first.number()),
            RecordedMoment::Begun(eval, attempt) => minutes(eval.number()) + i64::from(attempt),
            RecordedMoment::Eval(eval, stage, attempt) => {
                let stage = match stage {
                    EvalStage::Implement => 15,
                    EvalStage::Sweep => 30,
                    EvalStage::Score => 45,
                };
                minutes(eval.number()) + stage + i64::from(attempt)
            }
            RecordedMoment::Promotion(eval) => minutes(eval.number()) + 59,
            RecordedMoment::Stop(eval) | RecordedMoment::SentBack(eval) => minutes(eval.number()),
        };
        self.root.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(self.root)
    }

    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
