//! The fold: applies each event to the state and refuses events that cannot follow. Repeated work
//! and the close of a depth are in [`mod@redo`] and [`mod@close`].

mod bills;
mod budget;
mod close;
mod redo;
mod rules;
mod scored;
mod stage_times;
mod user_request;

use super::{State, removal_key};
use crate::bill::RoleBills;
use crate::conversation::Turn;
use crate::event::{
    EvalFailure, Event, Idea, IdeasProposed, Leftover, LeftoverKind, PaidStep, StopReason,
    SweepSubject,
};
use crate::facts::{
    Candidate, Eval, Expansion, ExpansionIdeas, FormerAgents, Node, RemovalState, RootBaseline,
    RunPhase, Stage, StoredContext,
};
use crate::group::IdeaSource;
use crate::id::{CodePlace, EvalId, NodeId};
use crate::policy::{RecordedAgents, RunLimits};
use jiff::Timestamp;

/// Error for an event that cannot follow the ones before it, or for contradictory facts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the record contradicts itself: {0}")]
pub struct StateError(String);

impl StateError {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// Returns the removal state of something that is no longer used: kept or due.
fn removal_unless_kept(keep: bool) -> RemovalState {
    if keep { RemovalState::Kept } else { RemovalState::Due }
}

fn state_error<T>(why: impl Into<String>) -> Result<T, StateError> {
    Err(StateError::new(why))
}

impl State {
    /// Applies an event. This is the only mutation of the state.
    ///
    /// # Errors
    /// If the event cannot follow; the state must not be used any further then.
    pub fn apply(&mut self, event: &Event) -> Result<(), StateError> {
        match event {
            Event::RunStarted(_) => state_error("a run starts twice"),
            Event::StepStarted { step, attempt, at } => self.step_started(*step, *attempt, *at),
            Event::RootMeasured { .. } => self.root_measured(event),
            Event::RootRefused { why } => self.root_refused(why),
            Event::IdeasProposed(proposed) => self.ideas_proposed(proposed),
            Event::ProposalFailed { source, why, turns, bills, conversation, .. } => {
                let ideas = ExpansionIdeas::Failed { why: why.clone(), turns: *turns };
                self.proposal_failed(*source, ideas, bills, conversation)
            }
            Event::Implemented { .. } => self.candidate_committed(event),
            Event::SweepSubmitted { subject, submission } => {
                self.sweep_submitted(*subject, *submission)
            }
            Event::Swept { eval, results, .. } => {
                let Stage::Sweeping(work) = &self.eval_stage(*eval)? else {
                    return state_error(format!("eval {eval} was swept, but not submitted"));
                };
                let swept = Stage::Swept(work.clone(), Box::new(results.clone()));
                self.enter_stage(*eval, swept)
            }
            Event::Scored { eval, scored, same_code_as, at } => {
                self.candidate_scored(*eval, scored, *same_code_as, *at)
            }
            Event::EvalFailed { eval, failure, bills, at } => {
                self.facts.history.suspects.remove(eval);
                self.charge_attempt(*eval, bills)?;
                self.eval_failed(*eval, failure, *at)
            }
            Event::AttemptFailed { eval, attempt, failure, bills, .. } => {
                self.facts.history.suspects.remove(eval);
                self.attempt_failed(*eval, *attempt, failure, bills)
            }
            Event::BudgetReached { budget, step, bills } => {
                self.budget_reached(*budget, *step, bills)
            }
            Event::DeadlinePassed { .. } => self.deadline_passed(),
            Event::SentBack(sent) => self.sent_back(sent),
            Event::FilesRecorded(_) => Ok(()),
            Event::ArtifactsRestored(restored) => {
                self.facts.history.suspects.extend(&restored.suspects);
                Ok(())
            }
            Event::DepthClosed { depth, verdicts, beam, cut_short } => {
                self.depth_closed(*depth, verdicts, beam, *cut_short)
            }
            Event::NodeAdded { node, from, at } => self.node_added(*node, *from, *at),
            Event::PromotionFailed { .. } => {
                self.facts.history.promotion_failures += 1;
                Ok(())
            }
            Event::Discarded { leftover } => self.leftover_discarded(*leftover),
            Event::RemovalAsked { leftovers } => self.removal_asked(leftovers),
            Event::DiscardDeferred { leftover, why, retry_at } => {
                self.discard_deferred(*leftover, why, *retry_at)
            }
            Event::AgentsChanged { agents } => {
                self.agents_changed(agents);
                Ok(())
            }
            Event::RulesChanged { rules_version } => self.rules_changed(*rules_version),
            Event::SettingsChanged { reach: limits } => {
                self.settings_changed(limits);
                Ok(())
            }
            Event::LockTakenOver { .. } => {
                self.facts.history.lock_takeovers += 1;
                Ok(())
            }
            Event::JournalRestored { .. } => {
                self.facts.history.journal_restorations += 1;
                Ok(())
            }
            Event::Asked { wish, message, at } => {
                self.request_received(*wish, message.as_ref(), *at)
            }
            Event::IdeaAdded(added) => self.idea_added(added),
            Event::IdeaRefused { message, .. } => self.remember_message(message),
            Event::Stopped { reason, at } => self.run_stopped(*reason, *at),
        }
    }

