//! The one loop: plan, record, do. The only place that appends to the journal and applies events.
//! Steps run on threads of their own, as many as the plan allows; a sweep needs no thread while it runs.

use crate::brief;
use crate::port::{Checkpoint, JobEnd, Journal, Moment, PortError, World};
use crate::stage;
use std::any::Any;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope};
use std::time::Duration;
use treebeam_core::event::{EvalStage, Event, Subject};
use treebeam_core::facts::Baseline;
use treebeam_core::id::EvalId;
use treebeam_core::plan::{self, Move, Outcome, Running, Step};
use treebeam_core::state::{State, Unexpected};

/// How long one question to the executor may wait for a job to end.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often in a row a promotion may fail before the run halts.
const PROMOTION_TRIES: u32 = 3;

/// Why the loop ended before the run did. Nothing is lost: a resume goes on from the record.
#[derive(Debug, thiserror::Error)]
pub enum Halt {
    /// Somebody asked for it: what was under way has ended, what the executor has goes on without us.
    #[error("interrupted")]
    Interrupted(Box<State>),
    /// The world refused something that the run cannot do without.
    #[error(transparent)]
    Port(#[from] PortError),
    /// There is nothing to compare with.
    #[error("the root cannot be used as a baseline: {why}")]
    RootUnsound {
        /// What is wrong with its sweep.
        why: String,
    },
    /// A node could not be made.
    #[error("eval {eval} could not be promoted: {why}")]
    Promotion {
        /// Which eval.
        eval: EvalId,
        /// Why.
        why: String,
    },
    /// The record and the loop disagree.
    #[error(transparent)]
    Unexpected(#[from] Unexpected),
    /// A step did not end as a step does.
    #[error("{step} broke off: {why}")]
    Broken {
        /// Which.
        step: String,
        /// What it said.
        why: String,
    },
}

/// Drives a run to its end, from wherever `state` says it is. `watch` sees every event once it is on disk and applied.
///
/// # Errors
/// When the run cannot go on now.
pub fn drive(
    state: State,
    world: World<'_>,
    journal: &mut dyn Journal,
    watch: &mut dyn FnMut(&State, &[Event]),
) -> Result<State, Halt> {
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        let mut coordinator = Coordinator {
            state,
            running: Running::default(),
            held: Vec::new(),
            batch: Vec::new(),
            broken: false,
            promotion_failures: 0,
            polling: false,
            collecting: BTreeSet::new(),
            threads: 0,
            world,
            journal,
            watch,
            scope,
            sender,
            receiver,
        };
        match coordinator.run()? {
            Left::AtTheEnd => Ok(coordinator.state),
            Left::Interrupted => Err(Halt::Interrupted(Box::new(coordinator.state))),
        }
    })
}

enum Message {
    Stepped(Step, Result<Option<Outcome>, Halt>),
    Polled(Result<Vec<JobEnd>, Halt>),
    Collected(Subject, Result<Outcome, Halt>),
}

/// Why there is nothing more to start.
enum Left {
    AtTheEnd,
    Interrupted,
}

struct Coordinator<'scope, 'env> {
    state: State,
    running: Running,
    /// Outcomes whose turn has not come.
    held: Vec<(Option<Step>, Outcome)>,
    /// Events that are applied and not yet on disk: nothing is done about them before they are.
    batch: Vec<Event>,
    /// An append has failed: the state is ahead of what is on disk, and nothing more may be written.
    broken: bool,
    promotion_failures: u32,
    polling: bool,
    /// Jobs that have ended and whose results are being taken in.
    collecting: BTreeSet<Subject>,
    /// Threads that have not reported back.
    threads: usize,
    world: World<'env>,
    journal: &'env mut dyn Journal,
    watch: &'env mut dyn FnMut(&State, &[Event]),
    scope: &'scope Scope<'scope, 'env>,
    sender: Sender<Message>,
    receiver: Receiver<Message>,
}

impl Coordinator<'_, '_> {
    fn run(&mut self) -> Result<Left, Halt> {
        let left = self.go();
        let usable = !self.broken && !matches!(left, Err(Halt::Unexpected(_)));
        let down = if usable { self.wind_down() } else { Ok(()) };
        let left = left?;
        down.map(|()| left)
    }

    /// Nobody has to wake the loop up for an interrupt: whatever it waits for, winding down would wait for too.
    fn go(&mut self) -> Result<Left, Halt> {
        self.adopt()?;
        loop {
            if self.world.interrupt.is_asked_for() {
                // A run that is over has nothing left to interrupt; what could not be removed is tried another time.
                let over = self.state.stop_reason().is_some();
                return Ok(if over { Left::AtTheEnd } else { Left::Interrupted });
            }
            let steps = self.plan()?;
            self.record()?;
            for step in steps {
                self.start(step)?;
            }
            self.poll()?;
            if self.running.steps.is_empty() && self.running.jobs.is_empty() {
                return Ok(Left::AtTheEnd);
            }
            self.receive()?;
        }
    }

