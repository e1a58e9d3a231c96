//! Removable parts of a run that no process drives: its leftovers, and what a user wants removed.
//! Never includes what a running eval needs. The disk is not read here.

use crate::event::{Leftover, LeftoverKind};
use crate::facts::{Facts, RemovalState, RootBaseline};
use crate::id::{CodePlace, NodeId};

/// Returns the leftovers whose removal is due or deferred.
#[must_use]
pub fn overdue_leftovers(facts: &Facts) -> Vec<Leftover> {
    let unwanted = |removal: &RemovalState| match removal {
        RemovalState::Kept => false,
        RemovalState::Due | RemovalState::Deferred { .. } => true,
    };
    let leftovers = facts.leftovers.iter().filter(|(_, removal)| unwanted(removal));
    leftovers.map(|(leftover, _)| *leftover).collect()
}

/// Returns what a user can have removed of this kind: that of nodes, and what candidates were
/// allowed to keep. A removed worktree may exist again, made for an agent to work in, which is not
/// recorded: `is_there_again` checks that.
#[must_use]
pub fn removable_on_request(
    facts: &Facts,
    kind: LeftoverKind,
    is_there_again: impl Fn(Leftover) -> bool,
) -> Vec<Leftover> {
    let kept = facts.leftovers.iter().filter(|(_, removal)| **removal == RemovalState::Kept);
    let kept = kept.map(|(leftover, _)| *leftover).filter(|leftover| leftover.kind == kind);
    let nodes = facts.nodes.iter().map(|node| Leftover { place: CodePlace::Node(node.id), kind });
    let has = |leftover: Leftover| {
        facts.has_leftover(leftover)
            || facts.removed.contains(&leftover) && is_there_again(leftover)
    };
    let there = |leftover: &Leftover| has(*leftover) && !facts.leftovers.contains_key(leftover);
    nodes.filter(there).chain(kept).collect()
}

impl Facts {
    /// Returns true if a node has its worktree or its ref: the root gets both when it is measured.
    #[must_use]
    pub fn has_leftover(&self, leftover: Leftover) -> bool {
        let CodePlace::Node(id) = leftover.place else { return false };
        let measured = matches!(self.baseline, RootBaseline::Measured { .. });
        let made = self.node(id).is_some() && (id != NodeId::ROOT || measured);
        made && leftover.kind != LeftoverKind::Dir && !self.removed.contains(&leftover)
    }

    /// Returns true if nothing running needs it, and the run has it or had it: it may exist again.
    pub(crate) fn can_be_removed(&self, leftover: Leftover) -> bool {
        let had = self.removed.contains(&leftover);
        self.has_leftover(leftover) || had || self.leftovers.contains_key(&leftover)
    }
}
