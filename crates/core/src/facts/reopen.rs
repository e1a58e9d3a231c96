//! Reopening of the last depth, possible if it promoted nothing: no later fact rests on it. Which
//! user requests do so is decided elsewhere.

use super::{Eval, Facts, RunPhase, Stage};
use crate::id::{Depth, EvalId};

impl Facts {
    /// Returns the last depth, if it is closed, promoted nothing, and nothing has begun since.
    #[must_use]
    pub fn reopenable_depth(&self) -> Option<Depth> {
        let between = matches!(self.phase, RunPhase::Searching | RunPhase::Stopped { .. });
        let last = self.closed.last().filter(|closed| between && closed.beam.is_empty())?;
        let begun = self.all_expansions().any(|(_, expansion)| expansion.depth == self.depth);
        let is_last = last.evals_end == self.next_eval_id() && !begun;
        is_last.then(|| self.depth.0.checked_sub(1).map(Depth)).flatten()
    }

    /// Returns a copy of the facts with the last depth reopened.
    #[must_use]
    pub fn with_reopened_depth(&self) -> Option<Self> {
        let depth = self.reopenable_depth()?;
        let mut open = self.clone();
        open.reopen_depth(depth);
        Some(open)
    }

    /// Reopens the last depth and returns the evals that wait again: those that a budget left
    /// unfinished. Judged evals stay judged.
    pub(crate) fn reopen_depth(&mut self, depth: Depth) -> Vec<EvalId> {
        self.closed.pop();
        self.depth = depth;
        self.frontier = self.promoted_frontier();
        self.phase = RunPhase::Searching;
        // A request to stop after this depth is fulfilled.
        self.history.stop_after = self.history.stop_after.filter(|last| *last > depth);
        self.pack_closed_depths();
        let unfinished = |eval: &&mut Eval| matches!(eval.stage, Stage::Unfinished { .. });
        let waiting = self.evals.unpacked_evals_mut().iter_mut().filter(unfinished).map(|eval| {
            eval.stage = Stage::Queued;
            eval.id
        });
        waiting.collect()
    }
}