    /// Nothing new starts, but what is under way may end and is recorded, and the whole state is written down.
    fn wind_down(&mut self) -> Result<(), Halt> {
        let mut seen = Ok(());
        loop {
            match self.accept_held() {
                Err(halt @ Halt::Unexpected(_)) => return Err(halt),
                // A halt like any other: what it follows from is recorded first.
                accepted => seen = seen.and(accepted),
            }
            self.record()?;
            if self.threads == 0 {
                self.journal.checkpoint(&self.state, Checkpoint::End)?;
                return seen;
            }
            let Ok(message) = self.receiver.recv() else { return seen };
            self.threads -= 1;
            match message {
                Message::Stepped(step, Ok(Some(outcome))) => self.held.push((Some(step), outcome)),
                Message::Collected(_, Ok(outcome)) => self.held.push((None, outcome)),
                Message::Stepped(..) | Message::Collected(..) | Message::Polled(_) => {}
            }
        }
    }

    /// Sweeps that another process submitted and that the executor still knows.
    fn adopt(&mut self) -> Result<(), Halt> {
        let root = (self.state.baseline == Baseline::Unmeasured).then_some(Subject::Root);
        let evals = self.state.sweeping().iter().copied().map(Subject::Eval);
        let keys: Vec<_> = evals
            .chain(root)
            .filter_map(|subject| brief::job(&self.state, subject))
            .filter(|job| job.key.submission > 0)
            .map(|job| job.key)
            .collect();
        let known = self.world.executor.adopt(&keys)?;
        self.running.jobs = known.into_iter().map(|key| key.subject).collect();
        Ok(())
    }

    /// Decides until there is nothing left to decide, and says what is to be started.
    fn plan(&mut self) -> Result<Vec<Step>, Halt> {
        let mut steps = Vec::new();
        loop {
            let moves = plan::next(&self.state, &self.running, self.world.clock.now());
            if moves.is_empty() {
                return Ok(steps);
            }
            for next in moves {
                match next {
                    Move::Start(step) => {
                        self.announce(step)?;
                        steps.push(step);
                    }
                    Move::Record(event) => self.apply(event)?,
                    Move::Stop(reason) => {
                        let at = self.world.clock.at(Moment::Stop(self.state.next_eval()));
                        self.apply(Event::Stopped { reason, at })?;
                    }
                }
            }
        }
    }

    fn announce(&mut self, step: Step) -> Result<(), Halt> {
        let at = self.world.clock.at_or_now(brief::beginning(&self.state, step));
        self.running.last_tries.extend(plan::last_try(&self.state, step));
        if let Some(event) = plan::announce(&self.state, step, at) {
            self.apply(event)?;
        }
        self.running.steps.insert(step);
        if let Step::Sweep(subject) = step {
            self.running.jobs.insert(subject);
        }
        Ok(())
    }

    fn apply(&mut self, event: Event) -> Result<(), Halt> {
        self.state.apply(&event)?;
        self.batch.push(event);
        Ok(())
    }

    /// Puts on disk what was decided; only then may anything be done about it.
    fn record(&mut self) -> Result<(), Halt> {
        let batch = std::mem::take(&mut self.batch);
        if batch.is_empty() {
            return Ok(());
        }
        self.broken = true;
        self.journal.append(&batch)?;
        self.broken = false;
        (self.watch)(&self.state, &batch);
        if batch.iter().any(|event| matches!(event, Event::DepthClosed { .. })) {
            self.journal.checkpoint(&self.state, Checkpoint::DepthClosed)?;
        }
        Ok(())
    }

    fn start(&mut self, step: Step) -> Result<(), Halt> {
        let world = self.world;
        let brief = brief::of(&self.state, step);
        self.spawn(move || {
            let done = guarded(step, || match &brief {
                Some(brief) => stage::perform(brief, world),
                None => Err(broken(step, "the state has nothing to tell it")),
            });
            Message::Stepped(step, done)
        })
    }

    /// Asks the executor once more for ended jobs, while there are any that could end.
    fn poll(&mut self) -> Result<(), Halt> {
        let Some(job) = self.running.jobs.difference(&self.collecting).next().copied() else {
            return Ok(());
        };
        if self.polling {
            return Ok(());
        }
        self.polling = true;
        let executor = self.world.executor;
        self.spawn(move || {
            let wait = || executor.wait(PATIENCE).map_err(Halt::from);
            Message::Polled(guarded(Step::Sweep(job), wait))
        })
    }

    /// Takes in what a job left behind. The late end of an earlier submission is nobody's any more.
    fn collect(&mut self, end: JobEnd) -> Result<(), Halt> {
        let subject = end.key.subject;
        let current = end.key.submission == self.state.submissions(subject);
        if !current || !self.running.jobs.contains(&subject) || !self.collecting.insert(subject) {
            return Ok(());
        }
        let (world, meaning) = (self.world, self.state.meaning.clone());
        self.spawn(move || {
            let take_in = || stage::sweep::collect(&end, &meaning, world);
            Message::Collected(subject, guarded(Step::Sweep(subject), take_in))
        })
    }

