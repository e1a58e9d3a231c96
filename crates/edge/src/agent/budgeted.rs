//! Keeps within a budget. Before a call the worst that it may cost is on disk; afterwards counts what it did cost. So
//! whatever happens in between, the next start knows of it.

use super::calls::{Amount, Calls, Turn};
use super::crew::Crew;
use super::price::Prices;
use super::question::{Answer, Meter, Question, Spent, Trouble};
use super::settings::Line;
use super::wait::{GLANCE, Observer};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use treebeam_core::event::BudgetKind;
use treebeam_core::policy::Reach;
use treebeam_run::port::{Cost, PortError, Reply, Usage};

/// How long somebody waits whose turn has not come.
const MOMENT: Duration = Duration::from_millis(5);

/// The most that may be spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// In money.
    pub cost: Option<Cost>,
    /// In tokens.
    pub tokens: Option<u64>,
}

impl From<&Reach> for Budget {
    fn from(reach: &Reach) -> Self {
        let cost = reach.max_cost_usd.map(|dollars| Cost::dollars(dollars.get()));
        Self { cost, tokens: reach.max_tokens_total }
    }
}

/// A layer that counts.
pub(super) struct Budgeted<'a, A> {
    inner: A,
    budget: Budget,
    calls: &'a Calls,
    crew: &'a Crew,
    prices: &'a Prices,
    observer: &'a dyn Observer,
    ledger: Mutex<Ledger>,
    settled: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ledger {
    spent: Amount,
    reserved: Amount,
    under_way: u32,
}

