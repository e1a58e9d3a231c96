//! The loop with ports in memory, interrupted before anything that it would begin. Nothing new
//! starts, running work is recorded, and resumed it ends as if it had not been interrupted.

#![cfg(test)]

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use treebeam_core::event::{Event, StopReason, SweepSubject, UserRequest};
use treebeam_core::facts::{Facts, RunHistory};
use treebeam_core::id::{CodePlace, EvalId};
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_core::state::State;
use treebeam_run::port::{
    Agent, AgentError, AgentReply, AgentRequest, AgentRole, CheckpointKind, EditMode, Interrupt,
    Journal, MessageContent, PortError,
};
use treebeam_run::{RunHalt, RunPorts, drive_run};
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::{Disk, MemoryWorld, Trouble};

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not zero")
}

fn begun(workers: u32) -> MemoryJournal {
    let meaning = FixedSettings {
        ideas_per_node: number(4),
        beam_width: number(2),
        sweep_config_limit: Some(number(4)),
        ..FixedSettings::default()
    };
    let reach =
        RunLimits { max_depth: 3, max_parallel_evals: number(workers), ..RunLimits::default() };
    MemoryJournal::begun(meaning, reach)
}

fn go(journal: &mut MemoryJournal, world: &MemoryWorld) -> Result<State, RunHalt> {
    drive_run(journal.state(), world.ports(), journal, &mut |_, _| {})
}

/// The parts of a run that do not depend on interrupts: no history, no files of sweeps.
fn settled(state: State, mut disk: Disk) -> (Facts, Disk) {
    let mut facts = state.into_facts();
    facts.history = RunHistory::default();
    facts.limits.max_parallel_evals = NonZeroU32::MIN;
    let number = |part: &str| part.strip_prefix('s').is_some_and(|n| n.parse::<u32>().is_ok());
    let raw = |path: &str| path.split('/').any(number);
    disk.files.retain(|path, _| !raw(path));
    (facts, disk)
}

fn whole() -> (Facts, Disk) {
    let world = MemoryWorld::new(7, 7);
    let end = go(&mut begun(1), &world).expect("a whole run");
    assert_eq!(end.stop_reason(), Some(StopReason::MaxDepth));
    settled(end, world.disk())
}

/// Drives a run that is interrupted when it asks for the n-th time.
fn interrupted(
    journal: &mut MemoryJournal,
    world: &MemoryWorld,
    after: u64,
) -> Result<State, Box<State>> {
    world.interrupt_after(Some(after));
    let left = go(journal, world);
    world.interrupt_after(None);
    match left {
        Ok(state) => Ok(state),
        Err(RunHalt::Interrupted(state)) => {
            assert_eq!(journal.state(), *state, "what it says it is, is on disk");
            assert_eq!(state.stop_reason(), None, "an interrupted run is not over");
            Err(state)
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_run_that_is_interrupted_before_any_step_ends_the_same() {
    let expected = whole();
    for workers in [1, 4] {
        let mut after = 0;
        loop {
            let world = MemoryWorld::new(7, 7);
            let mut journal = begun(workers);
            if interrupted(&mut journal, &world, after).is_ok() {
                break;
            }
            if after % 2 == 0 {
                world.restart();
            }
            let end = go(&mut journal, &world).expect("a resumed run");
            assert_eq!(journal.state(), end);
            assert!(settled(end, world.disk()) == expected, "{workers} workers, {after}");
            after += 1;
        }
        assert!(after > 20, "interrupted in {after} places only");
    }
}

#[test]
fn a_run_that_is_interrupted_again_and_again_ends_the_same() {
    let expected = whole();
    for (workers, every) in [(1, 1), (1, 3), (4, 1), (4, 2)] {
        let world = MemoryWorld::new(7, 9);
        let mut journal = begun(workers);
        let mut times = 0;
        let end = loop {
            match interrupted(&mut journal, &world, every) {
                Ok(end) => break end,
                Err(_) => times += 1,
            }
            assert!(times < 1000, "no progress");
        };
        assert!(times > 10, "interrupted {times} times only");
        assert!(settled(end, world.disk()) == expected, "{workers} workers, every {every}");
    }
}

#[test]
fn nothing_begins_once_an_interrupt_is_asked_for() {
    let begins =
        |event: &Event| matches!(event, Event::StepStarted { .. } | Event::SweepSubmitted { .. });
    for after in 0..40 {
        let world = MemoryWorld::new(7, 7);
        let mut journal = begun(4);
        let Err(state) = interrupted(&mut journal, &world, after) else { break };
        let events = journal.events.len();
        assert!(interrupted(&mut journal, &world, 0).is_err());
        assert_eq!(journal.events.len(), events, "all that ended was recorded the first time");
        assert!(state.implementing_evals().is_empty(), "what was under way has ended");
        let begun = journal.events.iter().filter(|event| begins(event)).count();
        assert!(after > 0 || begun == 0, "{begun} begun");
    }
}

#[test]
fn a_refused_root_is_on_record_even_if_it_comes_in_late() {
    for after in 0..10 {
        let world = MemoryWorld::new(7, 7);
        world.give(Trouble::Failing);
        let mut journal = begun(1);
        world.interrupt_after(Some(after));
        let left = go(&mut journal, &world);
        let refused = journal.events.iter().any(|e| matches!(e, Event::RootRefused { .. }));
        match left {
            Err(RunHalt::Interrupted(state)) => assert!(!refused && journal.state() == *state),
            Err(RunHalt::RootUnsound { .. }) => assert!(refused, "said, and recorded"),
            other => panic!("{other:?}"),
        }
        world.give(Trouble::None);
        world.interrupt_after(None);
        let end = go(&mut journal, &world).expect("a resumed run");
        assert!(end.submission_count(SweepSubject::Root) <= 2);
    }
}

/// Longest wait of a question in these tests.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The way in which a run ends while a question waits for a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunEnding {
    Stop,
    KeyRefused,
    JournalCut,
}

/// The agent in memory; its server is unreachable for the first candidate until waits are ended.
struct UnreachableServer<'a> {
    world: &'a MemoryWorld,
    ending: RunEnding,
    is_waited_for: AtomicBool,
    waits_are_over: AtomicBool,
}

impl Agent for UnreachableServer<'_> {
    fn can_answer(&self, role: AgentRole) -> bool {
        self.world.can_answer(role)
    }
    fn edit_mode(&self, role: AgentRole) -> EditMode {
        self.world.edit_mode(role)
    }
    fn can_continue(&self, role: AgentRole) -> bool {
        self.world.can_continue(role)
    }
    fn ask(&self, ask: &AgentRequest) -> Result<AgentReply, AgentError> {
        if ask.role != AgentRole::Coder {
            return self.world.ask(ask);
        }
        if ask.place == CodePlace::Candidate(EvalId::FIRST) {
            if self.ending == RunEnding::Stop {
                self.world.post("1-stop", MessageContent::Wish(UserRequest::Stop), 0);
            }
            self.is_waited_for.store(true, Ordering::SeqCst);
            wait_for(&self.waits_are_over);
            return Err(AgentError::Interrupted);
        }
        wait_for(&self.is_waited_for);
        if self.ending == RunEnding::KeyRefused {
            return Err(PortError::new("the key is wrong").into());
        }
        self.world.ask(ask)
    }
}

