//! What may be removed of a run that nobody drives: what it has left behind, and what a user asks for. What an eval under
//! way needs is never part of it. Nothing here looks at a disk.

use crate::event::{Leftover, LeftoverKind};
use crate::facts::{Baseline, Facts, Removal};
use crate::id::{NodeId, Place};

/// What the run wanted to be gone long ago, or at the next opportunity.
#[must_use]
pub fn overdue(facts: &Facts) -> Vec<Leftover> {
    let unwanted = |removal: &Removal| match removal {
        Removal::Kept => false,
        Removal::Due | Removal::Deferred { .. } => true,
    };
    let leftovers = facts.leftovers.iter().filter(|(_, removal)| unwanted(removal));
    leftovers.map(|(leftover, _)| *leftover).collect()
}

/// What a user who wants all of this kind gone can ask for: what nodes have, and what candidates were allowed to keep.
#[must_use]
pub fn on_request(facts: &Facts, kind: LeftoverKind) -> Vec<Leftover> {
    let kept = facts.leftovers.iter().filter(|(_, removal)| **removal == Removal::Kept);
    let kept = kept.map(|(leftover, _)| *leftover).filter(|leftover| leftover.kind == kind);
    let nodes = facts.nodes.iter().map(|node| Leftover { place: Place::Node(node.id), kind });
    let there =
        |leftover: &Leftover| facts.has(*leftover) && !facts.leftovers.contains_key(leftover);
    nodes.filter(there).chain(kept).collect()
}

impl Facts {
    /// Whether a node has its worktree or its ref: the root gets both when it is measured.
    #[must_use]
    pub fn has(&self, leftover: Leftover) -> bool {
        let Place::Node(id) = leftover.place else { return false };
        let measured = matches!(self.baseline, Baseline::Measured { .. });
        let made = self.node(id).is_some() && (id != NodeId::ROOT || measured);
        made && leftover.kind != LeftoverKind::Dir && !self.removed.contains(&leftover)
    }

    /// Whether nothing under way needs it, and it is not known to be gone.
    pub(crate) fn may_be_removed(&self, leftover: Leftover) -> bool {
        self.has(leftover) || self.leftovers.contains_key(&leftover)
    }
}
