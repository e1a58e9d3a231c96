//! What can be looked up in the facts: nodes, evals, lineage, frontier, the best node. Nothing here decides.

use super::{
    Candidate, CandidateFate, Eval, Expansion, ExpansionIdeas, Facts, Node, NodeOrigin,
    RootBaseline, RunPhase, ScoredCandidate, Stage,
};
use crate::bill::RoleBills;
use crate::event::{BudgetKind, EvalFailure, Idea, MessageId, PaidStep, StopReason, SweepSubject};
use crate::evidence::Artifact;
use crate::gate::GateVerdict;
use crate::group::{EvalGroup, IdeaSource};
use crate::id::{Depth, EvalId, NodeId, TurnId};
use crate::num::Finite;
use crate::policy::RecordedAgents;
use crate::rank;
use jiff::Timestamp;
use std::borrow::Cow;

impl Facts {
    /// A node, if there is one of that name.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(usize::try_from(id.number()).ok()?)
    }

    /// An eval, if there is one of that name.
    #[must_use]
    pub fn eval(&self, id: EvalId) -> Option<Cow<'_, Eval>> {
        self.evals.get(super::eval_list::eval_index(id)?)
    }

    /// The id that the next node gets.
    #[must_use]
    pub fn next_node_id(&self) -> NodeId {
        NodeId::new(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX))
    }

    /// The id that the next eval gets.
    #[must_use]
    pub fn next_eval_id(&self) -> EvalId {
        EvalId::new(u32::try_from(self.evals.len()).unwrap_or(u32::MAX - 1) + 1)
    }

    /// The id of the open depth's first eval, whether it is there yet or not.
    #[must_use]
    pub fn first_open_eval_id(&self) -> EvalId {
        self.closed.last().map_or(EvalId::FIRST, |closed| closed.evals_end)
    }

    /// The evals of the open depth.
    #[must_use]
    pub fn open_evals(&self) -> &[Eval] {
        let first = self.first_open_eval_id();
        let first = usize::try_from(first.number() - 1).unwrap_or(usize::MAX);
        self.evals.unpacked_evals_from(first)
    }

    /// Whether an idea was tried in the tree at the last depth that is closed.
    #[must_use]
    pub fn has_tried_at_last_depth(&self) -> bool {
        let before =
            self.closed.iter().rev().nth(1).map_or(EvalId::FIRST, |closed| closed.evals_end);
        let range = before.number()..self.first_open_eval_id().number();
        let mut evals = range.filter_map(|number| self.eval(EvalId::new(number)));
        evals.any(|eval| eval.group.is_tree())
    }

    /// The nodes that were expanded at the open depth, in frontier order.
    pub fn expanded_at_open_depth(&self) -> impl Iterator<Item = NodeId> {
        self.frontier.iter().copied().filter(|id| self.is_expanded(*id))
    }

    /// The nodes that still have to be expanded at the open depth, in frontier order.
    pub fn nodes_awaiting_ideas(&self) -> impl Iterator<Item = NodeId> {
        self.frontier.iter().copied().filter(|id| !self.is_expanded(*id))
    }

    fn is_expanded(&self, id: NodeId) -> bool {
        self.node(id).is_some_and(|node| node.is_expanded_at(self.depth))
    }

    /// The frontier after the closed depths: what the last depth that promoted anything promoted, or else the root.
    #[must_use]
    pub fn promoted_frontier(&self) -> Vec<NodeId> {
        let promoted = |eval: &EvalId| {
            let Stage::Decided(_, _, CandidateFate::Promoted(node)) = self.eval(*eval)?.stage
            else {
                return None;
            };
            Some(node)
        };
        let last = self.closed.iter().rev().find(|closed| !closed.beam.is_empty());
        last.map_or_else(
            || vec![NodeId::ROOT],
            |closed| closed.beam.iter().filter_map(promoted).collect(),
        )
    }

    /// Whether a budget stopped this step of the open depth.
    #[must_use]
    pub fn is_stopped_by_budget(&self, step: PaidStep) -> bool {
        self.reached_budget.as_ref().is_some_and(|reached| reached.refused.contains(&step))
    }

    /// Whether the time is over, so that nothing begins any more.
    #[must_use]
    pub fn is_past_deadline(&self) -> bool {
        self.reached_budget.as_ref().is_some_and(|reached| reached.budget == BudgetKind::Deadline)
    }

    /// When the time is over, if it ever is.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.limits.deadline.map(|deadline| deadline.to_timestamp(self.created_at))
    }

    /// The ideas that came of an expansion, each once, in the order in which they came: those that got an id, then those
    /// that the budget left untried.
    pub fn ideas_of(&self, expansion: &Expansion) -> impl Iterator<Item = Idea> {
        let untried: &[Idea] = match &expansion.ideas {
            ExpansionIdeas::Proposed { untried, .. } => untried,
            ExpansionIdeas::Asked | ExpansionIdeas::Failed { .. } => &[],
        };
        let evals = expansion.eval_ids().filter_map(|id| self.eval(*id));
        let last = evals.filter(|eval| !matches!(eval.stage, Stage::Superseded(..)));
        last.map(|eval| eval.idea.clone()).chain(untried.iter().cloned())
    }

    /// How many ideas a node is asked for at the open depth: K, less those that it has there and that stand. The user's
    /// own come on top.
    #[must_use]
    pub fn wanted_idea_count(&self, node: &Node) -> u32 {
        let here = node.expansions.iter().filter(|expansion| expansion.depth == self.depth);
        let evals = here.flat_map(Expansion::eval_ids).filter_map(|id| self.eval(*id));
        let standing = evals.filter(|eval| eval.is_current() && eval.idea.turn.is_some()).count();
        let standing = u32::try_from(standing).unwrap_or(u32::MAX);
        self.settings.ideas_per_node.get().saturating_sub(standing)
    }

    /// How many depths are expanded: one for ideas that the user gave, none where there are none of these.
    #[must_use]
    pub fn depth_limit(&self) -> u32 {
        self.user_ideas
            .as_ref()
            .map_or(self.limits.max_depth, |given| u32::from(!given.ideas.is_empty()))
    }

    /// How many candidates of a depth are promoted: none where the user gave the ideas.
    #[must_use]
    pub fn max_promoted(&self) -> usize {
        match self.user_ideas {
            Some(_) => 0,
            None => usize::try_from(self.settings.beam_width.get()).unwrap_or(usize::MAX),
        }
    }

    /// A node's own sweep: what its candidates are compared with.
    #[must_use]
    pub fn baseline_of(&self, node: &Node) -> Option<Artifact> {
        match node.origin {
            NodeOrigin::Root => match &self.baseline {
                RootBaseline::Measured { results, parent, .. } => {
                    Some(parent.as_ref().unwrap_or(results).clone())
                }
                RootBaseline::Unmeasured | RootBaseline::Refused { .. } => None,
            },
            NodeOrigin::Promoted { from, .. } => self.eval(from)?.results(),
        }
    }

    /// A node and what led to it, the node first and the root last.
    pub fn lineage(&self, id: NodeId) -> impl Iterator<Item = &Node> {
        std::iter::successors(self.node(id), |node| node.parent().and_then(|up| self.node(up)))
    }

    /// The ideas that led to a node, the first one first.
    #[must_use]
    pub fn idea_chain(&self, id: NodeId) -> Vec<Cow<'_, Eval>> {
        let mut chain: Vec<_> = self
            .lineage(id)
            .filter_map(|node| match node.origin {
                NodeOrigin::Root => None,
                NodeOrigin::Promoted { from, .. } => self.eval(from),
            })
            .collect();
        chain.reverse();
        chain
    }

    /// How often this was submitted to the executor.
    #[must_use]
    pub fn submission_count(&self, subject: SweepSubject) -> u32 {
        self.history.submissions.get(&subject).copied().unwrap_or_default()
    }

    /// Whether a message was acted upon already. Only the last few are remembered: its file is gone long before that.
    #[must_use]
    pub fn has_handled_message(&self, message: &MessageId) -> bool {
        self.history.messages.contains(message)
    }

    /// The depth after which the run has stopped, because the user wants it so: nothing begins until somebody goes on.
    #[must_use]
    pub fn stopped_after(&self) -> Option<Depth> {
        self.history.stop_after.filter(|last| *last < self.depth && self.stop_reason().is_none())
    }

    /// The depth after which it will stop, because the user wants it so.
    #[must_use]
    pub fn pending_stop_after(&self) -> Option<Depth> {
        self.history.stop_after.filter(|last| *last >= self.depth && self.stop_reason().is_none())
    }

    /// Whether nothing begins, because the user wants it so.
    #[must_use]
    pub fn is_held_by_user(&self) -> bool {
        self.history.paused_since.is_some() || self.stopped_after().is_some()
    }

    /// Why the run is over, if it is.
    #[must_use]
    pub fn stop_reason(&self) -> Option<StopReason> {
        match self.phase {
            RunPhase::Stopped { reason, .. } => Some(reason),
            RunPhase::Measuring | RunPhase::Searching | RunPhase::Promoting { .. } => None,
        }
    }

    /// The node with the highest rank score, the root counting as 0; ties go to the primary delta, then to the older node.
    #[must_use]
    pub fn best_node(&self) -> NodeId {
        let mut best = (Finite::ZERO, Some(Finite::ZERO), NodeId::ROOT);
        for node in &self.nodes {
            let NodeOrigin::Promoted { from, .. } = node.origin else { continue };
            let Some(measured) = self.eval(from).and_then(|eval| eval.scored_candidate()) else {
                continue;
            };
            let vs_root = &measured.scored.vs_root;
            let Some(score) = rank::rank_score(vs_root) else { continue };
            if (score, vs_root.primary_delta) > (best.0, best.1) {
                best = (score, vs_root.primary_delta, node.id);
            }
        }
        best.2
    }
}