    fn run_stopped(&mut self, reason: StopReason, at: Timestamp) -> Result<(), StateError> {
        let unmeasured = self.facts.phase == RunPhase::Measuring && reason == StopReason::Deadline;
        if self.facts.phase != RunPhase::Searching && !unmeasured {
            return state_error("the run stops in the middle of something");
        }
        if reason == StopReason::EmptyFrontier {
            self.facts.frontier.clear();
        }
        self.facts.phase = RunPhase::Stopped { reason, at };
        self.facts.history.stop_after = None;
        Ok(())
    }

    fn step_started(
        &mut self,
        step: PaidStep,
        attempt: u32,
        at: Timestamp,
    ) -> Result<(), StateError> {
        match step {
            PaidStep::Propose(source) => {
                let depth = self.facts.depth;
                let is_due = match source {
                    IdeaSource::Node(id) => self.facts.frontier.contains(&id),
                    IdeaSource::Control => self.facts.is_control_awaiting_ideas(),
                };
                if !is_due || self.facts.open_depth_expansion(source).is_some() {
                    return state_error(format!(
                        "`{source}` is not to be expanded at depth {depth}"
                    ));
                }
                let expansions = self.expansions_mut(source)?;
                // A node rarely has a second expansion.
                expansions.reserve_exact(1);
                expansions.push(Expansion::new(depth, at));
                Ok(())
            }
            PaidStep::Implement(id) => {
                if !matches!(self.eval_stage(id)?, Stage::Queued)
                    || self.eval_mut(id)?.attempt != attempt
                {
                    return state_error(format!(
                        "attempt {attempt} of eval {id} starts out of turn"
                    ));
                }
                self.enter_stage(id, Stage::Implementing(at))
            }
        }
    }

    fn root_measured(&mut self, event: &Event) -> Result<(), StateError> {
        let Event::RootMeasured { baseline, rows, parent, protected_inputs, tree, checks, at } =
            event
        else {
            return state_error("the root was not measured");
        };
        if !matches!(self.facts.phase, RunPhase::Measuring) {
            return state_error("the root is measured twice");
        }
        self.facts.baseline = RootBaseline::Measured {
            results: baseline.clone(),
            rows: *rows,
            parent: parent.clone(),
            protected_inputs: protected_inputs.clone(),
            tree: tree.clone(),
            checks: checks.clone(),
            at: *at,
        };
        self.facts.phase = RunPhase::Searching;
        Ok(())
    }

    fn candidate_committed(&mut self, event: &Event) -> Result<(), StateError> {
        let Event::Implemented { eval, commit, tree, files_changed, rounds, approval, bills, at } =
            event
        else {
            return state_error("no candidate was committed");
        };
        let work = Candidate {
            started_at: self.implementing_since(*eval)?,
            implemented_at: Some(*at),
            commit: commit.clone(),
            files_changed: *files_changed,
            rounds: *rounds,
            approval: *approval,
            made_in: self.take_candidate_attempt(*eval, commit)?,
            tree: tree.clone(),
            same_code_as: None,
        };
        self.charge_attempt(*eval, bills)?;
        self.enter_stage(*eval, Stage::Implemented(Box::new(work)))
    }

    fn root_refused(&mut self, why: &str) -> Result<(), StateError> {
        if !matches!(self.facts.phase, RunPhase::Measuring) {
            return state_error("the root is refused after it was measured");
        }
        self.facts.baseline = RootBaseline::Refused { why: why.to_owned() };
        Ok(())
    }

