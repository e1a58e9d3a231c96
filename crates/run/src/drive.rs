//! The one loop: plan, record, do. The only place that appends to the journal and applies events.
//! Steps run on threads of their own, as many as the plan allows; a sweep needs no thread while it runs.

mod inbox;
mod outcomes;
mod suspects;
mod threads;

use crate::brief;
use crate::port::{AgentError, Checkpoint, Interrupted, JobEnd, Journal, Moment, PortError, World};
use crate::stage::StepEnd;
use inbox::Heard;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope};
use treebeam_core::event::{Event, Subject};
use treebeam_core::facts::Baseline;
use treebeam_core::id::EvalId;
use treebeam_core::plan::{self, Move, Running, Step};
use treebeam_core::state::{State, Unexpected};

/// Why the loop ended before the run did. Nothing is lost: a resume goes on from the record.
#[derive(Debug, thiserror::Error)]
pub enum Halt {
    /// Somebody asked for it: what was under way has ended, what the executor has goes on without us.
    #[error("interrupted")]
    Interrupted(Box<State>),
    /// The world refused something that the run cannot do without.
    #[error(transparent)]
    Port(#[from] PortError),
    /// No agent answers, whatever it is asked.
    #[error(transparent)]
    Agent(AgentError),
    /// There is nothing to compare with.
    #[error("the root cannot be used as a baseline: {why}")]
    RootUnsound {
        /// What is wrong with its sweep.
        why: String,
    },
    /// The user's own files are not those that the root was measured on: what is measured now could not be compared with it.
    #[error("the sweep of `{subject}` is not submitted: {why}")]
    InputsChanged {
        /// Whose sweep it is.
        subject: Subject,
        /// Which files, as far as that is known.
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

impl Halt {
    /// The same, where the world refused something, with what the run was doing. An interruption stays as it is.
    fn during(self, doing: &str) -> Self {
        match self {
            Self::Port(error) if !error.is_interruption() => {
                let hint = error.hint.clone();
                let above = PortError::new(format!("the run stopped while {doing}"));
                Self::Port(PortError { hint, ..above.caused_by(error) })
            }
            other @ (Self::Port(_)
            | Self::Interrupted(_)
            | Self::Agent(_)
            | Self::RootUnsound { .. }
            | Self::InputsChanged { .. }
            | Self::Promotion { .. }
            | Self::Unexpected(_)
            | Self::Broken { .. }) => other,
        }
    }
}

impl From<AgentError> for Halt {
    /// Whoever waits for an answer when everything is asked to end was interrupted, and nothing else.
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Unavailable(error) if error.is_interruption() => Self::Port(error),
            AgentError::Interrupted => {
                let error = PortError::new("the answer is not there yet");
                Self::Port(error.caused_by(Interrupted))
            }
            other @ (AgentError::Unavailable(_)
            | AgentError::Unanswered(_)
            | AgentError::Forgotten(_)
            | AgentError::OutOfTime(_)
            | AgentError::OverBudget { .. }) => Self::Agent(other),
        }
    }
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
            losses: BTreeMap::new(),
            adopted: BTreeSet::new(),
            void: BTreeMap::new(),
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

/// What a thread brings back.
enum Report {
    Stepped(Step, Result<Option<StepEnd>, Halt>),
    Polled(Result<Vec<JobEnd>, Halt>),
    /// Nothing came of a job whose sweep has to be run again.
    Collected(Subject, Result<Option<StepEnd>, Halt>),
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
    held: Vec<(Option<Step>, StepEnd)>,
    /// Events that are applied and not yet on disk: nothing is done about them before they are.
    batch: Vec<Event>,
    /// An append has failed: the state is ahead of what is on disk, and nothing more may be written.
    broken: bool,
    promotion_failures: u32,
    /// How often in a row the job of a subject was lost.
    losses: BTreeMap<Subject, u32>,
    /// Jobs that an earlier process of the run submitted, and that are not collected yet.
    adopted: BTreeSet<Subject>,
    /// Submissions whose results do not count, though their jobs are still under way.
    void: BTreeMap<Subject, u32>,
    polling: bool,
    /// Jobs that have ended and whose results are being taken in.
    collecting: BTreeSet<Subject>,
    /// Threads that have not reported back.
    threads: usize,
    world: World<'env>,
    journal: &'env mut dyn Journal,
    watch: &'env mut dyn FnMut(&State, &[Event]),
    scope: &'scope Scope<'scope, 'env>,
    sender: Sender<Report>,
    receiver: Receiver<Report>,
}

impl Coordinator<'_, '_> {
    fn run(&mut self) -> Result<Left, Halt> {
        let left = match self.go() {
            Err(Halt::Port(error)) if error.is_interruption() => Ok(Left::Interrupted),
            left => left,
        };
        // A question that waits for a server would keep the run from its end for hours.
        self.world.interrupt.end_waits();
        let usable = !self.broken && !matches!(left, Err(Halt::Unexpected(_)));
        if let (true, Err(Halt::InputsChanged { subject, .. })) = (usable, &left) {
            self.void_sweeps_beside(*subject)?;
        }
        let down = if usable { self.wind_down() } else { Ok(()) };
        let left = left?;
        down.map(|()| left)
    }

    /// Nobody has to wake the loop up: it looks into the inbox now and then, and at an interrupt with it.
    fn go(&mut self) -> Result<Left, Halt> {
        self.finish_restoring()?;
        self.adopt()?;
        self.unpause()?;
        loop {
            let heard = self.read_inbox()?;
            if heard == Heard::Stop || self.world.interrupt.is_asked_for() {
                return Ok(self.left());
            }
            let paused = self.state.history.paused_since.is_some();
            let steps = if paused { Vec::new() } else { self.plan()? };
            self.record()?;
            for step in steps {
                self.start(step)?;
            }
            self.poll()?;
            if !paused && self.running.steps.is_empty() && self.running.jobs.is_empty() {
                return Ok(self.left());
            }
            self.receive()?;
        }
    }

    /// A run that is over has nothing left to interrupt; what could not be removed is tried another time.
    fn left(&self) -> Left {
        let over = self.state.stop_reason().is_some();
        if over { Left::AtTheEnd } else { Left::Interrupted }
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
                self.examine()?;
                self.record()?;
                self.checkpoint(Checkpoint::End)?;
                return seen;
            }
            let Ok(report) = self.receiver.recv() else { return seen };
            self.threads -= 1;
            match report {
                Report::Stepped(step, Ok(Some(outcome))) => self.held.push((Some(step), outcome)),
                Report::Collected(subject, Ok(Some(outcome))) => {
                    if self.void.remove(&subject).is_none() {
                        self.held.push((None, outcome));
                    }
                }
                Report::Stepped(..) | Report::Collected(..) | Report::Polled(_) => {}
            }
        }
    }

