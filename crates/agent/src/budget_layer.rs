//! The layer that keeps questions within a budget. Before a call its worst-case cost is reserved on
//! disk; afterwards the actual cost counts. So a crash in between is visible to the next start.

use super::call_store::{BudgetTurn, CallAmount, CallStore};
use super::price::ModelPrices;
use super::question::{AgentLayer, AgentQuestion, TryCost, TryError, TryMeter};
use super::retry_timer::{DoorObserver, STOP_POLL_INTERVAL};
use super::role_agents::RoleAgents;
use super::settings::AgentKind;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use treebeam_core::event::BudgetKind;
use treebeam_core::policy::RunLimits;
use treebeam_run::port::{AgentReply, Cost, PortError, TokenUsage};

/// The pause between two tries to get this process's turn.
const BUDGET_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The most that may be spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// The most money.
    pub cost: Option<Cost>,
    /// The most tokens.
    pub tokens: Option<u64>,
}

impl From<&RunLimits> for Budget {
    fn from(limits: &RunLimits) -> Self {
        let cost = limits.max_cost_usd.map(|dollars| Cost::from_dollars(dollars.get()));
        Self { cost, tokens: limits.max_tokens_total }
    }
}

/// The budget layer around an inner one.
pub(super) struct BudgetLayer<'a, A> {
    inner: A,
    budget: Budget,
    calls: &'a CallStore,
    role_agents: &'a RoleAgents,
    prices: &'a ModelPrices,
    observer: &'a dyn DoorObserver,
    ledger: Mutex<BudgetLedger>,
    settled: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
struct BudgetLedger {
    spent: CallAmount,
    reserved: CallAmount,
    under_way: u32,
}

impl<'a, A> BudgetLayer<'a, A> {
    /// Creates the layer; it starts from the cost of the calls on disk.
    pub(super) fn new(
        inner: A,
        budget: Budget,
        calls: &'a CallStore,
        (role_agents, prices): (&'a RoleAgents, &'a ModelPrices),
        observer: &'a dyn DoorObserver,
    ) -> Result<Self, PortError> {
        let ledger = BudgetLedger { spent: calls.total_spent()?, ..BudgetLedger::default() };
        let (ledger, settled) = (Mutex::new(ledger), Condvar::new());
        Ok(Self { inner, budget, calls, role_agents, prices, observer, ledger, settled })
    }

    fn lock_ledger(&self) -> MutexGuard<'_, BudgetLedger> {
        // The ledger holds plain numbers, which are valid even after a panic of another thread.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the most that one try can cost; none for agents whose use is not counted.
    fn worst_case(&self, question: &AgentQuestion) -> Result<Option<CallAmount>, PortError> {
        let model = match &self.role_agents.settings_for(question.role)?.line {
            AgentKind::Model(model) => model,
            AgentKind::Command(_) | AgentKind::Tuner(_) => return Ok(None),
            // A CLI's use is unknown beforehand: the configured maximum counts, all as output.
            AgentKind::Cli(cli) => {
                let worst = TokenUsage { output: cli.max_tokens.into(), ..TokenUsage::default() };
                return Ok(Some(
                    self.amount_of_usage(cli.model.as_deref().unwrap_or_default(), &worst),
                ));
            }
        };
        let before = question.continues.as_ref().map_or(0, |continuation| continuation.tokens);
        // No token is shorter than a byte; the frame around a prompt has some more.
        let prompt = u64::try_from(question.prompt.len()).unwrap_or(u64::MAX);
        let input = prompt.saturating_add(before).saturating_add(64);
        let worst = TokenUsage { input, cached: 0, output: model.max_tokens.into() };
        Ok(Some(self.amount_of_usage(&model.name, &worst)))
    }

    fn amount_of_usage(&self, model: &str, usage: &TokenUsage) -> CallAmount {
        let cost = self.cost_of_usage(model, usage).unwrap_or_default();
        CallAmount { tokens: usage.total_tokens(), cost }
    }

    fn cost_of_usage(&self, model: &str, usage: &TokenUsage) -> Option<Cost> {
        self.prices.find_price(model).map(|(price, _)| price.cost_of(usage))
    }

    /// Waits until no other process reserves from the budget, and reads what the others use.
    fn wait_for_turn(&self) -> Result<BudgetTurn, TryError> {
        if self.budget == Budget::default() {
            return Ok(BudgetTurn::Undisputed);
        }
        loop {
            match self.calls.try_take_turn()? {
                BudgetTurn::Later if self.observer.wants_to_stop() => {
                    return Err(TryError::Interrupted);
                }
                BudgetTurn::Later => thread::sleep(BUDGET_POLL_INTERVAL),
                BudgetTurn::Undisputed => return Ok(BudgetTurn::Undisputed),
                ours @ BudgetTurn::Ours(_) => {
                    self.refresh_spent()?;
                    return Ok(ours);
                }
            }
        }
    }

    /// Reads all spending from disk, without this process's reservations, which count apart.
    fn refresh_spent(&self) -> Result<(), PortError> {
        let mut ledger = self.lock_ledger();
        let on_disk = self.calls.total_spent()?;
        ledger.spent = on_disk.saturating_sub(ledger.reserved);
        Ok(())
    }

