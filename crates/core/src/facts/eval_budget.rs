//! Remaining eval budget of the tree and of the control group, and whether ideas are still due.
//! Counts only, no decisions.

use super::{Expansion, ExpansionIdeas, Facts, Node};
use crate::group::{EvalGroup, IdeaSource};
use crate::id::Depth;
use crate::policy::ControlPolicy;

impl Facts {
    /// Returns the number of evals that the budget still allows the tree.
    #[must_use]
    pub fn remaining_evals(&self) -> u32 {
        self.remaining_evals_of(EvalGroup::Tree)
    }

    /// Returns the number of evals that the budget still allows a group. Each group has its own
    /// part, so that neither takes the other's.
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

    /// Counts the evals of a group, including those that no longer count.
    fn eval_count_of(&self, group: EvalGroup) -> u32 {
        let control: usize =
            self.control.iter().map(|expansion| expansion.eval_ids().count()).sum();
        let made = match group {
            EvalGroup::Tree => self.evals.len() - control,
            EvalGroup::Control => control,
        };
        u32::try_from(made).unwrap_or(u32::MAX)
    }

    /// Returns the policy of the control group; `None` with ideas of the user: there is no tree.
    #[must_use]
    pub fn control_policy(&self) -> Option<ControlPolicy> {
        self.settings.control.filter(|_| self.user_ideas.is_none())
    }

    /// Returns the number of ideas to request for the control group at the open depth: those it
    /// lacks for its share of all evals. Ideas that the user added count from the next depth on, so
    /// that the time they came does not matter.
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

    /// Returns the expansion of the control group at this depth.
    #[must_use]
    pub fn control_expansion_at(&self, depth: Depth) -> Option<&Expansion> {
        self.control.last().filter(|expansion| expansion.depth == depth)
    }

    /// Returns true if the control group still needs ideas at the open depth. Its turn comes after
    /// the nodes', so that their ids do not depend on it.
    #[must_use]
    pub fn is_control_awaiting_ideas(&self) -> bool {
        match self.control_expansion_at(self.depth) {
            Some(expansion) => expansion.ideas == ExpansionIdeas::Asked,
            None => self.are_nodes_expanded() && self.wanted_control_ideas() > 0,
        }
    }

    /// Returns true if a node or the control group still needs ideas at the open depth.
    #[must_use]
    pub fn is_awaiting_ideas(&self) -> bool {
        self.nodes_awaiting_ideas().next().is_some() || self.is_control_awaiting_ideas()
    }

    /// Returns true if every node of the open depth has its ideas, or there is no budget for any.
    fn are_nodes_expanded(&self) -> bool {
        self.remaining_evals() == 0 || self.nodes_awaiting_ideas().next().is_none()
    }

    /// Returns the expansion of a source at the open depth, if there is one.
    #[must_use]
    pub fn open_depth_expansion(&self, source: IdeaSource) -> Option<&Expansion> {
        match source {
            IdeaSource::Node(id) => self.node(id)?.expansion_at(self.depth),
            IdeaSource::Control => self.control_expansion_at(self.depth),
        }
    }

    /// Returns all expansions of the tree and of the control group, the nodes' first.
    pub fn all_expansions(&self) -> impl Iterator<Item = (IdeaSource, &Expansion)> {
        let of = |node: &Node| IdeaSource::Node(node.id);
        let nodes = self.nodes.iter().flat_map(move |node| {
            node.expansions.iter().map(move |expansion| (of(node), expansion))
        });
        nodes.chain(self.control.iter().map(|expansion| (IdeaSource::Control, expansion)))
    }
}
