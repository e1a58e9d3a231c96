//! The bills of answers: each answer is on exactly one bill, wherever a run is cut off, repeated or
//! out of budget. One attempt of an eval stays within its time limit, answers and sweep together.

#![cfg(test)]

use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::Duration;
use treebeam_core::event::{EvalStage, Event, FailureKind, SweepSubject};
use treebeam_core::facts::Stage;
use treebeam_core::id::EvalId;
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_core::state::State;
use treebeam_run::port::{
    Agent, AgentError, AgentReply, AgentRequest, AgentRole, EditMode, Executor, JobEnd, JobKey,
    PortError, SweepJob,
};
use treebeam_run::{RunHalt, RunPorts, drive_run};
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::MemoryWorld;

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not zero")
}

fn meaning(ideas: u32) -> FixedSettings {
    let sweep_config_limit = Some(number(4));
    FixedSettings { ideas_per_node: number(ideas), sweep_config_limit, ..FixedSettings::default() }
}

fn go(journal: &mut MemoryJournal, world: &MemoryWorld) -> Result<State, RunHalt> {
    drive_run(journal.state(), world.ports(), journal, &mut |_, _| {})
}

#[test]
fn every_answer_is_on_exactly_one_bill() {
    let reach = |workers| RunLimits {
        max_depth: 2,
        eval_retries: 1,
        max_parallel_evals: number(workers),
        ..RunLimits::default()
    };
    let (mut retried, mut halfway) = (0, 0);
    let cases = (1..7).flat_map(|seed| (0..24).map(move |purse| (seed, purse)));
    for (seed, purse) in cases {
        let workers = if purse % 2 == 0 { 1 } else { 3 };
        let world = MemoryWorld::new(seed, 7).with_purse(purse);
        let mut journal = MemoryJournal::begun(meaning(5), reach(workers));
        journal.fuse = Some(purse * 2 + 3);
        let end = go(&mut journal, &world).or_else(|_| {
            journal.fuse = None;
            go(&mut journal, &world)
        });
        let end = end.expect("a run that stops");
        assert_eq!(end.total_spend(), world.bills(), "{purse} answers, {workers} workers");
        // A raised budget continues the stopped evals: their answers are not counted twice.
        let paid = |event: &Event| matches!(event, Event::BudgetReached { bills, .. } if !bills.is_empty());
        let reached = |event: &Event| matches!(event, Event::BudgetReached { .. });
        let at = journal.events.iter().position(paid);
        halfway += usize::from(at.is_some());
        if let Some(at) = at.or_else(|| journal.events.iter().position(reached)) {
            journal.events.truncate(at + 1);
        }
        journal.events.push(Event::SettingsChanged { reach: reach(workers) });
        let rich = world.fork(1);
        let end = go(&mut journal, &rich).expect("a run that goes on");
        assert_eq!(end.total_spend(), rich.bills(), "{purse} answers, {workers} workers, raised");
        retried += end.evals.iter().filter(|eval| eval.bills.len() > 1).count();
    }
    assert!(retried > 0, "some evals have a bill for each of two attempts");
    assert!(halfway > 0, "some steps were stopped after an answer that was paid for");
}

/// Agents for all roles, each of whose answers takes so many seconds, if there is so much time.
struct Timed<'a> {
    world: &'a MemoryWorld,
    seconds: fn(AgentRole) -> u64,
    asked: Mutex<Vec<(AgentRole, Option<Duration>)>>,
    jobs: Mutex<Vec<(SweepSubject, Option<Duration>)>>,
}

impl Agent for Timed<'_> {
    fn can_answer(&self, _: AgentRole) -> bool {
        true
    }

    fn edit_mode(&self, _: AgentRole) -> EditMode {
        EditMode::Diff
    }
    fn can_continue(&self, _: AgentRole) -> bool {
        false
    }
    fn ask(&self, ask: &AgentRequest) -> Result<AgentReply, AgentError> {
        self.asked.lock().expect("the list").push((ask.role, ask.within));
        let takes = Duration::from_secs((self.seconds)(ask.role));
        if ask.within.is_some_and(|within| takes > within) {
            return Err(AgentError::OutOfTime("too slow".to_owned()));
        }
        let text = match ask.role {
            AgentRole::Coordinator | AgentRole::Planner => "Mind the gap.".to_owned(),
            AgentRole::Ideas => {
                "IDEA: gain 20 by itself\nRATIONALE: to see\nREQUIRED_CHANGES: all\n".to_owned()
            }
            AgentRole::Coder => self.world.ask(ask)?.text,
            AgentRole::Reviewer if ask.round == 0 => "VERDICT: REJECT\nISSUES:\n- no\n".to_owned(),
            AgentRole::Reviewer => "VERDICT: APPROVE".to_owned(),
        };
        let millis = u64::try_from(takes.as_millis()).ok();
        Ok(AgentReply { millis, ..AgentReply::from_text(text) })
    }
}

