//! The loop with ports in memory, and a request at any moment to stop after the open depth. Begun
//! evals are completed, judged and promoted, and nothing else begins until the run is resumed.

#![cfg(test)]

use std::num::NonZeroU32;
use treebeam_core::event::{Event, StopReason, TakeoverReason, UserRequest};
use treebeam_core::facts::{Facts, RunHistory, RunPhase};
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_core::state::State;
use treebeam_run::port::MessageContent;
use treebeam_run::{RunHalt, drive_run};
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::{Disk, MemoryWorld};

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not zero")
}

fn begun(workers: u32, max_depth: u32) -> MemoryJournal {
    let meaning = FixedSettings {
        ideas_per_node: number(4),
        beam_width: number(2),
        sweep_config_limit: Some(number(4)),
        ..FixedSettings::default()
    };
    let reach =
        RunLimits { max_depth, max_parallel_evals: number(workers), ..RunLimits::default() };
    MemoryJournal::begun(meaning, reach)
}

fn go(journal: &mut MemoryJournal, world: &MemoryWorld) -> Result<State, RunHalt> {
    drive_run(journal.state(), world.ports(), journal, &mut |_, _| {})
}

/// The parts of a run that do not depend on where it was left: without its end and its limits.
fn tree(state: State, mut disk: Disk) -> (Facts, Disk) {
    let mut facts = state.into_facts();
    facts.history = RunHistory::default();
    facts.limits = RunLimits::default();
    facts.phase = RunPhase::Searching;
    let number = |part: &str| part.strip_prefix('s').is_some_and(|n| n.parse::<u32>().is_ok());
    disk.files.retain(|path, _| !path.split('/').any(number));
    (facts, disk)
}

/// The run to exactly this depth.
fn whole(depths: u32) -> (Facts, Disk) {
    let world = MemoryWorld::new(7, 7);
    let end = go(&mut begun(1, depths), &world).expect("a whole run");
    assert_eq!(end.stop_reason(), Some(StopReason::MaxDepth));
    tree(end, world.disk())
}

fn wishes(journal: &MemoryJournal) -> Vec<(UserRequest, bool)> {
    let wish = |event: &Event| {
        let Event::Asked { wish, message, .. } = event else { return None };
        Some((*wish, message.is_some()))
    };
    journal.events.iter().filter_map(wish).collect()
}

const DEPTHS: u32 = 3;
const WANTED: (UserRequest, bool) = (UserRequest::StopAfterDepth, true);

#[test]
fn wherever_it_is_said_the_tree_is_that_of_a_run_which_was_to_go_no_deeper() {
    let shallow = [1, 2].map(whole);
    let deep = whole(DEPTHS);
    for workers in [1, 4] {
        let (mut stops, mut at_the_end) = ([0; 2], 0);
        for after in (0..).step_by(2) {
            let world = MemoryWorld::new(7, 7);
            let mut journal = begun(workers, DEPTHS);
            world.post("1-stop", MessageContent::Wish(UserRequest::StopAfterDepth), after);
            world.post("2-stop", MessageContent::Wish(UserRequest::StopAfterDepth), after + 1);
            let state = match go(&mut journal, &world) {
                Ok(end) => {
                    assert_eq!(end.stop_reason(), Some(StopReason::MaxDepth), "{after}");
                    assert!(tree(end, world.disk()) == deep, "{workers} workers, {after}");
                    at_the_end += wishes(&journal).len();
                    if wishes(&journal).is_empty() {
                        break;
                    }
                    continue;
                }
                Err(RunHalt::Interrupted(state)) => *state,
                Err(other) => panic!("{other}"),
            };
            assert_eq!(journal.state(), state);
            assert_eq!(wishes(&journal), [WANTED], "said twice, and once on record");
            let depth = state.stopped_after().expect("a depth").0 as usize;
            assert_eq!((state.closed.len(), state.leftovers.len()), (depth + 1, 0), "{after}");
            let left = tree(state, world.disk());
            assert!(left == shallow[depth], "{workers} workers, {after}");
            stops[depth] += 1;

            let end = go(&mut journal, &world).expect("a resumed run");
            assert_eq!(wishes(&journal), [WANTED, (UserRequest::Unpause, false)]);
            assert!(tree(end, world.disk()) == deep, "{workers} workers, {after}");
        }
        assert!(stops.iter().all(|stops| *stops > 3), "{stops:?}");
        assert!(at_the_end > 0, "it was never said at the last depth");
    }
}

