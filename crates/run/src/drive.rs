//! The main loop of a run: plan, record, start steps, accept their outcomes. While it runs,
//! only it appends to the journal and applies events. Steps run on threads of their own, as
//! many as the plan allows; a sweep needs no thread while it runs.

mod inbox;
mod outcomes;
mod suspects;
mod threads;

use crate::brief;
use crate::error::RunHalt;
use crate::port::{CheckpointKind, JobEnd, Journal, PortError, RecordedMoment};
use crate::run_ports::RunPorts;
use crate::step_files::StepEnd;
use inbox::InboxEffect;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope};
use treebeam_core::event::{Event, SweepSubject};
use treebeam_core::facts::RootBaseline;
use treebeam_core::plan::{self, PlanMove, RunningSteps, Step};
use treebeam_core::state::State;

/// Drives a run to its end from `state`. `watch` gets each batch of events that is on disk.
///
/// # Errors
/// When the run cannot go on now.
pub fn drive_run(
    state: State,
    world: RunPorts<'_>,
    journal: &mut dyn Journal,
    watch: &mut dyn FnMut(&State, &[Event]),
) -> Result<State, RunHalt> {
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        let mut coordinator = RunDriver {
            state,
            running: RunningSteps::default(),
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
        match coordinator.drive_to_end()? {
            LoopEnd::Finished => Ok(coordinator.state),
            LoopEnd::Interrupted => Err(RunHalt::Interrupted(Box::new(coordinator.state))),
        }
    })
}

/// The report of a thread to the loop.
enum ThreadReport {
    Stepped(Step, Result<Option<StepEnd>, RunHalt>),
    Polled(Result<Vec<JobEnd>, RunHalt>),
    /// The end of collecting a job; `None` if its sweep has to be run again.
    Collected(SweepSubject, Result<Option<StepEnd>, RunHalt>),
}

/// The regular end of the loop.
enum LoopEnd {
    Finished,
    Interrupted,
}

struct RunDriver<'scope, 'env> {
    state: State,
    running: RunningSteps,
    /// Outcomes whose turn has not come.
    held: Vec<(Option<Step>, StepEnd)>,
    /// Events that are applied and not yet on disk; no step acts on them before they are.
    batch: Vec<Event>,
    /// True once an append has failed: the state is ahead of the disk, nothing may be written.
    broken: bool,
    promotion_failures: u32,
    /// How often in a row the job of a subject was lost.
    losses: BTreeMap<SweepSubject, u32>,
    /// Jobs that an earlier process of the run submitted, and that are not collected yet.
    adopted: BTreeSet<SweepSubject>,
    /// Submissions whose results do not count, though their jobs are still running.
    void: BTreeMap<SweepSubject, u32>,
    polling: bool,
    /// Jobs that have ended and whose results are being collected.
    collecting: BTreeSet<SweepSubject>,
    /// Number of threads that have not reported back.
    threads: usize,
    world: RunPorts<'env>,
    journal: &'env mut dyn Journal,
    watch: &'env mut dyn FnMut(&State, &[Event]),
    scope: &'scope Scope<'scope, 'env>,
    sender: Sender<ThreadReport>,
    receiver: Receiver<ThreadReport>,
}

impl RunDriver<'_, '_> {
    fn drive_to_end(&mut self) -> Result<LoopEnd, RunHalt> {
        let left = match self.run_loop() {
            Err(RunHalt::Port(error)) if error.is_interruption() => Ok(LoopEnd::Interrupted),
            left => left,
        };
        // A question that waits for a server would keep the run from its end for hours.
        self.world.interrupt.end_waits();
        let usable = !self.broken && !matches!(left, Err(RunHalt::Unexpected(_)));
        if let (true, Err(RunHalt::InputsChanged { subject, .. })) = (usable, &left) {
            self.void_other_sweeps(*subject)?;
        }
        let down = if usable { self.wind_down() } else { Ok(()) };
        let left = left?;
        down.map(|()| left)
    }

    /// Runs until the end or an interrupt; inbox and interrupt are polled, not waited for.
    fn run_loop(&mut self) -> Result<LoopEnd, RunHalt> {
        self.finish_restoring()?;
        self.adopt_jobs()?;
        self.unpause_run()?;
        loop {
            let heard = self.read_inbox()?;
            if heard == InboxEffect::Stop || self.world.interrupt.is_asked_for() {
                return Ok(self.loop_end());
            }
            let paused = self.state.history.paused_since.is_some();
            let steps = if paused { Vec::new() } else { self.plan_steps()? };
            self.record_batch()?;
            for step in steps {
                self.start_step(step)?;
            }
            self.poll_executor()?;
            if !paused && self.running.steps.is_empty() && self.running.jobs.is_empty() {
                return Ok(self.loop_end());
            }
            self.receive_reports()?;
        }
    }

    /// Returns `Finished` for a run that is over, even at an interrupt; leftovers that could not be
    /// removed are tried another time.
    fn loop_end(&self) -> LoopEnd {
        let over = self.state.stop_reason().is_some();
        if over { LoopEnd::Finished } else { LoopEnd::Interrupted }
    }

