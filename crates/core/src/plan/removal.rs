//! What may be removed of a run that nobody drives: what it has left behind, and what a user asks for. What an eval under
//! way needs is never part of it. Nothing here looks at a disk.

use crate::event::{Leftover, LeftoverKind};
use crate::facts::{Facts, RemovalState, RootBaseline};
use crate::id::{CodePlace, NodeId};

/// What the run wanted to be gone long ago, or at the next opportunity.
#[must_use]
pub fn overdue_leftovers(facts: &Facts) -> Vec<Leftover> {
    let unwanted = |removal: &RemovalState| match removal {
        RemovalState::Kept => false,
        RemovalState::Due | RemovalState::Deferred { .. } => true,
    };
    let leftovers = facts.leftovers.iter().filter(|(_, removal)| unwanted(removal));
    leftovers.map(|(leftover, _)| *leftover).collect()
}

/// What a user who wants all of this kind gone can ask for: what nodes have, and what candidates were allowed to keep. What was
/// removed may have been made anew for an agent to work in, which is not on record: the caller says what is there again.
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
    /// Whether a node has its worktree or its ref: the root gets both when it is measured.
    #[must_use]
    pub fn has_leftover(&self, leftover: Leftover) -> bool {
        let CodePlace::Node(id) = leftover.place else { return false };
        let measured = matches!(self.baseline, RootBaseline::Measured { .. });
        let made = self.node(id).is_some() && (id != NodeId::ROOT || measured);
        made && leftover.kind != LeftoverKind::Dir && !self.removed.contains(&leftover)
    }

    /// Whether nothing under way needs it, and the run has it or had it: it may have been made anew.
    pub(crate) fn can_be_removed(&self, leftover: Leftover) -> bool {
        let had = self.removed.contains(&leftover);
        self.has_leftover(leftover) || had || self.leftovers.contains_key(&leftover)
    }
}
