//! What a reached budget does: a step that it stopped waits, and what is not at its end when the depth closes is closed
//! with it. Other settings, or work that the user sends back, open it again.

use super::{State, Unexpected, wanted, wrong};
use crate::bill::Bills;
use crate::event::{BudgetKind, Intent, LeftoverKind};
use crate::facts::{Eval, Ideas, Phase, Reached, Stage};
use crate::id::EvalId;

impl State {
    pub(super) fn budget_reached(
        &mut self,
        budget: BudgetKind,
        step: Intent,
        bills: &Bills,
    ) -> Result<(), Unexpected> {
        let under_way = match step {
            Intent::Propose(source) => {
                let expansion = self.expansions_mut(source)?.last();
                expansion.is_some_and(|expansion| expansion.ideas == Ideas::Asked)
            }
            Intent::Implement(id) => matches!(self.stage(id)?, Stage::Implementing(_)),
        };
        if self.facts.phase != Phase::Searching || !under_way {
            return wrong("a budget stops something that was not under way");
        }
        match step {
            Intent::Implement(id) => self.charge(id, bills)?,
            Intent::Propose(source) => {
                if let Some(expansion) = self.expansions_mut(source)?.last_mut() {
                    expansion.bills = bills.clone();
                }
            }
        }
        let reached = self.facts.reached.get_or_insert_with(|| Reached::of(budget));
        reached.refused.insert(step);
        Ok(())
    }

    /// The time counts for more than any other budget: it stops what they let go on.
    pub(super) fn deadline_passed(&mut self) -> Result<(), Unexpected> {
        if self.facts.phase != Phase::Searching || self.facts.is_late() {
            return wrong("the time is over, but nothing was to begin");
        }
        let reached = self.facts.reached.get_or_insert(Reached::of(BudgetKind::Deadline));
        reached.budget = BudgetKind::Deadline;
        Ok(())
    }

    /// What is not at its end, and will not get there before the depth closes, because a budget was reached.
    fn unfinished(&self) -> impl Iterator<Item = &Eval> {
        let late = self.facts.is_late();
        let open = move |eval: &&Eval| {
            let unswept = matches!(eval.stage, Stage::Implemented(_) | Stage::Sweeping(_));
            (late && unswept) || matches!(eval.stage, Stage::Queued | Stage::Implementing(_))
        };
        self.facts.open_evals().iter().filter(open)
    }

    /// Whether something of the open depth has still to come to its end.
    pub(super) fn is_open(&self) -> bool {
        if self.facts.is_late() {
            return !self.index.swept.is_empty();
        }
        let queued = !self.index.queued.is_empty() && self.facts.reached.is_none();
        queued || self.going_on().next().is_some()
    }

    /// Not failed, and not tried to their end: what they left goes the way of what failed.
    pub(super) fn leave_unfinished(&mut self) -> Result<(), Unexpected> {
        let Some(Reached { budget, .. }) = self.facts.reached else { return Ok(()) };
        let evals: Vec<EvalId> = self.unfinished().map(|eval| eval.id).collect();
        for id in evals {
            let begun_before = self.eval_mut(id)?.attempt > 1;
            let started_at = self.started_at(id)?;
            self.remember_candidate(id)?;
            self.enter(id, Stage::Unfinished { started_at, budget })?;
            if started_at.is_none() && !begun_before {
                continue;
            }
            for kind in [LeftoverKind::Worktree, LeftoverKind::Branch, LeftoverKind::Dir] {
                let removal = wanted(self.facts.reach.keep_failed_artifacts);
                self.leave_behind(id, kind, removal);
            }
        }
        if let Some(reached) = &mut self.facts.reached {
            reached.refused.clear();
        }
        Ok(())
    }

    /// A candidate that was not measured in time need not be made again, should its depth be opened once more.
    fn remember_candidate(&mut self, id: EvalId) -> Result<(), Unexpected> {
        let eval = self.eval_mut(id)?;
        if let Stage::Implemented(work) | Stage::Sweeping(work) = &eval.stage {
            eval.again = Some(work.clone());
        }
        Ok(())
    }
}