impl Eval {
    /// Whether it counts: it was neither set aside nor evaluated again under another id.
    #[must_use]
    pub const fn is_current(&self) -> bool {
        !matches!(self.stage, Stage::Superseded(..) | Stage::SetAside)
    }

    /// The candidate, from its commit on.
    #[must_use]
    pub fn candidate(&self) -> Option<Candidate> {
        match &self.stage {
            Stage::Queued | Stage::Implementing(_) | Stage::Unfinished { .. } | Stage::SetAside => {
                None
            }
            Stage::Implemented(work) | Stage::Sweeping(work) | Stage::Swept(work, _) => {
                Some((**work).clone())
            }
            Stage::Scored(measured)
            | Stage::Decided(measured, ..)
            | Stage::Superseded(measured, _) => Some(measured.work.clone()),
            Stage::Failed { work, .. } => work.as_deref().cloned(),
        }
    }

    /// The candidate's own sweep, from its end on.
    #[must_use]
    pub fn results(&self) -> Option<Artifact> {
        match &self.stage {
            Stage::Swept(_, results) => Some((**results).clone()),
            Stage::Scored(measured)
            | Stage::Decided(measured, ..)
            | Stage::Superseded(measured, _) => Some(measured.results.clone()),
            Stage::Queued
            | Stage::Implementing(_)
            | Stage::Implemented(_)
            | Stage::Sweeping(_)
            | Stage::Failed { .. }
            | Stage::Unfinished { .. }
            | Stage::SetAside => None,
        }
    }