    /// Records the outcomes of running steps, then writes the whole state; nothing new starts.
    fn wind_down(&mut self) -> Result<(), RunHalt> {
        let mut seen = Ok(());
        loop {
            match self.accept_held() {
                Err(halt @ RunHalt::Unexpected(_)) => return Err(halt),
                // A halt like any other: the outcome that causes it is recorded first.
                accepted => seen = seen.and(accepted),
            }
            self.record_batch()?;
            if self.threads == 0 {
                self.check_journal()?;
                self.record_batch()?;
                self.write_checkpoint(CheckpointKind::End)?;
                return seen;
            }
            let Ok(report) = self.receiver.recv() else { return seen };
            self.threads -= 1;
            match report {
                ThreadReport::Stepped(step, Ok(Some(outcome))) => {
                    self.held.push((Some(step), outcome));
                }
                ThreadReport::Collected(subject, Ok(Some(outcome))) => {
                    if self.void.remove(&subject).is_none() {
                        self.held.push((None, outcome));
                    }
                }
                ThreadReport::Stepped(..)
                | ThreadReport::Collected(..)
                | ThreadReport::Polled(_) => {}
            }
        }
    }

    /// Adopts sweeps that an earlier process submitted and that the executor still knows.
    fn adopt_jobs(&mut self) -> Result<(), RunHalt> {
        let root = (self.state.baseline == RootBaseline::Unmeasured).then_some(SweepSubject::Root);
        let evals = self.state.sweeping_evals().iter().copied().map(SweepSubject::Eval);
        let jobs: Vec<_> = evals
            .chain(root)
            .filter_map(|subject| brief::sweep_job(&self.state, subject))
            .filter(|job| job.key.submission > 0)
            .collect();
        let known = self.world.executor.adopt_jobs(&jobs)?;
        self.running.jobs = known.into_iter().map(|key| key.subject).collect();
        self.adopted.clone_from(&self.running.jobs);
        Ok(())
    }

    /// Applies planned events until there are none left, and returns the steps to start.
    fn plan_steps(&mut self) -> Result<Vec<Step>, RunHalt> {
        let mut steps = Vec::new();
        loop {
            let moves = plan::next_moves(&self.state, &self.running, self.world.clock.now());
            if moves.is_empty() {
                return Ok(steps);
            }
            for next in moves {
                match next {
                    PlanMove::Start(step) => {
                        self.announce_step(step)?;
                        steps.push(step);
                    }
                    PlanMove::Record(event) => self.apply_event(event)?,
                    PlanMove::Stop(reason) => {
                        let at = self
                            .world
                            .clock
                            .recorded_time(RecordedMoment::Stop(self.state.next_eval_id()));
                        self.apply_event(Event::Stopped { reason, at })?;
                    }
                }
            }
        }
    }

    fn announce_step(&mut self, step: Step) -> Result<(), RunHalt> {
        let at = self.world.clock.recorded_time_or_now(brief::start_moment(&self.state, step));
        self.running.last_tries.extend(plan::last_discard_try(&self.state, step));
        if let Some(event) = plan::start_event(&self.state, step, at) {
            self.apply_event(event)?;
        }
        self.running.steps.insert(step);
        if let Step::Sweep(subject) = step {
            self.running.jobs.insert(subject);
        }
        Ok(())
    }

    fn apply_event(&mut self, event: Event) -> Result<(), RunHalt> {
        self.state.apply(&event)?;
        self.batch.push(event);
        Ok(())
    }

    /// Appends the decided events to the journal; only then may steps act on them.
    fn record_batch(&mut self) -> Result<(), RunHalt> {
        if self.batch.is_empty() {
            return Ok(());
        }
        self.check_journal()?;
        let appended = self.journal.append(&self.batch);
        self.rescue_on_error(appended)?;
        let batch = std::mem::take(&mut self.batch);
        (self.watch)(&self.state, &batch);
        if batch.iter().any(|event| matches!(event, Event::DepthClosed { .. })) {
            self.write_checkpoint(CheckpointKind::DepthClosed)?;
        }
        Ok(())
    }

    /// Checks the journal on disk. A restoration is recorded with the next batch.
    fn check_journal(&mut self) -> Result<(), RunHalt> {
        let examined = self.journal.check_integrity();
        match self.rescue_on_error(examined)? {
            Some(event) => self.apply_event(event),
            None => Ok(()),
        }
    }

    /// Marks the journal as broken after an error; the manifest keeps what the journal has lost.
    fn rescue_on_error<T>(&mut self, done: Result<T, PortError>) -> Result<T, RunHalt> {
        done.map_err(|error| {
            self.broken = true;
            match self.journal.rescue_state(&self.state, self.batch.len()) {
                Ok(()) => error.into(),
                Err(unsaved) => error.with_hint(unsaved.full_text()).into(),
            }
        })
    }

    /// Writes the state to the manifest, and stores the journal's last line in the repository.
    fn write_checkpoint(&mut self, moment: CheckpointKind) -> Result<(), RunHalt> {
        self.journal.write_checkpoint(&self.state, moment)?;
        let Some(tip) = self.journal.last_line() else { return Ok(()) };
        match self.world.repo.mark_journal(&tip) {
            // The next stop or closed depth stores it.
            Err(error) if error.is_interruption() => Ok(()),
            marked => Ok(marked?),
        }
    }
}
