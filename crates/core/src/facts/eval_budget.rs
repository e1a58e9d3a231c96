//! How many more evals there is room for, in the tree and in the control group, and whether the control group waits for its
//! ideas. Nothing here decides.

use super::{Expansion, ExpansionIdeas, Facts, Node};
use crate::group::{EvalGroup, IdeaSource};
use crate::id::Depth;
use crate::policy::ControlPolicy;

impl Facts {
    /// How many more evals the budget allows the tree.
    #[must_use]
    pub fn remaining_evals(&self) -> u32 {
        self.remaining_evals_of(EvalGroup::Tree)
    }

    /// How many more evals the budget allows a group. Each has its own part, so that neither takes the other's.
    #[must_use]
    pub fn remaining_evals_of(&self, group: EvalGroup) -> u32 {
        let Some(most) = self.limits.max_total_idea_evals else { return u32::MAX - 1 };
        let control = self.control_policy().map_or(0, |control| control.control_part_of(most));
        let part = match group {
            EvalGroup::Tree => most - control,
            EvalGroup::Control => control,
        };
        part.saturating_sub(self.eval_count_of(group))
    }

    /// How many evals a group has, those included that no longer count.
    fn eval_count_of(&self, group: EvalGroup) -> u32 {
        let control: usize =
            self.control.iter().map(|expansion| expansion.eval_ids().count()).sum();
        let made = match group {
            EvalGroup::Tree => self.evals.len() - control,
            EvalGroup::Control => control,
        };
        u32::try_from(made).unwrap_or(u32::MAX)
    }

    /// What the tree is compared with. Where the user gave the ideas, there is no tree.
    #[must_use]
    pub fn control_policy(&self) -> Option<ControlPolicy> {
        self.settings.control.filter(|_| self.user_ideas.is_none())
    }

    /// How many ideas the control group is asked for at the open depth: what it lacks to have its part of all evals. The
    /// user's own ideas count from the next depth on, so that it does not matter when they came.
    #[must_use]
    pub fn wanted_control_ideas(&self) -> u32 {
        let Some(control) = self.control_policy() else { return 0 };
        let frontier =
            self.frontier.iter().filter_map(|id| self.node(*id)?.expansion_at(self.depth));
        let added: usize = frontier.map(|expansion| expansion.added.len()).sum();
        let tree = self
            .eval_count_of(EvalGroup::Tree)
            .saturating_sub(u32::try_from(added).unwrap_or(u32::MAX));
        let lacking =
            control.control_beside(tree).saturating_sub(self.eval_count_of(EvalGroup::Control));
        lacking.min(self.remaining_evals_of(EvalGroup::Control))
    }

    /// What was asked for the control group at this depth.
    #[must_use]
    pub fn control_expansion_at(&self, depth: Depth) -> Option<&Expansion> {
        self.control.last().filter(|expansion| expansion.depth == depth)
    }

    /// Whether the control group has still to get its ideas at the open depth. Its turn comes after the nodes', so that
    /// their ids do not depend on it.
    #[must_use]
    pub fn is_control_awaiting_ideas(&self) -> bool {
        match self.control_expansion_at(self.depth) {
            Some(expansion) => expansion.ideas == ExpansionIdeas::Asked,
            None => self.are_nodes_expanded() && self.wanted_control_ideas() > 0,
        }
    }

    /// Whether anybody has still to get ideas at the open depth.
    #[must_use]
    pub fn is_awaiting_ideas(&self) -> bool {
        self.nodes_awaiting_ideas().next().is_some() || self.is_control_awaiting_ideas()
    }

    /// Whether every node of the open depth has its ideas, as far as there is room for any.
    fn are_nodes_expanded(&self) -> bool {
        self.remaining_evals() == 0 || self.nodes_awaiting_ideas().next().is_none()
    }

    /// What was asked at the open depth, if anything was.
    #[must_use]
    pub fn open_depth_expansion(&self, source: IdeaSource) -> Option<&Expansion> {
        match source {
            IdeaSource::Node(id) => self.node(id)?.expansion_at(self.depth),
            IdeaSource::Control => self.control_expansion_at(self.depth),
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