    /// The candidate with its figures, from its score on.
    #[must_use]
    pub fn scored_candidate(&self) -> Option<ScoredCandidate> {
        match &self.stage {
            Stage::Scored(measured)
            | Stage::Decided(measured, ..)
            | Stage::Superseded(measured, _) => Some((**measured).clone()),
            Stage::Queued
            | Stage::Implementing(_)
            | Stage::Implemented(_)
            | Stage::Sweeping(_)
            | Stage::Swept(..)
            | Stage::Failed { .. }
            | Stage::Unfinished { .. }
            | Stage::SetAside => None,
        }
    }

    /// The gate's word on it, once it is recorded.
    #[must_use]
    pub fn gate_verdict(&self) -> Option<GateVerdict> {
        match &self.stage {
            Stage::Decided(measured, word, _) => Some(word.to_verdict(measured)),
            Stage::Queued
            | Stage::Implementing(_)
            | Stage::Implemented(_)
            | Stage::Sweeping(_)
            | Stage::Swept(..)
            | Stage::Scored(_)
            | Stage::Failed { .. }
            | Stage::Unfinished { .. }
            | Stage::Superseded(..)
            | Stage::SetAside => None,
        }
    }

    /// What its idea was asked for, or added to.
    #[must_use]
    pub const fn idea_source(&self) -> IdeaSource {
        match self.group {
            EvalGroup::Tree => IdeaSource::Node(self.parent),
            EvalGroup::Control => IdeaSource::Control,
        }
    }

