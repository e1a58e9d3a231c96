//! How many more evals there is room for, in the tree and in the control group, and whether the control group waits for its
//! ideas. Nothing here decides.

use super::{Expansion, Facts, Ideas, Node};
use crate::group::{Group, IdeaSource};
use crate::id::Depth;
use crate::policy::Control;

impl Facts {
    /// How many more evals the budget allows the tree.
    #[must_use]
    pub fn room(&self) -> u32 {
        self.room_of(Group::Tree)
    }

    /// How many more evals the budget allows a group. Each has its own part, so that neither takes the other's.
    #[must_use]
    pub fn room_of(&self, group: Group) -> u32 {
        let Some(most) = self.reach.max_total_idea_evals else { return u32::MAX - 1 };
        let control = self.control_group().map_or(0, |control| control.part_of(most));
        let part = match group {
            Group::Tree => most - control,
            Group::Control => control,
        };
        part.saturating_sub(self.made(group))
    }

    /// How many evals a group has, those included that no longer count.
    fn made(&self, group: Group) -> u32 {
        let control: usize = self.control.iter().map(|expansion| expansion.evals().count()).sum();
        let made = match group {
            Group::Tree => self.evals.len() - control,
            Group::Control => control,
        };
        u32::try_from(made).unwrap_or(u32::MAX)
    }

    /// What the tree is compared with. Where the user gave the ideas, there is no tree.
    #[must_use]
    pub fn control_group(&self) -> Option<Control> {
        self.meaning.control.filter(|_| self.given.is_none())
    }

    /// How many ideas the control group is asked for at the open depth: what it lacks to have its part of all evals. The
    /// user's own ideas count from the next depth on, so that it does not matter when they came.
    #[must_use]
    pub fn control_wanted(&self) -> u32 {
        let Some(control) = self.control_group() else { return 0 };
        let frontier =
            self.frontier.iter().filter_map(|id| self.node(*id)?.expansion_at(self.depth));
        let added: usize = frontier.map(|expansion| expansion.added.len()).sum();
        let tree = self.made(Group::Tree).saturating_sub(u32::try_from(added).unwrap_or(u32::MAX));
        let lacking = control.beside(tree).saturating_sub(self.made(Group::Control));
        lacking.min(self.room_of(Group::Control))
    }

    /// What was asked for the control group at this depth.
    #[must_use]
    pub fn control_at(&self, depth: Depth) -> Option<&Expansion> {
        self.control.last().filter(|expansion| expansion.depth == depth)
    }

    /// Whether the control group has still to get its ideas at the open depth. Its turn comes after the nodes', so that
    /// their ids do not depend on it.
    #[must_use]
    pub fn control_waits(&self) -> bool {
        match self.control_at(self.depth) {
            Some(expansion) => expansion.ideas == Ideas::Asked,
            None => self.nodes_are_asked() && self.control_wanted() > 0,
        }
    }

    /// Whether anybody has still to get ideas at the open depth.
    #[must_use]
    pub fn waits_for_ideas(&self) -> bool {
        self.waiting_for_ideas().next().is_some() || self.control_waits()
    }

    /// Whether every node of the open depth has its ideas, as far as there is room for any.
    fn nodes_are_asked(&self) -> bool {
        self.room() == 0 || self.waiting_for_ideas().next().is_none()
    }

    /// What was asked at the open depth, if anything was.
    #[must_use]
    pub fn asked_at_open_depth(&self, source: IdeaSource) -> Option<&Expansion> {
        match source {
            IdeaSource::Node(id) => self.node(id)?.expansion_at(self.depth),
            IdeaSource::Control => self.control_at(self.depth),
        }
    }

    /// All that was asked for the tree and for the control group, the nodes' first.
    pub fn all_expansions(&self) -> impl Iterator<Item = (IdeaSource, &Expansion)> {
        let of = |node: &Node| IdeaSource::Node(node.id);
        let nodes = self.nodes.iter().flat_map(move |node| {
            node.expansions.iter().map(move |expansion| (of(node), expansion))
        });
        nodes.chain(self.control.iter().map(|expansion| (IdeaSource::Control, expansion)))
    }
}