impl Executor for Timed<'_> {
    fn submit_job(&self, job: &SweepJob) -> Result<(), PortError> {
        self.jobs.lock().expect("the list").push((job.key.subject, job.timeout));
        self.world.submit_job(job)
    }
    fn adopt_jobs(&self, jobs: &[SweepJob]) -> Result<Vec<JobKey>, PortError> {
        self.world.adopt_jobs(jobs)
    }
    fn wait_for_jobs(&self, patience: Duration) -> Result<Vec<JobEnd>, PortError> {
        self.world.wait_for_jobs(patience)
    }
}

type Seen<T> = Vec<(T, Option<Duration>)>;

/// A run of one idea whose attempts may take a minute, with the questions and jobs of the eval.
fn timed(
    seconds: fn(AgentRole) -> u64,
    timeout: Option<u32>,
) -> (State, Seen<AgentRole>, Seen<SweepSubject>) {
    let world = MemoryWorld::new(1, 1);
    let crew = Timed { world: &world, seconds, asked: Mutex::default(), jobs: Mutex::default() };
    let eval_timeout_seconds = timeout.map(number);
    let reach =
        RunLimits { max_depth: 1, eval_retries: 1, eval_timeout_seconds, ..RunLimits::default() };
    let mut journal = MemoryJournal::begun(meaning(1), reach);
    let ports = RunPorts { agent: &crew, executor: &crew, ..world.ports() };
    let state = drive_run(journal.state(), ports, &mut journal, &mut |_, _| {}).expect("a run");
    let (asked, jobs) = (crew.asked.into_inner(), crew.jobs.into_inner());
    (state, asked.expect("the list"), jobs.expect("the list"))
}

#[expect(clippy::unnecessary_wraps, reason = "shorter where it is compared")]
fn left(seconds: u64) -> Option<Duration> {
    Some(Duration::from_secs(seconds))
}

#[test]
fn answers_and_sweep_share_the_time_of_an_attempt() {
    let (state, asked, jobs) = timed(|_| 8, Some(60));
    assert_eq!(asked[0], (AgentRole::Ideas, None), "ideas are asked for outside of any attempt");
    let rest: Vec<_> = asked[1..].iter().map(|(_, within)| *within).collect();
    assert_eq!(rest, [60, 52, 44, 36, 28, 20].map(left));
    let eval = SweepSubject::Eval(EvalId::FIRST);
    assert_eq!(
        jobs,
        [(SweepSubject::Root, left(60)), (eval, left(12))],
        "the root's sweep has all of it"
    );
    assert_eq!(
        state.eval(EvalId::FIRST).expect("an eval").total_spend().total().answer_time(),
        Duration::from_secs(48)
    );
    let (_, asked, jobs) = timed(|_| 8, None);
    assert!(asked.iter().all(|(_, within)| within.is_none()));
    assert!(jobs.iter().all(|(_, timeout)| timeout.is_none()));
}

#[test]
fn an_attempt_that_runs_out_of_time_says_who_took_it() {
    let check = |seconds: fn(AgentRole) -> u64, expect: &str| {
        let (state, _, jobs) = timed(seconds, Some(60));
        let eval = state.eval(EvalId::FIRST).expect("an eval");
        let Stage::Failed { failure, .. } = &eval.stage else { panic!("{:?}", eval.stage) };
        assert_eq!((failure.kind, failure.stage), (FailureKind::Timeout, EvalStage::Implement));
        assert_eq!(failure.message, expect);
        assert_eq!((eval.attempt, eval.failures.len()), (2, 1), "each attempt has its own time");
        assert_eq!(eval.failures[0], **failure);
        assert_eq!(jobs.len(), 1, "nothing is swept but the root");
    };
    check(
        |role| if role == AgentRole::Coder { 50 } else { 10 },
        "the coder did not answer: too slow (`eval_timeout_seconds`: one attempt may take 60.0 s; \
         coordinator 10.0 s, planner 10.0 s)",
    );
    check(
        |role| if role == AgentRole::Planner { 50 } else { 10 },
        "nothing is left for the coder (`eval_timeout_seconds`: one attempt may take 60.0 s; \
         coordinator 10.0 s, planner 50.0 s)",
    );
    check(
        |_| 10,
        "nothing is left for the tests and the sweep (`eval_timeout_seconds`: one attempt may take \
         60.0 s; coordinator 10.0 s, planner 10.0 s, coder 20.0 s, reviewer 20.0 s)",
    );
}