    /// Reserves an amount, once it fits into what is left.
    fn reserve_amount(&self, worst: CallAmount) -> Result<(), TryError> {
        let mut ledger = self.lock_ledger();
        loop {
            let mut at_best = ledger.spent;
            at_best += worst;
            self.check_budget(at_best, ledger.spent)?;
            let mut at_worst = at_best;
            at_worst += ledger.reserved;
            if ledger.under_way == 0 || self.check_budget(at_worst, ledger.spent).is_ok() {
                ledger.reserved += worst;
                ledger.under_way += 1;
                return Ok(());
            }
            // Calls under way may take less than their worst case, which makes room.
            if self.observer.wants_to_stop() {
                return Err(TryError::Interrupted);
            }
            let waited = self.settled.wait_timeout(ledger, STOP_POLL_INTERVAL);
            ledger = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn check_budget(&self, sum: CallAmount, spent: CallAmount) -> Result<(), TryError> {
        if let Some(most) = self.budget.cost.filter(|most| sum.cost > *most) {
            let spent = spent.cost;
            let why = format!(
                "the next answer could cost more than `max_cost_usd`: {spent} of {most} are spent"
            );
            return Err(TryError::OverBudget { budget: BudgetKind::Cost, why });
        }
        if let Some(most) = self.budget.tokens.filter(|most| sum.tokens > *most) {
            let spent = spent.tokens;
            let why = format!(
                "the next answer could take more than `max_tokens_total`: {spent} of {most} tokens are spent"
            );
            return Err(TryError::OverBudget { budget: BudgetKind::Tokens, why });
        }
        Ok(())
    }

    /// Replaces a reservation by what was spent.
    fn book_spending(&self, worst: CallAmount, spent: CallAmount) {
        let mut ledger = self.lock_ledger();
        ledger.reserved = ledger.reserved.saturating_sub(worst);
        ledger.under_way = ledger.under_way.saturating_sub(1);
        ledger.spent += spent;
        self.settled.notify_all();
    }
}

impl<A: AgentLayer> AgentLayer for BudgetLayer<'_, A> {
    fn answer_question(
        &self,
        question: &AgentQuestion,
        meter: &dyn TryMeter,
    ) -> Result<AgentReply, TryError> {
        let Some(worst) = self.worst_case(question)? else {
            return self.inner.answer_question(question, meter);
        };
        let name = self.role_agents.settings_for(question.role)?.priced_model().unwrap_or_default();
        let held = Mutex::new(TryReservation::Nothing);
        let tries = BudgetedTries { layer: self, question, worst, held, outer: meter };
        tries.begin_try()?;
        let mut reply = match self.inner.answer_question(question, &tries) {
            Ok(reply) => reply,
            Err(trouble) => {
                match trouble.spent() {
                    TryCost::Nothing => tries.end_try(None)?,
                    TryCost::Unknown => tries.end_try(Some(worst))?,
                    TryCost::Known(usage) => {
                        tries.end_try(Some(self.amount_of_usage(name, &usage)))?;
                    }
                }
                return Err(trouble);
            }
        };
        reply.cost = reply.cost.or_else(|| self.cost_of_usage(name, &reply.usage?));
        let cost = reply.cost.unwrap_or_default();
        match reply.usage {
            Some(usage) => tries.finish_try(CallAmount { tokens: usage.total_tokens(), cost }),
            // Without a stated usage the worst case counts as spent.
            None => tries.end_try(Some(worst))?,
        }
        Ok(reply)
    }
}

/// The tries of one question.
struct BudgetedTries<'a, 'b, A> {
    layer: &'a BudgetLayer<'b, A>,
    question: &'a AgentQuestion,
    worst: CallAmount,
    held: Mutex<TryReservation>,
    /// The outer meter, which limits the time of the tries.
    outer: &'a dyn TryMeter,
}

/// State of the reservation of a try's worst case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TryReservation {
    Nothing,
    Worst,
}

impl<A> BudgetedTries<'_, '_, A> {
    fn lock_reservation(&self) -> MutexGuard<'_, TryReservation> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin_try(&self) -> Result<(), TryError> {
        let _turn = self.layer.wait_for_turn()?;
        self.layer.reserve_amount(self.worst)?;
        *self.lock_reservation() = TryReservation::Worst;
        let reserved = self.layer.calls.reserve(self.question, self.worst);
        if reserved.is_err() {
            self.finish_try(CallAmount::default());
        }
        Ok(reserved?)
    }

    /// Ends the last try, which brought no answer and has cost this.
    fn end_try(&self, spent: Option<CallAmount>) -> Result<(), PortError> {
        if *self.lock_reservation() == TryReservation::Nothing {
            return Ok(());
        }
        self.finish_try(spent.unwrap_or_default());
        match spent {
            None => self.layer.calls.release(self.question),
            Some(spent) if spent == self.worst => self.layer.calls.mark_lost(self.question),
            Some(spent) => self.layer.calls.mark_amount_lost(self.question, spent),
        }
    }

    fn finish_try(&self, spent: CallAmount) {
        let held = std::mem::replace(&mut *self.lock_reservation(), TryReservation::Nothing);
        if held == TryReservation::Worst {
            self.layer.book_spending(self.worst, spent);
        }
    }
}

impl<A: AgentLayer> TryMeter for BudgetedTries<'_, '_, A> {
    fn another_try(&self) -> Result<(), TryError> {
        self.end_try(Some(self.worst))?;
        self.begin_try()
    }

    fn remaining_time(&self) -> Option<Duration> {
        self.outer.remaining_time()
    }

    fn deadline(&self) -> Option<Instant> {
        self.outer.deadline()
    }
}

impl<A> Drop for BudgetedTries<'_, '_, A> {
    /// Books the whole reservation as spent if the thread panicked.
    fn drop(&mut self) {
        self.finish_try(self.worst);
    }
}
