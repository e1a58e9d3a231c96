//! What is done again: an attempt after one that failed, an idea under another id, other ideas for a node. Nothing of a
//! closed depth changes here; the last one is opened again first, where nothing was promoted from it.

use super::{State, Unexpected, wrong};
use crate::bill::Bills;
use crate::event::{Failure, Leftover, LeftoverKind, Rerun, SentBack};
use crate::facts::{Eval, Expansion, Ideas, Phase, Stage, Work};
use crate::group::IdeaSource;
use crate::id::{Commit, Depth, EvalId, NodeId, Place};
use jiff::Timestamp;

impl State {
    /// The next attempt starts from a fresh worktree, and gives the ref its own commit: nothing is left behind.
    pub(super) fn attempt_failed(
        &mut self,
        id: EvalId,
        attempt: u32,
        failure: &Failure,
        bills: &Bills,
    ) -> Result<(), Unexpected> {
        if self.started_at(id)?.is_none() || self.eval_mut(id)?.attempt != attempt {
            return wrong(format!("attempt {attempt} of eval {id} failed, but was not under way"));
        }
        self.charge(id, bills)?;
        self.try_again(id, failure.clone(), None)
    }

    /// Which attempt made what is a candidate now: the one under way, unless that measures one again. It waits no more then.
    pub(super) fn take_maker(&mut self, id: EvalId, commit: &Commit) -> Result<u32, Unexpected> {
        let eval = self.eval_mut(id)?;
        let again = eval.again.take().filter(|work| work.commit == *commit);
        Ok(again.map_or(eval.attempt, |work| work.made_in))
    }

    pub(super) fn sent_back(&mut self, sent: &SentBack) -> Result<(), Unexpected> {
        if let Some(depth) = sent.reopened {
            self.reopen(depth)?;
        }
        if self.facts.phase != Phase::Searching {
            return wrong("work is done again, but no depth is open");
        }
        self.facts.reached = None;
        for id in &sent.retried {
            self.retry(*id, sent.swept.contains(id))?;
        }
        for rerun in &sent.rerun {
            self.rerun(*rerun, sent.at)?;
        }
        for id in &sent.set_aside {
            self.set_aside(*id)?;
        }
        for node in &sent.asked {
            self.ask_again(*node, sent.at)?;
        }
        Ok(())
    }

    fn reopen(&mut self, depth: Depth) -> Result<(), Unexpected> {
        if self.facts.barren_depth() != Some(depth) {
            return wrong(format!("depth {depth} cannot be opened again"));
        }
        for id in self.facts.reopen(depth) {
            self.keep(id);
            self.enter(id, Stage::Queued)?;
        }
        Ok(())
    }

    /// What an attempt left is the next one's to replace: nothing may be removed under its feet.
    fn keep(&mut self, id: EvalId) {
        for kind in [LeftoverKind::Worktree, LeftoverKind::Branch, LeftoverKind::Dir] {
            self.set_removal(Leftover { place: Place::Candidate(id), kind }, None);
        }
    }

    /// An eval of the open depth.
    fn open(&self, id: EvalId) -> Result<&Eval, Unexpected> {
        let eval = self.facts.open_eval(id).filter(|eval| eval.id >= self.facts.first_open_eval());
        eval.ok_or_else(|| Unexpected::new(format!("eval {id} is not of the open depth")))
    }

    fn retry(&mut self, id: EvalId, as_it_is: bool) -> Result<(), Unexpected> {
        let Stage::Failed { failure, work, .. } = &self.open(id)?.stage else {
            return wrong(format!("eval {id} is tried again, but has not failed"));
        };
        let again = work.clone().filter(|_| as_it_is);
        if as_it_is && again.is_none() {
            return wrong(format!("eval {id} is swept again, but was never committed"));
        }
        let failure = (**failure).clone();
        self.keep(id);
        self.try_again(id, failure, again)
    }

    fn try_again(
        &mut self,
        id: EvalId,
        failure: Failure,
        again: Option<Box<Work>>,
    ) -> Result<(), Unexpected> {
        self.enter(id, Stage::Queued)?;
        let eval = self.eval_mut(id)?;
        eval.attempt += 1;
        eval.failures.push(failure);
        eval.again = again;
        Ok(())
    }

    fn rerun(&mut self, rerun: Rerun, at: Timestamp) -> Result<(), Unexpected> {
        let Rerun { of, eval: id } = rerun;
        if id != self.facts.next_eval() {
            return wrong(format!("eval {of} is evaluated again, but does not get the next id"));
        }
        let old = self.open(of)?;
        let Stage::Scored(measured) = &old.stage else {
            return wrong(format!("eval {of} is evaluated again, but has no score"));
        };
        let (measured, source, idea) = (measured.clone(), old.source(), old.idea.clone());
        self.enter(of, Stage::Superseded(measured, id))?;
        self.let_go(of);
        self.queue(id, source, idea, at);
        self.stand_beside(source, of, id)
    }

    /// The expansion that an eval came from has its successor too.
    fn stand_beside(
        &mut self,
        source: IdeaSource,
        of: EvalId,
        id: EvalId,
    ) -> Result<(), Unexpected> {
        for Expansion { ideas, added, .. } in self.expansions_mut(source)? {
            let asked_for =
                if let Ideas::Proposed { evals, .. } = ideas { Some(evals) } else { None };
            for evals in asked_for.into_iter().chain([added]) {
                if let Some(index) = evals.iter().position(|eval| *eval == of) {
                    evals.insert(index + 1, id);
                    return Ok(());
                }
            }
        }
        wrong(format!("eval {of} came from no expansion of `{source}`"))
    }

    fn set_aside(&mut self, id: EvalId) -> Result<(), Unexpected> {
        let eval = self.open(id)?;
        if eval.stage != Stage::Queued || eval.attempt > 1 {
            return wrong(format!("eval {id} is set aside, but has begun"));
        }
        self.enter(id, Stage::SetAside)
    }

    /// The question is as good as asked: a process that is cut off here asks it like any other.
    fn ask_again(&mut self, id: NodeId, at: Timestamp) -> Result<(), Unexpected> {
        let depth = self.facts.depth;
        let in_frontier = self.facts.frontier.contains(&id);
        let node = self.node_mut(id)?;
        if !in_frontier || !node.is_expanded_at(depth) {
            return wrong(format!("node {id} is asked again, but has no answer at depth {depth}"));
        }
        node.expansions.push(Expansion::begun(depth, at));
        Ok(())
    }

    /// No other ideas came: those that were set aside for them are tried after all.
    pub(super) fn take_up_again(&mut self, id: NodeId) -> Result<(), Unexpected> {
        let depth = self.facts.depth;
        let node = self.node_mut(id)?;
        let here = node.expansions.iter().filter(|expansion| expansion.depth == depth);
        let evals: Vec<_> = here.flat_map(Expansion::evals).copied().collect();
        for eval in evals {
            if *self.stage(eval)? == Stage::SetAside {
                self.enter(eval, Stage::Queued)?;
            }
        }
        Ok(())
    }
}
