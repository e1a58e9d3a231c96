//! The last depth, where nothing was promoted from it: no later fact rests on it, so it can be opened again. Which wishes do
//! that is not decided here.

use super::{Facts, Phase, Stage};
use crate::id::Depth;

impl Facts {
    /// The last depth, if it is closed, nothing was promoted from it, and nothing has begun since.
    #[must_use]
    pub fn barren_depth(&self) -> Option<Depth> {
        let between = matches!(self.phase, Phase::Searching | Phase::Stopped { .. });
        let last = self.closed.last().filter(|closed| between && closed.beam.is_empty())?;
        let begun = self.all_expansions().any(|(_, expansion)| expansion.depth == self.depth);
        let is_last = last.evals_end == self.next_eval() && !begun;
        is_last.then(|| self.depth.0.checked_sub(1).map(Depth)).flatten()
    }

    /// What is known if that depth is opened again: its candidates are compared and not judged yet.
    #[must_use]
    pub fn reopened(&self) -> Option<Self> {
        let depth = self.barren_depth()?;
        let mut open = self.clone();
        open.closed.pop();
        open.depth = depth;
        open.frontier = open.standing_frontier();
        open.phase = Phase::Searching;
        let first = open.evals.len() - open.open_evals().len();
        for eval in open.evals.iter_mut().skip(first) {
            if let Stage::Decided(measured, ..) = &eval.stage {
                eval.stage = Stage::Scored(measured.clone());
            }
        }
        Some(open)
    }
}
