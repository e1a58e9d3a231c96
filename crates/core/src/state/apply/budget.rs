//! Reached budgets: a stopped step waits, and unfinished evals are closed with their depth. New
//! limits, or work that the user sends back, reopen them.

use super::{State, StateError, removal_unless_kept, state_error};
use crate::bill::RoleBills;
use crate::event::{BudgetKind, LeftoverKind, PaidStep};
use crate::facts::{Eval, ExpansionIdeas, ReachedBudget, RunPhase, Stage};
use crate::id::EvalId;

impl State {
    pub(super) fn budget_reached(
        &mut self,
        budget: BudgetKind,
        step: PaidStep,
        bills: &RoleBills,
    ) -> Result<(), StateError> {
        let under_way = match step {
            PaidStep::Propose(source) => {
                let expansion = self.expansions_mut(source)?.last();
                expansion.is_some_and(|expansion| expansion.ideas == ExpansionIdeas::Asked)
            }
            PaidStep::Implement(id) => matches!(self.eval_stage(id)?, Stage::Implementing(_)),
        };
        if self.facts.phase != RunPhase::Searching || !under_way {
            return state_error("a budget stops something that was not under way");
        }
        match step {
            PaidStep::Implement(id) => self.charge_attempt(id, bills)?,
            PaidStep::Propose(source) => {
                if let Some(expansion) = self.expansions_mut(source)?.last_mut() {
                    expansion.bills = bills.clone();
                }
            }
        }
        let reached = self.facts.reached_budget.get_or_insert_with(|| ReachedBudget::new(budget));
        reached.refused.insert(step);
        Ok(())
    }

    /// Records the deadline. It overrides any other budget: it stops what they let continue.
    pub(super) fn deadline_passed(&mut self) -> Result<(), StateError> {
        if self.facts.phase != RunPhase::Searching || self.facts.is_past_deadline() {
            return state_error("the time is over, but nothing was to begin");
        }
        let reached =
            self.facts.reached_budget.get_or_insert(ReachedBudget::new(BudgetKind::Deadline));
        reached.budget = BudgetKind::Deadline;
        Ok(())
    }

    /// Returns the evals that will not finish before the depth closes, due to a reached budget.
    fn unfinished_evals(&self) -> impl Iterator<Item = &Eval> {
        let late = self.facts.is_past_deadline();
        let open = move |eval: &&Eval| {
            let unswept = matches!(eval.stage, Stage::Implemented(_) | Stage::Sweeping(_));
            (late && unswept) || matches!(eval.stage, Stage::Queued | Stage::Implementing(_))
        };
        self.facts.open_evals().iter().filter(open)
    }

    /// Returns true if something of the open depth still has to finish.
    pub(super) fn is_depth_open(&self) -> bool {
        if self.facts.is_past_deadline() {
            return !self.index.swept.is_empty();
        }
        let queued = !self.index.queued.is_empty() && self.facts.reached_budget.is_none();
        queued || self.active_evals().next().is_some()
    }

    /// Closes unfinished evals, which count as neither failed nor tried; their leftovers are
    /// treated like those of failed ones.
    pub(super) fn close_unfinished(&mut self) -> Result<(), StateError> {
        let Some(ReachedBudget { budget, .. }) = self.facts.reached_budget else { return Ok(()) };
        let evals: Vec<EvalId> = self.unfinished_evals().map(|eval| eval.id).collect();
        for id in evals {
            let begun_before = self.eval_mut(id)?.attempt > 1;
            let started_at = self.eval_started_at(id)?;
            self.remember_candidate(id)?;
            self.enter_stage(id, Stage::Unfinished { started_at, budget })?;
            if started_at.is_none() && !begun_before {
                continue;
            }
            for kind in [LeftoverKind::Worktree, LeftoverKind::Branch, LeftoverKind::Dir] {
                let removal = removal_unless_kept(self.facts.limits.keep_failed_artifacts);
                self.add_leftover(id, kind, removal);
            }
        }
        if let Some(reached) = &mut self.facts.reached_budget {
            reached.refused.clear();
        }
        Ok(())
    }

    /// Keeps a candidate that was not measured in time, so that it need not be made again if its
    /// depth is reopened.
    fn remember_candidate(&mut self, id: EvalId) -> Result<(), StateError> {
        let eval = self.eval_mut(id)?;
        if let Stage::Implemented(work) | Stage::Sweeping(work) = &eval.stage {
            eval.again = Some(work.clone());
        }
        Ok(())
    }
}