    /// The turn of its node's conversation that brought it. The control group has no conversation.
    #[must_use]
    pub fn turn_id(&self) -> Option<TurnId> {
        let number = self.idea.turn.filter(|_| self.group.is_tree())?;
        Some(TurnId { node: self.parent, number })
    }

    /// Why a candidate could not be measured, where that was tried in one attempt only.
    #[must_use]
    pub fn fresh_candidate_failure(&self) -> Option<&EvalFailure> {
        let Stage::Failed { work: Some(work), failure, .. } = &self.stage else { return None };
        (work.made_in == self.attempt).then_some(failure)
    }

    /// The attempt whose questions and answers brought the candidate, or the one under way where there is none.
    #[must_use]
    pub fn candidate_attempt(&self) -> u32 {
        self.candidate().map_or(self.attempt, |work| work.made_in)
    }

    /// What the answers took, all attempts together.
    #[must_use]
    pub fn total_spend(&self) -> RoleBills {
        self.bills.iter().collect()
    }

    /// What the answers of the attempts before this one took.
    #[must_use]
    pub fn spend_before_attempt(&self) -> RoleBills {
        let before = usize::try_from(self.attempt.saturating_sub(1)).unwrap_or(usize::MAX);
        self.bills.iter().take(before).collect()
    }

    /// What the answers of the attempt that is under way, or was the last, took.
    #[must_use]
    pub fn spend_on_attempt(&self) -> Option<RoleBills> {
        self.bills.get(usize::try_from(self.attempt.checked_sub(1)?).ok()?).cloned()
    }
}

impl Node {
    /// What asking for its ideas took.
    #[must_use]
    pub fn total_spend(&self) -> RoleBills {
        self.expansions.iter().map(|expansion| &expansion.bills).collect()
    }
}

impl Facts {
    /// What all answers took that are on record.
    #[must_use]
    pub fn total_spend(&self) -> RoleBills {
        let asked = self.all_expansions().map(|(_, expansion)| &expansion.bills);
        self.evals.iter().fold(asked.collect(), |mut sum: RoleBills, eval| {
            sum += &eval.total_spend();
            sum
        })
    }

    /// The same by who was set when it was put on record, the first ones first.
    #[must_use]
    pub fn spend_by_agents(&self) -> Vec<(&RecordedAgents, RoleBills)> {
        let former = self.former_agents.iter().map(|former| (&former.agents, former.spent.clone()));
        let mut before = RoleBills::default();
        let share = |(agents, spent): (_, RoleBills)| {
            let share = spent.spent_since(&before);
            before = spent;
            (agents, share)
        };
        former.chain([(&self.agents, self.total_spend())]).map(share).collect()
    }
}