    /// Sweeps that another process submitted and that the executor still knows.
    fn adopt(&mut self) -> Result<(), Halt> {
        let root = (self.state.baseline == Baseline::Unmeasured).then_some(Subject::Root);
        let evals = self.state.sweeping().iter().copied().map(Subject::Eval);
        let jobs: Vec<_> = evals
            .chain(root)
            .filter_map(|subject| brief::job(&self.state, subject))
            .filter(|job| job.key.submission > 0)
            .collect();
        let known = self.world.executor.adopt(&jobs)?;
        self.running.jobs = known.into_iter().map(|key| key.subject).collect();
        self.adopted.clone_from(&self.running.jobs);
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
        if self.batch.is_empty() {
            return Ok(());
        }
        self.examine()?;
        let appended = self.journal.append(&self.batch);
        self.rescue_unless(appended)?;
        let batch = std::mem::take(&mut self.batch);
        (self.watch)(&self.state, &batch);
        if batch.iter().any(|event| matches!(event, Event::DepthClosed { .. })) {
            self.checkpoint(Checkpoint::DepthClosed)?;
        }
        Ok(())
    }

    /// Compares the journal with what was written. What was put right is recorded with what comes next.
    fn examine(&mut self) -> Result<(), Halt> {
        let examined = self.journal.examine();
        match self.rescue_unless(examined)? {
            Some(event) => self.apply(event),
            None => Ok(()),
        }
    }

    /// After an error of the journal nothing more is written to it; what it has lost is kept in the manifest.
    fn rescue_unless<T>(&mut self, done: Result<T, PortError>) -> Result<T, Halt> {
        done.map_err(|error| {
            self.broken = true;
            match self.journal.rescue(&self.state, self.batch.len()) {
                Ok(()) => error.into(),
                Err(unsaved) => error.hint(unsaved.in_full()).into(),
            }
        })
    }

    /// Writes the state down, and lets the repository name the journal's last line.
    fn checkpoint(&mut self, moment: Checkpoint) -> Result<(), Halt> {
        self.journal.checkpoint(&self.state, moment)?;
        let Some(tip) = self.journal.tip() else { return Ok(()) };
        match self.world.repo.mark_journal(&tip) {
            // The next stop or closed depth says it.
            Err(error) if error.is_interruption() => Ok(()),
            marked => Ok(marked?),
        }
    }
}