    /// Waits for something to end, and takes in all that has.
    fn receive(&mut self) -> Result<(), Halt> {
        let Ok(first) = self.receiver.recv() else { return Ok(()) };
        self.take(first)?;
        while let Ok(message) = self.receiver.try_recv() {
            self.take(message)?;
        }
        self.accept_held()
    }

    fn take(&mut self, message: Message) -> Result<(), Halt> {
        self.threads -= 1;
        match message {
            Message::Stepped(step, done) => match done? {
                Some(outcome) => self.held.push((Some(step), outcome)),
                None => drop(self.running.steps.remove(&step)),
            },
            Message::Polled(ended) => {
                self.polling = false;
                for end in ended? {
                    self.collect(end)?;
                }
            }
            Message::Collected(subject, done) => {
                self.collecting.remove(&subject);
                self.running.jobs.remove(&subject);
                self.held.push((None, done?));
            }
        }
        Ok(())
    }

    /// Accepts outcomes in the order in which their turns come, whatever the order in which they came.
    fn accept_held(&mut self) -> Result<(), Halt> {
        let mut waiting = std::mem::take(&mut self.held);
        let mut seen = Ok(());
        loop {
            let before = waiting.len();
            for (step, outcome) in std::mem::take(&mut waiting) {
                let at = self.world.clock.at_or_now(ending(&self.state, &outcome));
                let Some(event) = plan::accept(&self.state, &outcome, at) else {
                    waiting.push((step, outcome));
                    continue;
                };
                self.apply(event)?;
                if let Some(step) = step {
                    self.running.steps.remove(&step);
                }
                seen = seen.and(self.look_at(&outcome));
            }
            if waiting.is_empty() || waiting.len() == before {
                self.held = waiting;
                return seen;
            }
        }
    }

    /// Some outcomes are recorded and end the loop all the same: without a root there is nothing to compare with, and a
    /// promotion is tried again, but not for ever.
    fn look_at(&mut self, outcome: &Outcome) -> Result<(), Halt> {
        match outcome {
            Outcome::Promoted(_) => self.promotion_failures = 0,
            Outcome::PromotionFailed { eval, why } => {
                self.promotion_failures += 1;
                if self.promotion_failures >= PROMOTION_TRIES {
                    return Err(Halt::Promotion { eval: *eval, why: why.clone() });
                }
            }
            Outcome::RootRefused { why } => return Err(Halt::RootUnsound { why: why.clone() }),
            Outcome::RootMeasured { .. }
            | Outcome::Proposed(_)
            | Outcome::ProposalFailed { .. }
            | Outcome::Implemented { .. }
            | Outcome::Swept { .. }
            | Outcome::Scored { .. }
            | Outcome::EvalFailed { .. }
            | Outcome::Discarded(_)
            | Outcome::DiscardFailed { .. } => {}
        }
        Ok(())
    }
}

impl<'scope> Coordinator<'scope, '_> {
    /// Does something on a thread of its own, which reports back with one message.
    fn spawn(&mut self, work: impl FnOnce() -> Message + Send + 'scope) -> Result<(), Halt> {
        let sender = self.sender.clone();
        let thread = thread::Builder::new();
        let report = move || drop(sender.send(work()));
        thread.spawn_scoped(self.scope, report).map_err(|error| {
            let what = "cannot start a thread";
            PortError::new(what).hint("lower `--max-parallel-evals`").caused_by(error)
        })?;
        self.threads += 1;
        Ok(())
    }
}

/// What the end of a step is dated by; nothing where the time on the wall will do.
fn ending(state: &State, outcome: &Outcome) -> Option<Moment> {
    let of_eval = |eval, stage| Some(Moment::Eval(eval, stage, brief::attempt_of(state, eval)));
    match outcome {
        Outcome::RootMeasured { .. } => Some(Moment::Start),
        Outcome::Proposed(proposal) => Some(brief::expansion(state, proposal.node)),
        Outcome::ProposalFailed { node, .. } => Some(brief::expansion(state, *node)),
        Outcome::Implemented { eval, .. } => of_eval(*eval, EvalStage::Implement),
        Outcome::Swept { eval, .. } => of_eval(*eval, EvalStage::Sweep),
        Outcome::Scored { eval, .. } => of_eval(*eval, EvalStage::Score),
        Outcome::EvalFailed { eval, failure } => of_eval(*eval, failure.stage),
        Outcome::Promoted(eval) => Some(Moment::Promotion(*eval)),
        Outcome::RootRefused { .. }
        | Outcome::PromotionFailed { .. }
        | Outcome::Discarded(_)
        | Outcome::DiscardFailed { .. } => None,
    }
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
