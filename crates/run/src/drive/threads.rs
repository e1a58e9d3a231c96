//! What the loop lets others do: each step, each question to the executor and each collecting on a thread that does nothing
//! else meanwhile, reports back once and never brings the loop down.

use super::{Coordinator, Done, Halt, Report};
use crate::brief;
use crate::port::{JobEnd, JobExit, PortError};
use crate::stage;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;
use treebeam_core::plan::Step;

/// How long one question to the executor may wait for a job to end.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often in a row the job of a code state may be lost: one that ends its own job each time is not run for ever.
const LOSSES: u32 = 3;
/// Why a step cannot begin that is on record.
const NOTHING: &str = "the state has nothing to tell it";

impl Coordinator<'_, '_> {
    pub(super) fn start(&mut self, step: Step) -> Result<(), Halt> {
        let world = self.world;
        let brief = brief::of(&self.state, step);
        self.spawn(move || {
            let done = guarded(step, || match &brief {
                Some(brief) => stage::perform(brief, world),
                None => Err(broken(step, NOTHING)),
            });
            Report::Stepped(step, done)
        })
    }

    /// Asks the executor once more for ended jobs, while it has any that could end. Whoever is asked earlier waits for
    /// something that is not there yet, and does not see it come.
    pub(super) fn poll(&mut self) -> Result<(), Halt> {
        let handed_over = |subject: &&_| {
            let submitting = self.running.steps.contains(&Step::Sweep(**subject));
            !submitting && !self.collecting.contains(subject)
        };
        let Some(job) = self.running.jobs.iter().find(handed_over).copied() else {
            return Ok(());
        };
        if self.polling {
            return Ok(());
        }
        self.polling = true;
        let executor = self.world.executor;
        self.spawn(move || {
            let wait = || executor.wait(PATIENCE).map_err(Halt::from);
            Report::Polled(guarded(Step::Sweep(job), wait))
        })
    }

    /// Takes in what a job left behind. The late end of an earlier submission is nobody's any more.
    pub(super) fn collect(&mut self, end: JobEnd) -> Result<(), Halt> {
        let subject = end.key.subject;
        let current = end.key.submission == self.state.submissions(subject);
        let expected = current && self.running.jobs.contains(&subject);
        if !expected || self.collecting.contains(&subject) || self.is_run_again(&end) {
            return Ok(());
        }
        self.collecting.insert(subject);
        let (world, brief) = (self.world, brief::for_collecting(&self.state, subject));
        self.spawn(move || {
            let step = Step::Sweep(subject);
            let take_in = || match &brief {
                Some(brief) => stage::sweep::collect(&end, brief, world),
                None => Err(broken(step, NOTHING)),
            };
            Report::Collected(subject, guarded(step, take_in))
        })
    }

    /// Whether a job is run again because it was lost. One that is lost each time is collected like one that failed.
    fn is_run_again(&mut self, end: &JobEnd) -> bool {
        let subject = end.key.subject;
        if !matches!(end.exit, JobExit::Lost { .. }) {
            self.losses.remove(&subject);
            return false;
        }
        let losses = self.losses.entry(subject).or_default();
        *losses += 1;
        let again = *losses < LOSSES;
        if again {
            self.running.jobs.remove(&subject);
        } else {
            self.losses.remove(&subject);
        }
        again
    }
}

/// Something to do, and where its doer hears of the next: it hands that back with its report. Whoever has nothing to do
/// holds nothing that would keep it waiting once the loop is gone.
pub(super) struct Order<'scope> {
    work: Box<dyn FnOnce() -> Report + Send + 'scope>,
    next: Sender<Self>,
}

impl<'scope> Coordinator<'scope, '_> {
    /// Has something done on a thread, which reports back once. The one that was at work last is the first to be asked: its
    /// memory is at hand, and the others need none.
    fn spawn(&mut self, work: impl FnOnce() -> Report + Send + 'scope) -> Result<(), Halt> {
        let next = match self.idle.pop() {
            Some(idle) => idle,
            None => self.hire()?,
        };
        let order = Order { work: Box::new(work), next: next.clone() };
        next.send(order).map_err(|_| broken_thread())?;
        self.threads += 1;
        Ok(())
    }

    /// One more thread, which lives as long as the loop.
    fn hire(&self) -> Result<Sender<Order<'scope>>, Halt> {
        let (sender, orders) = channel::<Order<'scope>>();
        let reports = self.sender.clone();
        let serve = move || {
            for Order { work, next } in orders {
                drop(reports.send(Done { report: work(), next }));
            }
        };
        thread::Builder::new().spawn_scoped(self.scope, serve).map_err(|error| {
            let what = "cannot start a thread";
            PortError::new(what).hint("lower `--max-parallel-evals`").caused_by(error)
        })?;
        Ok(sender)
    }

    /// Whoever has reported may be asked again.
    pub(super) fn heard(&mut self, done: Done<'scope>) -> Report {
        self.threads -= 1;
        self.idle.push(done.next);
        done.report
    }
}

fn broken_thread() -> Halt {
    Halt::Broken { step: "a thread".to_owned(), why: "it is gone".to_owned() }
}

fn guarded<T>(step: Step, work: impl FnOnce() -> Result<T, Halt>) -> Result<T, Halt> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(broken(step, &said(&*panic))))
}

fn broken(step: Step, why: &str) -> Halt {
    Halt::Broken { step: format!("{step:?}"), why: why.to_owned() }
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it did not say why").to_owned()
}
