//! The fold: what each event does to the state. An event that cannot follow is refused.
//! What is done again, and how a depth closes, have files of their own.

mod again;
mod asked;
mod bills;
mod budget;
mod close;
mod rules;
mod scored;

use super::{State, removal_key};
use crate::bill::Bills;
use crate::conversation::Turn;
use crate::event::{
    Event, Failure, Idea, IdeasProposed, Intent, Leftover, LeftoverKind, Stop, Subject,
};
use crate::facts::{
    Baseline, Eval, Expansion, Former, Ideas, KnownContext, Node, Phase, Removal, Stage, Work,
};
use crate::group::IdeaSource;
use crate::id::{EvalId, NodeId, Place};
use crate::policy::{Agents, Reach};
use jiff::Timestamp;

/// An event that cannot have happened after the ones before it, or facts that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the record contradicts itself: {0}")]
pub struct Unexpected(String);

impl Unexpected {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// What becomes of something that is over: it stays, or it goes.
fn wanted(keep: bool) -> Removal {
    if keep { Removal::Kept } else { Removal::Due }
}

fn wrong<T>(why: impl Into<String>) -> Result<T, Unexpected> {
    Err(Unexpected::new(why))
}

impl State {
    /// What an event changes. The only mutation there is.
    ///
    /// # Errors
    /// When the event cannot follow; the state is then not to be used any further.
    pub fn apply(&mut self, event: &Event) -> Result<(), Unexpected> {
        match event {
            Event::RunStarted(_) => wrong("a run starts twice"),
            Event::StepStarted { step, attempt, at } => self.step_started(*step, *attempt, *at),
            Event::RootMeasured { .. } => self.root_measured(event),
            Event::RootRefused { why } => self.root_refused(why),
            Event::IdeasProposed(proposed) => self.ideas_proposed(proposed),
            Event::ProposalFailed { source, why, turns, bills, conversation, .. } => {
                let ideas = Ideas::Failed { why: why.clone(), turns: *turns };
                self.proposal_failed(*source, ideas, bills, conversation)
            }
            Event::Implemented { .. } => self.candidate_committed(event),
            Event::SweepSubmitted { subject, submission } => self.submitted(*subject, *submission),
            Event::Swept { eval, results, .. } => {
                let Stage::Sweeping(work) = &self.stage(*eval)? else {
                    return wrong(format!("eval {eval} was swept, but not submitted"));
                };
                let swept = Stage::Swept(work.clone(), Box::new(results.clone()));
                self.enter(*eval, swept)
            }
            Event::Scored { eval, scored, same_code_as, at } => {
                self.candidate_scored(*eval, scored, *same_code_as, *at)
            }
            Event::EvalFailed { eval, failure, bills, at } => {
                self.facts.history.suspects.remove(eval);
                self.charge(*eval, bills)?;
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
            Event::Discarded { leftover } => self.discarded(*leftover),
            Event::RemovalAsked { leftovers } => self.removal_asked(leftovers),
            Event::DiscardDeferred { leftover, why, retry_at } => {
                self.discard_deferred(*leftover, why, *retry_at)
            }
            Event::AgentsChanged { agents } => {
                self.agents_changed(agents);
                Ok(())
            }
            Event::RulesChanged { rules_version } => self.rules_changed(*rules_version),
            Event::SettingsChanged { reach } => {
                self.settings_changed(reach);
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
            Event::Asked { wish, message, at } => self.wished(*wish, message.as_ref(), *at),
            Event::IdeaAdded(added) => self.idea_added(added),
            Event::IdeaRefused { message, .. } => self.remember(message),
            Event::Stopped { reason, at } => self.stopped(*reason, *at),
        }
    }

    fn stopped(&mut self, reason: Stop, at: Timestamp) -> Result<(), Unexpected> {
        let unmeasured = self.facts.phase == Phase::Measuring && reason == Stop::Deadline;
        if self.facts.phase != Phase::Searching && !unmeasured {
            return wrong("the run stops in the middle of something");
        }
        if reason == Stop::EmptyFrontier {
            self.facts.frontier.clear();
        }
        self.facts.phase = Phase::Stopped { reason, at };
        self.facts.history.stop_after = None;
        Ok(())
    }

    fn step_started(
        &mut self,
        step: Intent,
        attempt: u32,
        at: Timestamp,
    ) -> Result<(), Unexpected> {
        match step {
            Intent::Propose(source) => {
                let depth = self.facts.depth;
                let is_due = match source {
                    IdeaSource::Node(id) => self.facts.frontier.contains(&id),
                    IdeaSource::Control => self.facts.control_waits(),
                };
                if !is_due || self.facts.asked_at_open_depth(source).is_some() {
                    return wrong(format!("`{source}` is not to be expanded at depth {depth}"));
                }
                let expansions = self.expansions_mut(source)?;
                // A node rarely has a second one.
                expansions.reserve_exact(1);
                expansions.push(Expansion::begun(depth, at));
                Ok(())
            }
            Intent::Implement(id) => {
                if !matches!(self.stage(id)?, Stage::Queued)
                    || self.eval_mut(id)?.attempt != attempt
                {
                    return wrong(format!("attempt {attempt} of eval {id} starts out of turn"));
                }
                self.enter(id, Stage::Implementing(at))
            }
        }
    }

    fn root_measured(&mut self, event: &Event) -> Result<(), Unexpected> {
        let Event::RootMeasured { baseline, rows, parent, protected_inputs, tree, checks, at } =
            event
        else {
            return wrong("the root was not measured");
        };
        if !matches!(self.facts.phase, Phase::Measuring) {
            return wrong("the root is measured twice");
        }
        self.facts.baseline = Baseline::Measured {
            results: baseline.clone(),
            rows: *rows,
            parent: parent.clone(),
            protected_inputs: protected_inputs.clone(),
            tree: tree.clone(),
            checks: checks.clone(),
            at: *at,
        };
        self.facts.phase = Phase::Searching;
        Ok(())
    }

    fn candidate_committed(&mut self, event: &Event) -> Result<(), Unexpected> {
        let Event::Implemented { eval, commit, tree, files_changed, rounds, approval, bills, at } =
            event
        else {
            return wrong("no candidate was committed");
        };
        let work = Work {
            started_at: self.implementing_since(*eval)?,
            implemented_at: Some(*at),
            commit: commit.clone(),
            files_changed: *files_changed,
            rounds: *rounds,
            approval: *approval,
            made_in: self.take_maker(*eval, commit)?,
            tree: tree.clone(),
            same_code_as: None,
        };
        self.charge(*eval, bills)?;
        self.enter(*eval, Stage::Implemented(Box::new(work)))
    }

    fn root_refused(&mut self, why: &str) -> Result<(), Unexpected> {
        if !matches!(self.facts.phase, Phase::Measuring) {
            return wrong("the root is refused after it was measured");
        }
        self.facts.baseline = Baseline::Refused { why: why.to_owned() };
        Ok(())
    }

    fn ideas_proposed(&mut self, proposed: &IdeasProposed) -> Result<(), Unexpected> {
        let first = self.facts.next_eval().number();
        let in_order = (first..).zip(&proposed.queued).all(|(n, new)| new.eval.number() == n);
        if !in_order {
            return wrong(format!("ideas of `{}` do not get the next ids", proposed.source));
        }
        let context = KnownContext::from(proposed.context.clone());
        let first = proposed.queued.first().map(|new| new.eval);
        let context = context.condensed(&self.facts, self.facts.depth, first);
        let expansion = self.asked(proposed.source)?;
        expansion.bills = proposed.bills.clone();
        expansion.conversation.clone_from(&proposed.conversation);
        expansion.ideas = Ideas::Proposed {
            evals: proposed.queued.iter().map(|new| new.eval).collect(),
            untried: proposed.untried.clone(),
            repeats: proposed.repeats.clone(),
            turns: proposed.turns,
            context,
        };
        for new in &proposed.queued {
            self.queue(new.eval, proposed.source, new.idea.clone(), proposed.at);
        }
        Ok(())
    }

    fn proposal_failed(
        &mut self,
        source: IdeaSource,
        ideas: Ideas,
        bills: &Bills,
        conversation: &[Turn],
    ) -> Result<(), Unexpected> {
        let expansion = self.asked(source)?;
        expansion.ideas = ideas;
        expansion.bills = bills.clone();
        expansion.conversation = conversation.to_vec();
        match source {
            IdeaSource::Node(id) => self.take_up_again(id),
            IdeaSource::Control => Ok(()),
        }
    }

    fn queue(&mut self, id: EvalId, source: IdeaSource, idea: Idea, queued_at: Timestamp) {
        let (parent, group, depth) = (source.node(), source.group(), self.facts.depth);
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
        self.index.enter(&eval);
        self.facts.evals.push(eval);
    }

    fn eval_failed(
        &mut self,
        eval: EvalId,
        failure: &Failure,
        at: Timestamp,
    ) -> Result<(), Unexpected> {
        let Some(started_at) = self.started_at(eval)? else {
            return wrong(format!("eval {eval} failed, but was not under way"));
        };
        let work = self.eval_mut(eval)?.work();
        let work = work.map(|work| Box::new(Work { same_code_as: None, ..work }));
        let failure = Box::new(failure.clone());
        self.eval_mut(eval)?.again = None;
        self.keep_replaced(eval)?;
        self.enter(eval, Stage::Failed { started_at, work, failure, at })?;
        for kind in [LeftoverKind::Worktree, LeftoverKind::Branch, LeftoverKind::Dir] {
            let removal = wanted(self.facts.reach.keep_failed_artifacts);
            self.leave_behind(eval, kind, removal);
        }
        Ok(())
    }

    fn submitted(&mut self, subject: Subject, submission: u32) -> Result<(), Unexpected> {
        if submission != self.facts.submissions(subject) + 1 {
            return wrong(format!("submission {submission} of {subject} is out of order"));
        }
        if let Subject::Eval(eval) = subject {
            let (Stage::Implemented(work) | Stage::Sweeping(work)) = self.stage(eval)? else {
                return wrong(format!("eval {eval} is swept before it is committed"));
            };
            let sweeping = Stage::Sweeping(work.clone());
            self.enter(eval, sweeping)?;
            // A sweep that begins after artifacts were restored has measured nothing of what they were.
            self.facts.history.suspects.remove(&eval);
        } else if matches!(self.facts.phase, Phase::Measuring) {
            self.facts.baseline = Baseline::Unmeasured;
        } else {
            return wrong("the root is swept twice");
        }
        self.facts.history.submissions.insert(subject, submission);
        Ok(())
    }

    /// Those who answered something are remembered with it.
    fn agents_changed(&mut self, agents: &Agents) {
        let spent = self.facts.spent();
        let former = std::mem::replace(&mut self.facts.agents, agents.clone());
        let before = self.facts.former.last().map(|former| &former.spent);
        if spent != *before.unwrap_or(&Bills::default()) {
            self.facts.former.push(Former { agents: former, spent });
        }
    }

    /// What the user says anew may be more: a budget that was reached is asked again.
    fn settings_changed(&mut self, reach: &Reach) {
        self.facts.reach = reach.clone();
        self.facts.history.settings_changes += 1;
        self.facts.reached = None;
        if matches!(self.facts.phase, Phase::Stopped { .. }) {
            self.facts.frontier = self.facts.standing_frontier();
            let measured = matches!(self.facts.baseline, Baseline::Measured { .. });
            self.facts.phase = if measured { Phase::Searching } else { Phase::Measuring };
        }
    }

    fn discard_deferred(
        &mut self,
        leftover: Leftover,
        why: &str,
        retry_at: Timestamp,
    ) -> Result<(), Unexpected> {
        let attempts = match self.facts.leftovers.get(&leftover) {
            None => return wrong(format!("{leftover} was deferred, but not to be removed")),
            Some(Removal::Kept | Removal::Due) => 1,
            Some(Removal::Deferred { attempts, .. }) => attempts + 1,
        };
        let deferred = Removal::Deferred { attempts, why: why.to_owned(), retry_at };
        self.set_removal(leftover, Some(deferred));
        self.facts.history.deferred_cleanups += 1;
        Ok(())
    }

    fn leave_behind(&mut self, eval: EvalId, kind: LeftoverKind, removal: Removal) {
        let leftover = Leftover { place: Place::Candidate(eval), kind };
        self.set_removal(leftover, Some(removal));
    }

    /// A scored candidate will not become a node. One of an idea that the user gave is what came of it, and stays.
    fn let_go(&mut self, eval: EvalId) {
        let keep = self.facts.reach.keep_rejected_worktrees;
        self.leave_behind(eval, LeftoverKind::Branch, wanted(keep || self.facts.given.is_some()));
        if !keep {
            self.release(eval);
        }
    }

    /// A worktree that was kept is wanted no more.
    fn release(&mut self, eval: EvalId) {
        let leftover = Leftover { place: Place::Candidate(eval), kind: LeftoverKind::Worktree };
        if self.facts.leftovers.get(&leftover) == Some(&Removal::Kept) {
            self.set_removal(leftover, Some(Removal::Due));
        }
    }

    pub(super) fn set_removal(&mut self, leftover: Leftover, removal: Option<Removal>) {
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

    fn enter(&mut self, id: EvalId, stage: Stage) -> Result<(), Unexpected> {
        let Self { facts, index } = self;
        let Some(eval) = facts.open_eval_mut(id) else {
            return wrong(format!("there is no eval {id} that is not over"));
        };
        index.leave(eval);
        eval.stage = stage;
        index.enter(eval);
        Ok(())
    }

    fn stage(&self, id: EvalId) -> Result<&Stage, Unexpected> {
        let eval = self.facts.open_eval(id).map(|eval| &eval.stage);
        eval.ok_or_else(|| Unexpected::new(format!("there is no eval {id} that is not over")))
    }

    fn implementing_since(&self, id: EvalId) -> Result<Timestamp, Unexpected> {
        match self.stage(id)? {
            Stage::Implementing(since) => Ok(*since),
            Stage::Queued
            | Stage::Implemented(_)
            | Stage::Sweeping(_)
            | Stage::Swept(..)
            | Stage::Scored(_)
            | Stage::Decided(..)
            | Stage::Failed { .. }
            | Stage::Unfinished { .. }
            | Stage::Superseded(..)
            | Stage::SetAside => wrong(format!("eval {id} was not being implemented")),
        }
    }

    fn started_at(&self, id: EvalId) -> Result<Option<Timestamp>, Unexpected> {
        Ok(match self.stage(id)? {
            Stage::Implementing(since) => Some(*since),
            Stage::Implemented(work) | Stage::Sweeping(work) | Stage::Swept(work, _) => {
                Some(work.started_at)
            }
            Stage::Scored(measured)
                if self.facts.open_eval(id).is_some_and(|eval| self.yields(eval)) =>
            {
                Some(measured.work.started_at)
            }
            Stage::Queued
            | Stage::Scored(_)
            | Stage::Decided(..)
            | Stage::Failed { .. }
            | Stage::Unfinished { .. }
            | Stage::Superseded(..)
            | Stage::SetAside => None,
        })
    }

    fn asked(&mut self, source: IdeaSource) -> Result<&mut Expansion, Unexpected> {
        let depth = self.facts.depth;
        let expansion = self.expansions_mut(source)?.last_mut();
        expansion
            .filter(|e| e.depth == depth && e.ideas == Ideas::Asked)
            .ok_or_else(|| Unexpected::new(format!("`{source}` was not asked for ideas")))
    }

    fn expansions_mut(&mut self, source: IdeaSource) -> Result<&mut Vec<Expansion>, Unexpected> {
        match source {
            IdeaSource::Node(id) => self.node_mut(id).map(|node| &mut node.expansions),
            IdeaSource::Control => Ok(&mut self.facts.control),
        }
    }

    fn node_mut(&mut self, id: NodeId) -> Result<&mut Node, Unexpected> {
        let node = self.facts.nodes.get_mut(usize::try_from(id.number()).unwrap_or(usize::MAX));
        node.ok_or_else(|| Unexpected::new(format!("there is no node {id}")))
    }

    fn eval_mut(&mut self, id: EvalId) -> Result<&mut Eval, Unexpected> {
        let eval = self.facts.open_eval_mut(id);
        eval.ok_or_else(|| Unexpected::new(format!("there is no eval {id} that is not over")))
    }
}
