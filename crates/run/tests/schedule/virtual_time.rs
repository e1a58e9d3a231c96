//! Ports in memory whose answers and sweeps take virtual time. The loop, its threads and the plan
//! are the real ones. Time advances only once everything that is recorded as running waits for it,
//! so that nothing depends on the speed of the machine.

use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use treebeam_core::event::SweepSubject;
use treebeam_core::facts::RunPhase;
use treebeam_core::id::EvalId;
use treebeam_core::state::State;
use treebeam_run::RunPorts;
use treebeam_run::port::{
    Agent, AgentError, AgentReply, AgentRequest, AgentRole, Clock, EditMode, Executor, JobEnd,
    JobKey, PortError, RecordedMoment, SweepJob,
};
use treebeam_testkit::memory::MemoryWorld;

/// Longest wait of one question to the executor.
const PATIENCE: Duration = Duration::from_millis(5);

/// Durations of the two parts of an eval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Length {
    pub(crate) implement: u64,
    pub(crate) sweep: u64,
}

/// The times at which an eval began, and its sweep was submitted and ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) begun: u64,
    pub(crate) submitted: u64,
    pub(crate) ended: u64,
}

pub(crate) struct VirtualTime {
    memory: MemoryWorld,
    length: Box<dyn Fn(EvalId) -> Length + Sync>,
    now: Mutex<Now>,
    woken: Condvar,
}

#[derive(Default)]
struct Now {
    time: u64,
    /// Questions that are being answered, with their ends.
    answers: BTreeMap<EvalId, u64>,
    /// Running jobs, with their ends.
    jobs: BTreeMap<SweepSubject, (u64, SweepJob)>,
    times: BTreeMap<EvalId, Times>,
    record: Record,
}

/// The work that is recorded as running.
#[derive(Default)]
struct Record {
    implementing: usize,
    sweeping: usize,
    /// True if something is running that takes no time.
    busy: bool,
}

impl Now {
    /// Advances time to the next end, if everything recorded waits for one.
    fn go_on(&mut self) {
        let waits = self.answers.len() == self.record.implementing
            && self.jobs.len() == self.record.sweeping
            && !self.record.busy;
        let ends = self.answers.values().chain(self.jobs.values().map(|(end, _)| end));
        if let Some(next) = ends.copied().min().filter(|_| waits) {
            self.time = self.time.max(next);
        }
    }

    fn ended_job(&mut self) -> Option<SweepJob> {
        let ended = |(subject, (end, _)): (&SweepSubject, &(u64, SweepJob))| {
            (*end <= self.time).then_some((*end, *subject))
        };
        let (_, subject) = self.jobs.iter().filter_map(ended).min()?;
        self.jobs.remove(&subject).map(|(_, job)| job)
    }
}

impl VirtualTime {
    pub(crate) fn new(length: impl Fn(EvalId) -> Length + Sync + 'static) -> Self {
        let memory = MemoryWorld::new(1, 1);
        Self { memory, length: Box::new(length), now: Mutex::default(), woken: Condvar::new() }
    }

    pub(crate) fn ports(&self) -> RunPorts<'_> {
        RunPorts { agent: self, executor: self, clock: self, ..self.memory.ports() }
    }

    /// Notes the recorded work: what the loop has started, or is about to start.
    pub(crate) fn see(&self, state: &State) {
        let mut now = self.lock();
        let ideas_are_in = state.nodes_awaiting_ideas().next().is_none();
        let searching = state.phase == RunPhase::Searching && ideas_are_in;
        now.record = Record {
            implementing: state.implementing_evals().len(),
            sweeping: state.sweeping_evals().len(),
            busy: !searching || !state.swept_evals().is_empty() || state.due_worktree_count() > 0,
        };
        self.changed(now);
    }

    /// Returns when each eval began and ended, by its id.
    pub(crate) fn times(&self) -> BTreeMap<EvalId, Times> {
        self.lock().times.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Advances time if possible, and wakes all waiting threads.
    fn changed(&self, mut now: MutexGuard<'_, Now>) {
        now.go_on();
        self.woken.notify_all();
    }

    /// Blocks until the end of the eval's implementation.
    fn implement(&self, eval: EvalId) {
        let mut now = self.lock();
        let begun = now.time;
        let end = begun + (self.length)(eval).implement;
        now.times.entry(eval).or_default().begun = begun;
        now.answers.insert(eval, end);
        self.changed(now);
        let waits = |now: &mut Now| now.time < end;
        let now = self.woken.wait_while(self.lock(), waits);
        now.unwrap_or_else(PoisonError::into_inner).answers.remove(&eval);
    }
}

impl Agent for VirtualTime {
    fn can_answer(&self, role: AgentRole) -> bool {
        self.memory.can_answer(role)
    }

    fn edit_mode(&self, role: AgentRole) -> EditMode {
        self.memory.edit_mode(role)
    }

    fn can_continue(&self, role: AgentRole) -> bool {
        self.memory.can_continue(role)
    }

    /// Answers at once with ideas that are all good; their gain follows from the question.
    fn ask(&self, ask: &AgentRequest) -> Result<AgentReply, AgentError> {
        if ask.role == AgentRole::Ideas {
            let wanted = ask.prompt.split_whitespace().nth(1).and_then(|n| n.parse().ok());
            let idea = |n: u32| {
                format!("IDEA: gain {n} at {}\nRATIONALE: to see\nREQUIRED_CHANGES: all\n", ask.key)
            };
            return Ok(AgentReply::from_text((1..=wanted.unwrap_or(1)).map(idea).collect()));
        }
        // `coder-e0001-a1-r0`
        let eval = ask.key.split('-').nth(1).and_then(|id| id.strip_prefix('e')?.parse().ok());
        self.implement(eval.expect("an eval"));
        self.memory.ask(ask)
    }
}

impl Executor for VirtualTime {
    fn submit_job(&self, job: &SweepJob) -> Result<(), PortError> {
        let mut now = self.lock();
        let time = now.time;
        let end = match job.key.subject {
            SweepSubject::Root => time,
            SweepSubject::Eval(eval) => {
                now.times.entry(eval).or_default().submitted = time;
                time + (self.length)(eval).sweep
            }
        };
        now.jobs.insert(job.key.subject, (end, job.clone()));
        self.changed(now);
        Ok(())
    }

    fn adopt_jobs(&self, jobs: &[SweepJob]) -> Result<Vec<JobKey>, PortError> {
        self.memory.adopt_jobs(jobs)
    }

    /// Returns one end at a time, in the order of the ends.
    fn wait_for_jobs(&self, _: Duration) -> Result<Vec<JobEnd>, PortError> {
        let none = |now: &mut Now| now.jobs.values().all(|(end, _)| *end > now.time);
        let waited = self.woken.wait_timeout_while(self.lock(), PATIENCE, none);
        let mut now = waited.unwrap_or_else(PoisonError::into_inner).0;
        let time = now.time;
        let Some(job) = now.ended_job() else { return Ok(Vec::new()) };
        if let SweepSubject::Eval(eval) = job.key.subject {
            now.times.entry(eval).or_default().ended = time;
        }
        drop(now);
        self.memory.submit_job(&job)?;
        self.memory.wait_for_jobs(Duration::ZERO)
    }
}

impl Clock for VirtualTime {
    fn recorded_time(&self, moment: RecordedMoment) -> Timestamp {
        self.memory.recorded_time(moment)
    }

    fn now(&self) -> Timestamp {
        let seconds = i64::try_from(self.lock().time).expect("a time");
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }
}