impl<'a, A> Budgeted<'a, A> {
    /// Starts from what the calls on disk have cost.
    pub(super) fn new(
        inner: A,
        budget: Budget,
        calls: &'a Calls,
        (crew, prices): (&'a Crew, &'a Prices),
        observer: &'a dyn Observer,
    ) -> Result<Self, PortError> {
        let ledger = Ledger { spent: calls.spent()?, ..Ledger::default() };
        let (ledger, settled) = (Mutex::new(ledger), Condvar::new());
        Ok(Self { inner, budget, calls, crew, prices, observer, ledger, settled })
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // A number is whole even where a thread has broken off.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The most that one try can cost; none where nobody counts.
    fn worst(&self, question: &Question) -> Result<Option<Amount>, PortError> {
        let model = match &self.crew.settings(question.role)?.line {
            Line::Model(model) => model,
            Line::Command(_) | Line::Tuner(_) => return Ok(None),
            // Nobody knows what it will do: what was set for it, as if all of it were written.
            Line::Cli(cli) => {
                let worst = Usage { output: cli.max_tokens.into(), ..Usage::default() };
                return Ok(Some(self.amount(cli.model.as_deref().unwrap_or_default(), &worst)));
            }
        };
        let before = question.continues.as_ref().map_or(0, |continuation| continuation.tokens);
        // No token is shorter than a byte; the frame around a prompt has some more.
        let prompt = u64::try_from(question.prompt.len()).unwrap_or(u64::MAX);
        let input = prompt.saturating_add(before).saturating_add(64);
        let worst = Usage { input, cached: 0, output: model.max_tokens.into() };
        Ok(Some(self.amount(&model.name, &worst)))
    }

    fn amount(&self, model: &str, usage: &Usage) -> Amount {
        let cost = self.cost(model, usage).unwrap_or_default();
        Amount { tokens: usage.total(), cost }
    }

    fn cost(&self, model: &str, usage: &Usage) -> Option<Cost> {
        self.prices.of(model).map(|(price, _)| price.cost(usage))
    }

    /// Waits until no other process reserves anything from the same budget, and looks up what others have spent and reserved.
    fn turn(&self) -> Result<Turn, Trouble> {
        if self.budget == Budget::default() {
            return Ok(Turn::Undisputed);
        }
        loop {
            match self.calls.turn()? {
                Turn::Later if self.observer.wants_to_stop() => return Err(Trouble::Interrupted),
                Turn::Later => thread::sleep(MOMENT),
                Turn::Undisputed => return Ok(Turn::Undisputed),
                ours @ Turn::Ours(_) => {
                    self.look_again()?;
                    return Ok(ours);
                }
            }
        }
    }

    /// What this process has reserved is on disk too, and is counted apart.
    fn look_again(&self) -> Result<(), PortError> {
        let mut ledger = self.ledger();
        let on_disk = self.calls.spent()?;
        ledger.spent = on_disk.minus(ledger.reserved);
        Ok(())
    }

    /// Takes an amount out of what is left, once it is known that it is there.
    fn take(&self, worst: Amount) -> Result<(), Trouble> {
        let mut ledger = self.ledger();
        loop {
            let mut at_best = ledger.spent;
            at_best += worst;
            self.must_fit(at_best, ledger.spent)?;
            let mut at_worst = at_best;
            at_worst += ledger.reserved;
            if ledger.under_way == 0 || self.must_fit(at_worst, ledger.spent).is_ok() {
                ledger.reserved += worst;
                ledger.under_way += 1;
                return Ok(());
            }
            // Those under way will take less than they might: then there may be room.
            if self.observer.wants_to_stop() {
                return Err(Trouble::Interrupted);
            }
            let waited = self.settled.wait_timeout(ledger, GLANCE);
            ledger = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn must_fit(&self, sum: Amount, spent: Amount) -> Result<(), Trouble> {
        if let Some(most) = self.budget.cost.filter(|most| sum.cost > *most) {
            let spent = spent.cost;
            let why = format!(
                "the next answer could cost more than `max_cost_usd`: {spent} of {most} are spent"
            );
            return Err(Trouble::OverBudget { budget: BudgetKind::Cost, why });
        }
        if let Some(most) = self.budget.tokens.filter(|most| sum.tokens > *most) {
            let spent = spent.tokens;
            let why = format!(
                "the next answer could take more than `max_tokens_total`: {spent} of {most} tokens are spent"
            );
            return Err(Trouble::OverBudget { budget: BudgetKind::Tokens, why });
        }
        Ok(())
    }

    /// What was reserved has become what was spent.
    fn settle(&self, worst: Amount, spent: Amount) {
        let mut ledger = self.ledger();
        ledger.reserved = ledger.reserved.minus(worst);
        ledger.under_way = ledger.under_way.saturating_sub(1);
        ledger.spent += spent;
        self.settled.notify_all();
    }
}

impl<A: Answer> Answer for Budgeted<'_, A> {
    fn answer(&self, question: &Question, meter: &dyn Meter) -> Result<Reply, Trouble> {
        let Some(worst) = self.worst(question)? else {
            return self.inner.answer(question, meter);
        };
        let name = self.crew.settings(question.role)?.counted().unwrap_or_default();
        let held = Mutex::new(Held::Nothing);
        let tries = Tries { layer: self, question, worst, held, outer: meter };
        tries.begin()?;
        let mut reply = match self.inner.answer(question, &tries) {
            Ok(reply) => reply,
            Err(trouble) => {
                match trouble.spent() {
                    Spent::Nothing => tries.end(None)?,
                    Spent::Perhaps => tries.end(Some(worst))?,
                    Spent::Known(usage) => tries.end(Some(self.amount(name, &usage)))?,
                }
                return Err(trouble);
            }
        };
        reply.cost = reply.cost.or_else(|| self.cost(name, &reply.usage?));
        let cost = reply.cost.unwrap_or_default();
        match reply.usage {
            Some(usage) => tries.settle(Amount { tokens: usage.total(), cost }),
            // Where nobody said what it took, the worst is taken to be true.
            None => tries.end(Some(worst))?,
        }
        Ok(reply)
    }
}

/// The tries of one question.
struct Tries<'a, 'b, A> {
    layer: &'a Budgeted<'b, A>,
    question: &'a Question,
    worst: Amount,
    held: Mutex<Held>,
    /// Knows how long they may take.
    outer: &'a dyn Meter,
}

/// Whether the worst of a try is taken out of what is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Nothing,
    Worst,
}

impl<A> Tries<'_, '_, A> {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) -> Result<(), Trouble> {
        let _turn = self.layer.turn()?;
        self.layer.take(self.worst)?;
        *self.held() = Held::Worst;
        let reserved = self.layer.calls.reserve(self.question, self.worst);
        if reserved.is_err() {
            self.settle(Amount::default());
        }
        Ok(reserved?)
    }

    /// The last try brought no answer and has cost this.
    fn end(&self, spent: Option<Amount>) -> Result<(), PortError> {
        if *self.held() == Held::Nothing {
            return Ok(());
        }
        self.settle(spent.unwrap_or_default());
        match spent {
            None => self.layer.calls.release(self.question),
            Some(spent) if spent == self.worst => self.layer.calls.lose(self.question),
            Some(spent) => self.layer.calls.lose_exactly(self.question, spent),
        }
    }

    fn settle(&self, spent: Amount) {
        let held = std::mem::replace(&mut *self.held(), Held::Nothing);
        if held == Held::Worst {
            self.layer.settle(self.worst, spent);
        }
    }
}

impl<A: Answer> Meter for Tries<'_, '_, A> {
    fn another_try(&self) -> Result<(), Trouble> {
        self.end(Some(self.worst))?;
        self.begin()
    }

    fn left(&self) -> Option<Duration> {
        self.outer.left()
    }

    fn end(&self) -> Option<Instant> {
        self.outer.end()
    }
}

impl<A> Drop for Tries<'_, '_, A> {
    /// A thread that broke off has spent what it held.
    fn drop(&mut self) {
        self.settle(self.worst);
    }
}