impl Interrupt for UnreachableServer<'_> {
    fn is_asked_for(&self) -> bool {
        false
    }
    fn end_waits(&self) {
        self.waits_are_over.store(true, Ordering::SeqCst);
    }
}

fn wait_for(flag: &AtomicBool) {
    let begun = Instant::now();
    while !flag.load(Ordering::SeqCst) && begun.elapsed() < LONGEST_WAIT {
        thread::sleep(Duration::from_millis(1));
    }
}

/// A journal that is damaged, in one of the endings, once a question waits.
struct DamagedJournal<'a> {
    journal: MemoryJournal,
    server: &'a UnreachableServer<'a>,
}

impl Journal for DamagedJournal<'_> {
    fn append(&mut self, events: &[Event]) -> Result<(), PortError> {
        let is_waited_for = self.server.is_waited_for.load(Ordering::SeqCst);
        if self.server.ending == RunEnding::JournalCut && is_waited_for {
            return Err(PortError::new("it was cut"));
        }
        self.journal.append(events)
    }
    fn write_checkpoint(&mut self, state: &State, moment: CheckpointKind) -> Result<(), PortError> {
        self.journal.write_checkpoint(state, moment)
    }
}

#[test]
fn whatever_ends_a_run_ends_the_waits_of_its_questions() {
    for ending in [RunEnding::Stop, RunEnding::KeyRefused, RunEnding::JournalCut] {
        let world = MemoryWorld::new(7, 7);
        let (is_waited_for, waits_are_over) = (AtomicBool::new(false), AtomicBool::new(false));
        let server = UnreachableServer { world: &world, ending, is_waited_for, waits_are_over };
        let journal = begun(4);
        let state = journal.state();
        let mut journal = DamagedJournal { journal, server: &server };
        let ports = RunPorts { agent: &server, interrupt: &server, ..world.ports() };
        let started = Instant::now();
        let left = drive_run(state, ports, &mut journal, &mut |_, _| {});
        let as_expected = match ending {
            RunEnding::Stop => matches!(left, Err(RunHalt::Interrupted(_))),
            RunEnding::KeyRefused => matches!(left, Err(RunHalt::Agent(_))),
            RunEnding::JournalCut => matches!(left, Err(RunHalt::Port(_))),
        };
        assert!(as_expected, "{ending:?}: {left:?}");
        assert!(server.is_waited_for.load(Ordering::SeqCst), "{ending:?}: a question waited");
        assert!(started.elapsed() < LONGEST_WAIT, "{ending:?}: the wait was ended");
    }
}