    fn ideas_proposed(&mut self, proposed: &IdeasProposed) -> Result<(), StateError> {
        let first = self.facts.next_eval_id().number();
        let in_order = (first..).zip(&proposed.queued).all(|(n, new)| new.eval.number() == n);
        if !in_order {
            return state_error(format!("ideas of `{}` do not get the next ids", proposed.source));
        }
        let context = StoredContext::from(proposed.context.clone());
        let first = proposed.queued.first().map(|new| new.eval);
        let context = context.into_compact(&self.facts, self.facts.depth, first);
        let expansion = self.awaiting_expansion(proposed.source)?;
        expansion.bills = proposed.bills.clone();
        expansion.conversation.clone_from(&proposed.conversation);
        expansion.ideas = ExpansionIdeas::Proposed {
            evals: proposed.queued.iter().map(|new| new.eval).collect(),
            untried: proposed.untried.clone(),
            repeats: proposed.repeats.clone(),
            turns: proposed.turns,
            context,
        };
        for new in &proposed.queued {
            self.queue_eval(new.eval, proposed.source, new.idea.clone(), proposed.at);
        }
        Ok(())
    }

    fn proposal_failed(
        &mut self,
        source: IdeaSource,
        ideas: ExpansionIdeas,
        bills: &RoleBills,
        conversation: &[Turn],
    ) -> Result<(), StateError> {
        let expansion = self.awaiting_expansion(source)?;
        expansion.ideas = ideas;
        expansion.bills = bills.clone();
        expansion.conversation = conversation.to_vec();
        match source {
            IdeaSource::Node(id) => self.requeue_set_aside(id),
            IdeaSource::Control => Ok(()),
        }
    }

    fn queue_eval(&mut self, id: EvalId, source: IdeaSource, idea: Idea, queued_at: Timestamp) {
        let (parent, group, depth) = (source.node_id(), source.group(), self.facts.depth);
        let (attempt, failures, again) = (1, Vec::new(), None);
        let (bills, stage) = (Vec::new(), Stage::Queued);
        let eval = Eval {
            id,
            parent,
            group,
            depth,
            idea,
            attempt,
            failures,
            again,
            bills,
            queued_at,
            stage,
        };
        self.index.insert_eval(&eval);
        self.facts.evals.push(eval);
    }

    fn eval_failed(
        &mut self,
        eval: EvalId,
        failure: &EvalFailure,
        at: Timestamp,
    ) -> Result<(), StateError> {
        let Some(started_at) = self.eval_started_at(eval)? else {
            return state_error(format!("eval {eval} failed, but was not under way"));
        };
        let work = self.eval_mut(eval)?.candidate();
        let work = work.map(|work| Box::new(Candidate { same_code_as: None, ..work }));
        let failure = Box::new(failure.clone());
        self.eval_mut(eval)?.again = None;
        self.keep_replaced_results(eval)?;
        self.enter_stage(eval, Stage::Failed { started_at, work, failure, at })?;
        for kind in [LeftoverKind::Worktree, LeftoverKind::Branch, LeftoverKind::Dir] {
            let removal = removal_unless_kept(self.facts.limits.keep_failed_artifacts);
            self.add_leftover(eval, kind, removal);
        }
        Ok(())
    }

    fn sweep_submitted(
        &mut self,
        subject: SweepSubject,
        submission: u32,
    ) -> Result<(), StateError> {
        if submission != self.facts.submission_count(subject) + 1 {
            return state_error(format!("submission {submission} of {subject} is out of order"));
        }
        if let SweepSubject::Eval(eval) = subject {
            let (Stage::Implemented(work) | Stage::Sweeping(work)) = self.eval_stage(eval)? else {
                return state_error(format!("eval {eval} is swept before it is committed"));
            };
            let sweeping = Stage::Sweeping(work.clone());
            self.enter_stage(eval, sweeping)?;
            // A sweep that begins after artifacts were restored is not suspect.
            self.facts.history.suspects.remove(&eval);
        } else if matches!(self.facts.phase, RunPhase::Measuring) {
            self.facts.baseline = RootBaseline::Unmeasured;
        } else {
            return state_error("the root is swept twice");
        }
        self.facts.history.submissions.insert(subject, submission);
        Ok(())
    }

    /// Replaces the agents; the old ones are remembered if they have replied since the last change.
    fn agents_changed(&mut self, agents: &RecordedAgents) {
        let spent = self.facts.total_spend();
        let former = std::mem::replace(&mut self.facts.agents, agents.clone());
        let before = self.facts.former_agents.last().map(|former| &former.spent);
        if spent != *before.unwrap_or(&RoleBills::default()) {
            self.facts.former_agents.push(FormerAgents { agents: former, spent });
        }
    }

