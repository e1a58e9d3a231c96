//! The loop against a world in memory, interrupted before anything that it would begin: nothing new starts, what runs is
//! recorded, and resumed it ends as if nobody had interrupted.

#![cfg(test)]

use std::num::NonZeroU32;
use treebeam_core::event::{Event, Stop, Subject};
use treebeam_core::facts::{Facts, History};
use treebeam_core::policy::{Meaning, Reach};
use treebeam_core::state::State;
use treebeam_run::{Halt, drive};
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::{Disk, MemoryWorld, Trouble};

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not zero")
}

fn begun(workers: u32) -> MemoryJournal {
    let meaning = Meaning {
        ideas_per_node: number(4),
        beam_width: number(2),
        sweep_config_limit: Some(number(4)),
        ..Meaning::default()
    };
    let reach = Reach { max_depth: 3, max_parallel_evals: number(workers), ..Reach::default() };
    MemoryJournal::begun(meaning, reach)
}

fn go(journal: &mut MemoryJournal, world: &MemoryWorld) -> Result<State, Halt> {
    drive(journal.state(), world.ports(), journal, &mut |_, _| {})
}

/// What must be the same however often the run was interrupted: all but its history and what its sweeps wrote.
fn settled(state: State, mut disk: Disk) -> (Facts, Disk) {
    let mut facts = state.into_facts();
    facts.history = History::default();
    facts.reach.max_parallel_evals = NonZeroU32::MIN;
    let number = |part: &str| part.strip_prefix('s').is_some_and(|n| n.parse::<u32>().is_ok());
    let raw = |path: &str| path.split('/').any(number);
    disk.files.retain(|path, _| !raw(path));
    (facts, disk)
}

fn whole() -> (Facts, Disk) {
    let world = MemoryWorld::new(7, 7);
    let end = go(&mut begun(1), &world).expect("a whole run");
    assert_eq!(end.stop_reason(), Some(Stop::MaxDepth));
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
        Err(Halt::Interrupted(state)) => {
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
        assert!(state.implementing().is_empty(), "what was under way has ended");
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
            Err(Halt::Interrupted(state)) => assert!(!refused && journal.state() == *state),
            Err(Halt::RootUnsound { .. }) => assert!(refused, "said, and recorded"),
            other => panic!("{other:?}"),
        }
        world.give(Trouble::None);
        world.interrupt_after(None);
        let end = go(&mut journal, &world).expect("a resumed run");
        assert!(end.submissions(Subject::Root) <= 2);
    }
}
