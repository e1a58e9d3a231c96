//! Repeated work in the state: another attempt, a rerun under a new id, other ideas for a node.
//! Closed depths do not change; the last one is reopened first, if it promoted nothing.

use super::{State, StateError, state_error};
use crate::bill::RoleBills;
use crate::event::{EvalFailure, EvalRerun, Leftover, LeftoverKind, SentBack};
use crate::facts::{Candidate, Eval, Expansion, ExpansionIdeas, RunPhase, Stage};
use crate::group::IdeaSource;
use crate::id::{CodePlace, Commit, Depth, EvalId, NodeId};
use jiff::Timestamp;

impl State {
    /// Queues the next attempt. It starts from a new worktree and moves the ref to its own commit:
    /// nothing is left behind.
    pub(super) fn attempt_failed(
        &mut self,
        id: EvalId,
        attempt: u32,
        failure: &EvalFailure,
        bills: &RoleBills,
    ) -> Result<(), StateError> {
        if self.eval_started_at(id)?.is_none() || self.eval_mut(id)?.attempt != attempt {
            return state_error(format!(
                "attempt {attempt} of eval {id} failed, but was not under way"
            ));
        }
        self.charge_attempt(id, bills)?;
        self.queue_next_attempt(id, failure.clone(), None)
    }

    /// Returns the attempt that made the candidate: the current one, unless an existing candidate
    /// is measured again. Clears the pending candidate.
    pub(super) fn take_candidate_attempt(
        &mut self,
        id: EvalId,
        commit: &Commit,
    ) -> Result<u32, StateError> {
        let eval = self.eval_mut(id)?;
        let again = eval.again.take().filter(|work| work.commit == *commit);
        Ok(again.map_or(eval.attempt, |work| work.made_in))
    }

    pub(super) fn sent_back(&mut self, sent: &SentBack) -> Result<(), StateError> {
        if let Some(depth) = sent.reopened {
            self.reopen_depth(depth)?;
        }
        if self.facts.phase != RunPhase::Searching {
            return state_error("work is done again, but no depth is open");
        }
        self.facts.reached_budget = None;
        for id in &sent.retried {
            self.retry_eval(*id, sent.swept.contains(id))?;
        }
        for rerun in &sent.rerun {
            self.rerun_eval(*rerun, sent.at)?;
        }
        for id in &sent.set_aside {
            self.set_eval_aside(*id)?;
        }
        for node in &sent.asked {
            self.ask_node_again(*node, sent.at)?;
        }
        Ok(())
    }

    fn reopen_depth(&mut self, depth: Depth) -> Result<(), StateError> {
        if self.facts.reopenable_depth() != Some(depth) {
            return state_error(format!("depth {depth} cannot be opened again"));
        }
        for id in self.facts.reopen_depth(depth) {
            self.keep_leftovers(id);
            self.enter_stage(id, Stage::Queued)?;
        }
        Ok(())
    }

    /// Clears the removal of an attempt's leftovers, which the next attempt uses and replaces.
    fn keep_leftovers(&mut self, id: EvalId) {
        for kind in [LeftoverKind::Worktree, LeftoverKind::Branch, LeftoverKind::Dir] {
            self.set_removal(Leftover { place: CodePlace::Candidate(id), kind }, None);
        }
    }

    /// Returns an eval of the open depth.
    fn open_depth_eval(&self, id: EvalId) -> Result<&Eval, StateError> {
        let eval =
            self.facts.unpacked_eval(id).filter(|eval| eval.id >= self.facts.first_open_eval_id());
        eval.ok_or_else(|| StateError::new(format!("eval {id} is not of the open depth")))
    }

    fn retry_eval(&mut self, id: EvalId, as_it_is: bool) -> Result<(), StateError> {
        let Stage::Failed { failure, work, .. } = &self.open_depth_eval(id)?.stage else {
            return state_error(format!("eval {id} is tried again, but has not failed"));
        };
        let again = work.clone().filter(|_| as_it_is);
        if as_it_is && again.is_none() {
            return state_error(format!("eval {id} is swept again, but was never committed"));
        }
        let failure = (**failure).clone();
        self.keep_leftovers(id);
        self.queue_next_attempt(id, failure, again)
    }

    fn queue_next_attempt(
        &mut self,
        id: EvalId,
        failure: EvalFailure,
        again: Option<Box<Candidate>>,
    ) -> Result<(), StateError> {
        self.enter_stage(id, Stage::Queued)?;
        let eval = self.eval_mut(id)?;
        eval.attempt += 1;
        eval.failures.push(failure);
        eval.again = again;
        Ok(())
    }

    fn rerun_eval(&mut self, rerun: EvalRerun, at: Timestamp) -> Result<(), StateError> {
        let EvalRerun { of, eval: id } = rerun;
        if id != self.facts.next_eval_id() {
            return state_error(format!(
                "eval {of} is evaluated again, but does not get the next id"
            ));
        }
        let old = self.open_depth_eval(of)?;
        let Stage::Scored(measured) = &old.stage else {
            return state_error(format!("eval {of} is evaluated again, but has no score"));
        };
        let (measured, source, idea) = (measured.clone(), old.idea_source(), old.idea.clone());
        self.enter_stage(of, Stage::Superseded(measured, id))?;
        self.release_candidate(of);
        self.queue_eval(id, source, idea, at);
        self.add_successor(source, of, id)
    }

    /// Adds the successor of an eval to the expansion that the eval came from.
    fn add_successor(
        &mut self,
        source: IdeaSource,
        of: EvalId,
        id: EvalId,
    ) -> Result<(), StateError> {
        for Expansion { ideas, added, .. } in self.expansions_mut(source)? {
            let asked_for =
                if let ExpansionIdeas::Proposed { evals, .. } = ideas { Some(evals) } else { None };
            for evals in asked_for.into_iter().chain([added]) {
                if let Some(index) = evals.iter().position(|eval| *eval == of) {
                    evals.insert(index + 1, id);
                    return Ok(());
                }
            }
        }
        state_error(format!("eval {of} came from no expansion of `{source}`"))
    }

    fn set_eval_aside(&mut self, id: EvalId) -> Result<(), StateError> {
        let eval = self.open_depth_eval(id)?;
        if eval.stage != Stage::Queued || eval.attempt > 1 {
            return state_error(format!("eval {id} is set aside, but has begun"));
        }
        self.enter_stage(id, Stage::SetAside)
    }

    /// Begins a new expansion of the node. After an interruption it continues like any other.
    fn ask_node_again(&mut self, id: NodeId, at: Timestamp) -> Result<(), StateError> {
        let depth = self.facts.depth;
        let in_frontier = self.facts.frontier.contains(&id);
        let node = self.node_mut(id)?;
        if !in_frontier || !node.is_expanded_at(depth) {
            return state_error(format!(
                "node {id} is asked again, but has no answer at depth {depth}"
            ));
        }
        node.expansions.push(Expansion::new(depth, at));
        Ok(())
    }

    /// Queues the evals again that were set aside for new ideas, because none were received.
    pub(super) fn requeue_set_aside(&mut self, id: NodeId) -> Result<(), StateError> {
        let depth = self.facts.depth;
        let node = self.node_mut(id)?;
        let here = node.expansions.iter().filter(|expansion| expansion.depth == depth);
        let evals: Vec<_> = here.flat_map(Expansion::eval_ids).copied().collect();
        for eval in evals {
            if *self.eval_stage(eval)? == Stage::SetAside {
                self.enter_stage(eval, Stage::Queued)?;
            }
        }
        Ok(())
    }
}