    /// Applies new limits. They may allow more, so a reached budget is cleared.
    fn settings_changed(&mut self, limits: &RunLimits) {
        self.facts.limits = limits.clone();
        self.facts.history.settings_changes += 1;
        self.facts.reached_budget = None;
        if matches!(self.facts.phase, RunPhase::Stopped { .. }) {
            self.facts.frontier = self.facts.promoted_frontier();
            let measured = matches!(self.facts.baseline, RootBaseline::Measured { .. });
            self.facts.phase = if measured { RunPhase::Searching } else { RunPhase::Measuring };
        }
    }

    fn discard_deferred(
        &mut self,
        leftover: Leftover,
        why: &str,
        retry_at: Timestamp,
    ) -> Result<(), StateError> {
        let attempts = match self.facts.leftovers.get(&leftover) {
            None => return state_error(format!("{leftover} was deferred, but not to be removed")),
            Some(RemovalState::Kept | RemovalState::Due) => 1,
            Some(RemovalState::Deferred { attempts, .. }) => attempts + 1,
        };
        let deferred = RemovalState::Deferred { attempts, why: why.to_owned(), retry_at };
        self.set_removal(leftover, Some(deferred));
        self.facts.history.deferred_cleanups += 1;
        Ok(())
    }

    fn add_leftover(&mut self, eval: EvalId, kind: LeftoverKind, removal: RemovalState) {
        let leftover = Leftover { place: CodePlace::Candidate(eval), kind };
        self.set_removal(leftover, Some(removal));
    }

    /// Releases a scored candidate that will not become a node. The ref of a user's idea is the
    /// result of the run, and stays.
    fn release_candidate(&mut self, eval: EvalId) {
        let keep = self.facts.limits.keep_rejected_worktrees;
        self.add_leftover(
            eval,
            LeftoverKind::Branch,
            removal_unless_kept(keep || self.facts.user_ideas.is_some()),
        );
        if !keep {
            self.release_worktree(eval);
        }
    }

    /// Marks a kept worktree for removal.
    fn release_worktree(&mut self, eval: EvalId) {
        let leftover = Leftover { place: CodePlace::Candidate(eval), kind: LeftoverKind::Worktree };
        if self.facts.leftovers.get(&leftover) == Some(&RemovalState::Kept) {
            self.set_removal(leftover, Some(RemovalState::Due));
        }
    }

    pub(super) fn set_removal(&mut self, leftover: Leftover, removal: Option<RemovalState>) {
        let Self { facts, index } = self;
        let after = removal.as_ref().and_then(|removal| removal_key(leftover, removal));
        let before = match removal {
            Some(removal) => facts.leftovers.insert(leftover, removal),
            None => facts.leftovers.remove(&leftover),
        };
        if let Some(key) = before.and_then(|removal| removal_key(leftover, &removal)) {
            index.removals.remove(&key);
        }
        index.removals.extend(after);
    }

    fn enter_stage(&mut self, id: EvalId, stage: Stage) -> Result<(), StateError> {
        let Self { facts, index } = self;
        let Some(eval) = facts.unpacked_eval_mut(id) else {
            return state_error(format!("there is no eval {id} that is not over"));
        };
        index.remove_eval(eval);
        eval.stage = stage;
        index.insert_eval(eval);
        Ok(())
    }

    fn awaiting_expansion(&mut self, source: IdeaSource) -> Result<&mut Expansion, StateError> {
        let depth = self.facts.depth;
        let expansion = self.expansions_mut(source)?.last_mut();
        expansion
            .filter(|e| e.depth == depth && e.ideas == ExpansionIdeas::Asked)
            .ok_or_else(|| StateError::new(format!("`{source}` was not asked for ideas")))
    }

    fn expansions_mut(&mut self, source: IdeaSource) -> Result<&mut Vec<Expansion>, StateError> {
        match source {
            IdeaSource::Node(id) => self.node_mut(id).map(|node| &mut node.expansions),
            IdeaSource::Control => Ok(&mut self.facts.control),
        }
    }

    fn node_mut(&mut self, id: NodeId) -> Result<&mut Node, StateError> {
        let node = self.facts.nodes.get_mut(usize::try_from(id.number()).unwrap_or(usize::MAX));
        node.ok_or_else(|| StateError::new(format!("there is no node {id}")))
    }

    fn eval_mut(&mut self, id: EvalId) -> Result<&mut Eval, StateError> {
        let eval = self.facts.unpacked_eval_mut(id);
        eval.ok_or_else(|| StateError::new(format!("there is no eval {id} that is not over")))
    }
}
