//! List of all evals, which packs those of closed depths. There are thousands of them; packed ones
//! are rarely read, never change, and are returned as copies.

use super::{ClosedDepth, Eval, Facts, PackedEvals, RunPhase};
use crate::id::EvalId;
use std::borrow::Cow;

/// All evals of a run, by id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EvalList {
    /// Evals of packed depths, depth by depth.
    settled: Vec<PackedDepth>,
    /// Evals that may still change.
    open: Vec<Eval>,
}

/// Packed evals of one depth.
#[derive(Clone, Debug, PartialEq)]
struct PackedDepth {
    /// Index of the depth's first eval, or of the next depth's if it has none.
    first: usize,
    evals: PackedEvals,
}

impl From<Vec<Eval>> for EvalList {
    fn from(open: Vec<Eval>) -> Self {
        Self { settled: Vec::new(), open }
    }
}

impl EvalList {
    /// Returns the number of evals.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packed_len() + self.open.len()
    }

    /// Returns true if there are no evals.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn packed_len(&self) -> usize {
        self.settled.last().map_or(0, |depth| depth.first + depth.evals.len())
    }

    /// Returns the eval at an index, counted from 0.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<Cow<'_, Eval>> {
        if let Some(at) = at.checked_sub(self.packed_len()) {
            return self.open.get(at).map(Cow::Borrowed);
        }
        let depth = self.settled.partition_point(|depth| depth.first <= at).checked_sub(1)?;
        let depth = self.settled.get(depth)?;
        depth.evals.get(at - depth.first).map(Cow::Owned)
    }

    /// Returns the newest eval.
    #[must_use]
    pub fn last(&self) -> Option<Cow<'_, Eval>> {
        self.get(self.len().checked_sub(1)?)
    }

    /// Iterates over all evals, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Cow<'_, Eval>> + Clone {
        let settled = self.settled.iter().flat_map(|depth| depth.evals.iter().map(Cow::Owned));
        settled.chain(self.open.iter().map(Cow::Borrowed))
    }

    /// Returns the evals from an index on that may still change.
    pub(super) fn unpacked_evals_from(&self, at: usize) -> &[Eval] {
        self.open.get(at.saturating_sub(self.packed_len())..).unwrap_or_default()
    }

    /// Returns the evals that may still change.
    pub(crate) fn unpacked_evals(&self) -> &[Eval] {
        &self.open
    }

    /// Returns the evals that may still change, mutably.
    pub(super) fn unpacked_evals_mut(&mut self) -> &mut [Eval] {
        &mut self.open
    }

    pub(crate) fn push(&mut self, eval: Eval) {
        self.open.push(eval);
    }

    /// Unpacks all evals and returns them mutably.
    pub fn unpack_all(&mut self) -> &mut Vec<Eval> {
        self.pack_depths(&[]);
        &mut self.open
    }

    /// Packs the evals of exactly these depths, the oldest ones, and unpacks all others.
    fn pack_depths(&mut self, behind: &[ClosedDepth]) {
        while self.settled.len() > behind.len() {
            let last = self.settled.pop();
            self.open.splice(..0, last.iter().flat_map(|depth| depth.evals.iter()));
        }
        for depth in behind.iter().skip(self.settled.len()) {
            let first = self.packed_len();
            let end = eval_index(depth.evals_end).unwrap_or_default();
            let count = end.saturating_sub(first).min(self.open.len());
            let evals = PackedEvals::from_evals(self.open.drain(..count));
            self.settled.push(PackedDepth { first, evals });
        }
        // When a run is loaded, all evals are unpacked at first.
        self.open.shrink_to_fit();
    }
}

/// Returns the index of an eval in the list, counted from 0.
pub(super) fn eval_index(id: EvalId) -> Option<usize> {
    usize::try_from(id.number().checked_sub(1)?).ok()
}

impl Facts {
    /// Returns an eval that may still change.
    pub(crate) fn unpacked_eval(&self, id: EvalId) -> Option<&Eval> {
        self.evals.open.get(eval_index(id)?.checked_sub(self.evals.packed_len())?)
    }

    /// Returns an eval that may still change, mutably.
    pub(crate) fn unpacked_eval_mut(&mut self, id: EvalId) -> Option<&mut Eval> {
        let at = eval_index(id)?.checked_sub(self.evals.packed_len())?;
        self.evals.open.get_mut(at)
    }

    /// Packs the evals of all closed depths, which no longer change. The last one is left out while
    /// its best become nodes.
    pub(crate) fn pack_closed_depths(&mut self) {
        let promoting = usize::from(matches!(self.phase, RunPhase::Promoting { .. }));
        let behind = self.closed.len().saturating_sub(promoting);
        self.evals.pack_depths(self.closed.get(..behind).unwrap_or_default());
    }
}

impl AsRef<Self> for Eval {
    fn as_ref(&self) -> &Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Idea;
    use crate::facts::Stage;
    use crate::group::EvalGroup;
    use crate::id::{Depth, NodeId, Sha256};
    use jiff::Timestamp;

    fn eval(number: u32) -> Eval {
        let digest = Sha256::hash_bytes(&number.to_le_bytes());
        let path = format!("node_ideas/0000/{number}.md").parse().expect("a path");
        let title = format!("idea {number}");
        Eval {
            id: EvalId::new(number),
            parent: NodeId::ROOT,
            group: EvalGroup::Tree,
            depth: Depth(0),
            idea: Idea { path, sha256: digest, fingerprint: digest, title, turn: Some(1) },
            attempt: 1,
            failures: Vec::new(),
            again: None,
            bills: Vec::new(),
            queued_at: Timestamp::UNIX_EPOCH,
            stage: Stage::SetAside,
        }
    }

    fn closed(evals_end: u32) -> ClosedDepth {
        let (expanded, beam) = (Vec::new(), Vec::new());
        ClosedDepth {
            expanded,
            evals_end: EvalId::new(evals_end),
            failed: 0,
            beam,
            cut_short: false,
        }
    }

    #[test]
    fn all_are_found_however_many_are_settled() {
        let all: Vec<Eval> = (1..=7).map(eval).collect();
        // The first and the third depth have no evals.
        let depths = [1, 4, 4, 7].map(closed);
        let mut step_by_step = EvalList::from(all.clone());
        for behind in (0..=depths.len()).chain([2, 0]) {
            let depths = depths.get(..behind).expect("so many");
            let settled = depths.last().and_then(|depth| eval_index(depth.evals_end)).unwrap_or(0);
            let mut at_once = EvalList::from(all.clone());
            at_once.pack_depths(depths);
            step_by_step.pack_depths(depths);
            assert_eq!(step_by_step, at_once, "{behind}");
            assert_eq!(at_once.unpacked_evals(), all.get(settled..).expect("the rest"), "{behind}");
            assert_eq!((at_once.len(), at_once.is_empty()), (7, false));
            assert!(at_once.iter().map(Cow::into_owned).eq(all.iter().cloned()), "{behind}");
            let back = at_once.iter().rev().map(Cow::into_owned);
            assert!(back.eq(all.iter().rev().cloned()), "{behind}");
            for (at, eval) in all.iter().enumerate() {
                assert_eq!(at_once.get(at).as_deref(), Some(eval), "{behind}");
            }
            assert_eq!(at_once.last().as_deref(), all.last());
            assert_eq!(at_once.get(7), None);
            assert_eq!(at_once.unpack_all(), &all);
        }
    }
}