#[test]
fn cut_off_after_any_event_it_stops_after_the_same_depth() {
    let expected = whole(1);
    let started = || {
        let world = MemoryWorld::new(7, 7);
        world.post("1-stop", MessageContent::Wish(UserRequest::StopAfterDepth), 0);
        (world, begun(1, DEPTHS))
    };
    let (world, mut clean) = started();
    assert!(matches!(go(&mut clean, &world), Err(RunHalt::Interrupted(_))));
    assert!(tree(clean.state(), world.disk()) == expected);
    let said = clean.events.iter().position(|event| matches!(event, Event::Asked { .. }));
    for cut in said.expect("a wish") + 1..clean.events.len() {
        let (world, mut journal) = started();
        world.let_messages_stick(cut % 2 == 0);
        journal.fuse = Some(cut);
        assert!(matches!(go(&mut journal, &world), Err(RunHalt::Port(_))), "no cut at {cut}");
        journal.fuse = None;
        world.let_messages_stick(false);
        let at = jiff::Timestamp::UNIX_EPOCH;
        journal.events.push(Event::LockTakenOver {
            from: None,
            because: TakeoverReason::OwnerDead,
            at,
        });
        let was_there = journal.state().stopped_after().is_some();
        match go(&mut journal, &world) {
            // Resuming a run that has stopped there already lets it go on.
            Ok(_) => assert!(was_there, "cut after {cut}: it forgot"),
            Err(RunHalt::Interrupted(state)) => {
                assert!(!was_there && tree(*state, world.disk()) == expected, "cut after {cut}");
            }
            Err(other) => panic!("{other}"),
        }
        assert_eq!(world.posted(), [], "cut after {cut}");
    }
}

#[test]
fn it_can_be_taken_back_and_a_pause_leaves_it_as_it_was() {
    let check = |posts: &[(&str, UserRequest)], stops: bool| {
        let world = MemoryWorld::new(7, 7);
        let mut journal = begun(1, DEPTHS);
        for (after, (name, wish)) in (4..).zip(posts) {
            world.post(name, MessageContent::Wish(*wish), after);
        }
        let left = go(&mut journal, &world);
        let recorded: Vec<_> = posts.iter().map(|(_, wish)| (*wish, true)).collect();
        assert_eq!(wishes(&journal), recorded);
        let stopped =
            matches!(&left, Err(RunHalt::Interrupted(at)) if at.stopped_after().is_some());
        assert_eq!((stopped, left.is_ok()), (stops, !stops), "{posts:?}");
    };
    let (stop, pause, unpause) =
        (UserRequest::StopAfterDepth, UserRequest::Pause, UserRequest::Unpause);
    check(&[("1", stop)], true);
    check(&[("1", stop), ("2", unpause)], false);
    check(&[("1", stop), ("2", pause), ("3", unpause)], true);
    check(&[("1", pause), ("2", stop), ("3", unpause)], true);
    check(&[("1", stop), ("2", pause), ("3", unpause), ("4", unpause)], false);
}

#[test]
fn a_stop_at_once_counts_for_more() {
    let world = MemoryWorld::new(7, 7);
    let mut journal = begun(1, DEPTHS);
    world.post("1-after", MessageContent::Wish(UserRequest::StopAfterDepth), 4);
    world.post("2-stop", MessageContent::Wish(UserRequest::Stop), 6);
    let Err(RunHalt::Interrupted(state)) = go(&mut journal, &world) else { panic!("not left") };
    assert!(state.closed.is_empty() && state.pending_stop_after().is_none());
    let end = go(&mut journal, &world).expect("a resumed run");
    assert_eq!(end.stop_reason(), Some(StopReason::MaxDepth));
}
