//! Lookups in the facts: nodes, evals, lineage, frontier, best node, spending. No decisions.

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
use crate::rank::{self, RankedCandidate};
use jiff::Timestamp;
use std::borrow::Cow;

impl Facts {
    /// Returns the node with this id.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(usize::try_from(id.number()).ok()?)
    }

    /// Returns the eval with this id.
    #[must_use]
    pub fn eval(&self, id: EvalId) -> Option<Cow<'_, Eval>> {
        self.evals.get(super::eval_list::eval_index(id)?)
    }

    /// Returns the id of the next node.
    #[must_use]
    pub fn next_node_id(&self) -> NodeId {
        NodeId::new(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX))
    }

    /// Returns the id of the next eval.
    #[must_use]
    pub fn next_eval_id(&self) -> EvalId {
        EvalId::new(u32::try_from(self.evals.len()).unwrap_or(u32::MAX - 1) + 1)
    }

    /// Returns the id of the first eval of the open depth, which may not exist yet.
    #[must_use]
    pub fn first_open_eval_id(&self) -> EvalId {
        self.closed.last().map_or(EvalId::FIRST, |closed| closed.evals_end)
    }

    /// Returns the evals of the open depth.
    #[must_use]
    pub fn open_evals(&self) -> &[Eval] {
        let first = self.first_open_eval_id();
        let first = usize::try_from(first.number() - 1).unwrap_or(usize::MAX);
        self.evals.unpacked_evals_from(first)
    }

    /// Returns true if the last closed depth has an eval in the tree.
    #[must_use]
    pub fn has_tried_at_last_depth(&self) -> bool {
        let before =
            self.closed.iter().rev().nth(1).map_or(EvalId::FIRST, |closed| closed.evals_end);
        let range = before.number()..self.first_open_eval_id().number();
        let mut evals = range.filter_map(|number| self.eval(EvalId::new(number)));
        evals.any(|eval| eval.group.is_tree())
    }

    /// Returns the nodes that were expanded at the open depth, in frontier order.
    pub fn expanded_at_open_depth(&self) -> impl Iterator<Item = NodeId> {
        self.frontier.iter().copied().filter(|id| self.is_expanded(*id))
    }

    /// Returns the nodes that are not expanded yet at the open depth, in frontier order.
    pub fn nodes_awaiting_ideas(&self) -> impl Iterator<Item = NodeId> {
        self.frontier.iter().copied().filter(|id| !self.is_expanded(*id))
    }

    fn is_expanded(&self, id: NodeId) -> bool {
        self.node(id).is_some_and(|node| node.is_expanded_at(self.depth))
    }

    /// Returns the frontier after the closed depths: the last promoted nodes, or else the root.
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

    /// Returns true if a budget stopped this step of the open depth.
    #[must_use]
    pub fn is_stopped_by_budget(&self, step: PaidStep) -> bool {
        self.reached_budget.as_ref().is_some_and(|reached| reached.refused.contains(&step))
    }

    /// Returns true if the deadline was reached, so that nothing new begins.
    #[must_use]
    pub fn is_past_deadline(&self) -> bool {
        self.reached_budget.as_ref().is_some_and(|reached| reached.budget == BudgetKind::Deadline)
    }

    /// Returns the time of the deadline, if there is one.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.limits.deadline.map(|deadline| deadline.to_timestamp(self.created_at))
    }

    /// Returns the ideas of an expansion, each once, in the order received: those that became
    /// evals, then those that the budget left untried.
    pub fn ideas_of(&self, expansion: &Expansion) -> impl Iterator<Item = Idea> {
        let untried: &[Idea] = match &expansion.ideas {
            ExpansionIdeas::Proposed { untried, .. } => untried,
            ExpansionIdeas::Asked | ExpansionIdeas::Failed { .. } => &[],
        };
        let evals = expansion.eval_ids().filter_map(|id| self.eval(*id));
        let last = evals.filter(|eval| !matches!(eval.stage, Stage::Superseded(..)));
        last.map(|eval| eval.idea.clone()).chain(untried.iter().cloned())
    }

    /// Returns the number of ideas to request for a node at the open depth: K, less the current
    /// evals of generated ideas it has there. Ideas that the user added do not count.
    #[must_use]
    pub fn wanted_idea_count(&self, node: &Node) -> u32 {
        let here = node.expansions.iter().filter(|expansion| expansion.depth == self.depth);
        let evals = here.flat_map(Expansion::eval_ids).filter_map(|id| self.eval(*id));
        let standing = evals.filter(|eval| eval.is_current() && eval.idea.turn.is_some()).count();
        let standing = u32::try_from(standing).unwrap_or(u32::MAX);
        self.settings.ideas_per_node.get().saturating_sub(standing)
    }

    /// Returns the number of depths to expand; with ideas of the user it is 1, or 0 without any.
    #[must_use]
    pub fn depth_limit(&self) -> u32 {
        self.user_ideas
            .as_ref()
            .map_or(self.limits.max_depth, |given| u32::from(!given.ideas.is_empty()))
    }

    /// Returns the number of candidates of a depth that are promoted: 0 with ideas of the user.
    #[must_use]
    pub fn max_promoted(&self) -> usize {
        match self.user_ideas {
            Some(_) => 0,
            None => usize::try_from(self.settings.beam_width.get()).unwrap_or(usize::MAX),
        }
    }

    /// Returns the results that a node's candidates are compared with: those of its own sweep.
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

    /// Returns a node and its ancestors, the node first and the root last.
    pub fn lineage(&self, id: NodeId) -> impl Iterator<Item = &Node> {
        std::iter::successors(self.node(id), |node| node.parent().and_then(|up| self.node(up)))
    }

    /// Returns the evals whose ideas led to a node, oldest first.
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

    /// Returns the number of submissions of a subject to the executor.
    #[must_use]
    pub fn submission_count(&self, subject: SweepSubject) -> u32 {
        self.history.submissions.get(&subject).copied().unwrap_or_default()
    }

    /// Returns true if a message was handled already. Only the last few are remembered: the file of
    /// an older one is long gone.
    #[must_use]
    pub fn has_handled_message(&self, message: &MessageId) -> bool {
        self.history.messages.contains(message)
    }

    /// Returns the depth after which the run has stopped at the user's request: nothing begins
    /// until the user resumes it.
    #[must_use]
    pub fn stopped_after(&self) -> Option<Depth> {
        self.history.stop_after.filter(|last| *last < self.depth && self.stop_reason().is_none())
    }

    /// Returns the depth after which the run will stop at the user's request.
    #[must_use]
    pub fn pending_stop_after(&self) -> Option<Depth> {
        self.history.stop_after.filter(|last| *last >= self.depth && self.stop_reason().is_none())
    }

    /// Returns true if the user holds the run, so that nothing new begins.
    #[must_use]
    pub fn is_held_by_user(&self) -> bool {
        self.history.paused_since.is_some() || self.stopped_after().is_some()
    }

    /// Returns the reason why the run is over, if it is.
    #[must_use]
    pub fn stop_reason(&self) -> Option<StopReason> {
        match self.phase {
            RunPhase::Stopped { reason, .. } => Some(reason),
            RunPhase::Measuring | RunPhase::Searching | RunPhase::Promoting { .. } => None,
        }
    }

    /// Returns the node with the highest rank score, the root counting as 0; ties go to the primary
    /// delta, then to the older node.
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
    /// Returns true if the eval counts: neither set aside nor evaluated again under another id.
    #[must_use]
    pub const fn is_current(&self) -> bool {
        !matches!(self.stage, Stage::Superseded(..) | Stage::SetAside)
    }

    /// Returns the candidate, from its commit on.
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

    /// Returns the results of the candidate's own sweep, once it has ended.
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

    /// Returns the candidate with its figures, once scored.
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

    /// Returns the verdict of the gate, once recorded.
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

    /// Returns the node or group that the eval's idea was generated for, or added to.
    #[must_use]
    pub const fn idea_source(&self) -> IdeaSource {
        match self.group {
            EvalGroup::Tree => IdeaSource::Node(self.parent),
            EvalGroup::Control => IdeaSource::Control,
        }
    }

    /// Returns the turn that brought the idea; `None` for control evals and ideas of the user.
    #[must_use]
    pub fn turn_id(&self) -> Option<TurnId> {
        let number = self.idea.turn.filter(|_| self.group.is_tree())?;
        Some(TurnId { node: self.parent, number })
    }

    /// Returns the failure of a candidate whose measurement failed in the attempt that made it.
    #[must_use]
    pub fn fresh_candidate_failure(&self) -> Option<&EvalFailure> {
        let Stage::Failed { work: Some(work), failure, .. } = &self.stage else { return None };
        (work.made_in == self.attempt).then_some(failure)
    }

    /// Returns the attempt that made the candidate, or the current one if there is no candidate.
    #[must_use]
    pub fn candidate_attempt(&self) -> u32 {
        self.candidate().map_or(self.attempt, |work| work.made_in)
    }

    /// Returns the bills of the replies of all attempts.
    #[must_use]
    pub fn total_spend(&self) -> RoleBills {
        self.bills.iter().collect()
    }

    /// Returns the bills of the replies of all attempts before this one.
    #[must_use]
    pub fn spend_before_attempt(&self) -> RoleBills {
        let before = usize::try_from(self.attempt.saturating_sub(1)).unwrap_or(usize::MAX);
        self.bills.iter().take(before).collect()
    }

    /// Returns the bills of the replies of the current or last attempt.
    #[must_use]
    pub fn spend_on_attempt(&self) -> Option<RoleBills> {
        self.bills.get(usize::try_from(self.attempt.checked_sub(1)?).ok()?).cloned()
    }
}

impl ScoredCandidate {
    /// Converts the score of an eval to what its rank depends on.
    #[must_use]
    pub fn into_ranked(self, eval: EvalId) -> RankedCandidate {
        let Self { work, scored, .. } = self;
        let (files_changed, tree) = (work.files_changed, work.tree);
        RankedCandidate { eval, vs_root: scored.vs_root, files_changed, tree }
    }
}

impl Node {
    /// Returns the bills of generating the node's ideas.
    #[must_use]
    pub fn total_spend(&self) -> RoleBills {
        self.expansions.iter().map(|expansion| &expansion.bills).collect()
    }
}

impl Facts {
    /// Returns the bills of all recorded replies.
    #[must_use]
    pub fn total_spend(&self) -> RoleBills {
        let asked = self.all_expansions().map(|(_, expansion)| &expansion.bills);
        self.evals.iter().fold(asked.collect(), |mut sum: RoleBills, eval| {
            sum += &eval.total_spend();
            sum
        })
    }

    /// Returns the bills of all recorded replies by the agents in place at the time, oldest first.
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
