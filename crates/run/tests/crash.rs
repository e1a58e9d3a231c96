//! The loop with ports in memory, cut off after every event. With several workers, in any order of
//! completion, the run must end the same.

#![cfg(test)]

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use treebeam_core::audit;
use treebeam_core::event::{Event, StopReason, SweepSubject, TakeoverReason};
use treebeam_core::facts::{CandidateFate, Facts, Stage};
use treebeam_core::id::NodeId;
use treebeam_core::policy::{DedupeScope, FixedSettings, RunLimits};
use treebeam_core::state::State;
use treebeam_run::{RunHalt, drive_run};
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::{Disk, MemoryWorld, Trouble};

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not zero")
}

fn meaning() -> FixedSettings {
    FixedSettings {
        ideas_per_node: number(5),
        beam_width: number(2),
        sweep_config_limit: Some(number(4)),
        ..FixedSettings::default()
    }
}

fn reach(workers: u32) -> RunLimits {
    RunLimits { max_depth: 3, max_parallel_evals: number(workers), ..RunLimits::default() }
}

fn go(journal: &mut MemoryJournal, world: &MemoryWorld) -> Result<State, RunHalt> {
    drive_run(journal.state(), world.ports(), journal, &mut |_, _| {})
}

/// Returns the event that the next process records if the one before was killed.
fn taken_over() -> Event {
    let at = jiff::Timestamp::UNIX_EPOCH;
    Event::LockTakenOver { from: None, because: TakeoverReason::OwnerDead, at }
}

/// The parts of a finished run that do not depend on how it came about.
#[derive(PartialEq)]
struct Settled {
    facts: Facts,
    refs: BTreeMap<String, String>,
    worktrees: Vec<String>,
    artifacts: Vec<(String, Vec<u8>)>,
}

fn settled(state: State, disk: Disk) -> Settled {
    let mut facts = state.into_facts();
    let history = std::mem::take(&mut facts.history);
    facts.limits.max_parallel_evals = NonZeroU32::MIN;
    let worktrees = disk.worktrees.into_keys().collect();
    // Only the history records whether a twin was swept before the older one was known.
    let counts = |path: &str| {
        let is_replaced = history.replaced_sweeps.values().any(|own| own.path.as_str() == path);
        path.starts_with("artifacts/") && !is_replaced
    };
    let artifacts = disk.files.into_iter().filter(|(path, _)| counts(path));
    Settled { facts, refs: disk.refs, worktrees, artifacts: artifacts.collect() }
}

#[test]
fn a_run_that_is_cut_off_after_any_event_ends_the_same() {
    let world = MemoryWorld::new(7, 7);
    let mut clean = MemoryJournal::begun(meaning(), reach(1));
    let end = go(&mut clean, &world).expect("a whole run");
    assert_eq!(end.stop_reason(), Some(StopReason::MaxDepth));
    assert!(end.nodes.len() >= 4, "the run must be worth cutting: {} nodes", end.nodes.len());
    let expected = settled(end, world.disk());
    for workers in [1, 4] {
        for cut in 1..clean.events.len() {
            let world = MemoryWorld::new(7, 7);
            let mut journal = MemoryJournal::begun(meaning(), reach(workers));
            journal.fuse = Some(cut);
            let broken = go(&mut journal, &world);
            if broken.is_err() && cut % 2 == 0 {
                world.restart();
            }
            journal.fuse = None;
            if cut % 3 != 0 {
                journal.events.push(taken_over());
            }
            let resumed = go(&mut journal, &world).expect("a resumed run");
            assert_eq!(journal.state(), resumed, "the events lead to the state");
            assert!(
                settled(resumed, world.disk()) == expected,
                "cut after event {cut} with {workers} workers"
            );
        }
    }
}

#[test]
fn a_run_that_is_cut_off_again_and_again_ends_the_same() {
    let world = MemoryWorld::new(3, 3);
    let mut clean = MemoryJournal::begun(meaning(), reach(1));
    let expected = settled(go(&mut clean, &world).expect("a whole run"), world.disk());
    let world = MemoryWorld::new(3, 9);
    let mut journal = MemoryJournal::begun(meaning(), reach(2));
    let mut cuts = 0;
    let end = loop {
        journal.fuse = Some(journal.events.len() + 6);
        match go(&mut journal, &world) {
            Ok(end) => break end,
            Err(_) => cuts += 1,
        }
        world.restart();
        journal.events.push(taken_over());
        assert!(cuts < 1000, "no progress");
    };
    assert!(cuts > 10, "{cuts} cuts");
    assert!(settled(end, world.disk()) == expected);
}

#[test]
fn every_kind_of_event_is_cut() {
    let world = MemoryWorld::new(7, 7);
    let mut journal = MemoryJournal::begun(meaning(), reach(1));
    go(&mut journal, &world).expect("a whole run");
    let seen = |check: fn(&Event) -> bool| journal.events.iter().any(check);
    assert!(seen(|e| matches!(e, Event::EvalFailed { .. })));
    assert!(seen(|e| matches!(e, Event::DiscardDeferred { .. })));
    assert!(seen(|e| matches!(e, Event::NodeAdded { .. })));
    assert!(seen(|e| matches!(e, Event::IdeasProposed(p) if !p.repeats.is_empty())));
}

#[test]
fn the_budget_is_kept_in_the_middle_of_a_depth_and_can_be_raised() {
    for workers in [1, 4] {
        let world = MemoryWorld::new(7, 7);
        let limited = RunLimits { max_total_idea_evals: Some(7), ..reach(workers) };
        let mut journal = MemoryJournal::begun(meaning(), limited);
        let end = go(&mut journal, &world).expect("a run");
        assert_eq!((end.evals.len(), end.stop_reason()), (7, Some(StopReason::MaxEvals)));
        let closed = end.closed.last().expect("a closed depth");
        assert!(closed.cut_short && !closed.beam.is_empty(), "gated, ranked and promoted");
        journal.events.push(Event::SettingsChanged { reach: reach(workers) });
        let end = go(&mut journal, &world).expect("a resumed run");
        assert_eq!(end.stop_reason(), Some(StopReason::MaxDepth));
        assert!(end.evals.len() > 7);
    }
}

#[test]
fn a_depth_without_evals_for_want_of_budget_is_not_one_without_ideas() {
    let world = MemoryWorld::new(7, 7);
    let mut journal = MemoryJournal::begun(meaning(), reach(1));
    journal.fuse = Some(4);
    assert!(go(&mut journal, &world).is_err(), "cut off while ideas are asked for");
    journal.fuse = None;
    let none = RunLimits { max_total_idea_evals: Some(0), ..reach(1) };
    for (reach, reason) in [(none, StopReason::MaxEvals), (reach(1), StopReason::MaxDepth)] {
        journal.events.push(Event::SettingsChanged { reach });
        let end = go(&mut journal, &world).expect("a run");
        assert_eq!(end.stop_reason(), Some(reason));
    }
}

#[test]
fn an_empty_frontier_stops_the_run_or_is_expanded_again() {
    let find = |stop_on_empty_frontier| {
        (0..60).find_map(|seed| {
            let world = MemoryWorld::new(seed, 0);
            let one = FixedSettings { ideas_per_node: number(1), ..meaning() };
            let reach = RunLimits { stop_on_empty_frontier, ..reach(1) };
            let mut journal = MemoryJournal::begun(one, reach);
            let end = go(&mut journal, &world).expect("a run");
            let empty = end.closed.first().is_some_and(|closed| closed.beam.is_empty());
            (empty && !end.evals.is_empty()).then_some(end)
        })
    };
    let stopped = find(true).expect("a seed without a passing first idea");
    assert_eq!(stopped.stop_reason(), Some(StopReason::EmptyFrontier));
    assert!(stopped.frontier.is_empty());
    let again = find(false).expect("the same seed");
    assert!(again.node(NodeId::ROOT).expect("a root").expansions.len() > 1);
    assert!(again.evals.len() > stopped.evals.len());
    let on_root = again.evals.iter().filter(|eval| eval.parent == NodeId::ROOT);
    let turns: Vec<_> = on_root.map(|eval| eval.idea.turn).collect();
    assert!(turns.is_sorted_by(|a, b| a < b), "one conversation goes on: {turns:?}");
}

#[test]
fn a_checkpoint_that_fails_repeats_no_event() {
    for failing_checkpoints in [1, 2] {
        let world = MemoryWorld::new(7, 7);
        let mut journal = MemoryJournal::begun(meaning(), reach(4));
        journal.failing_checkpoints = failing_checkpoints;
        assert!(matches!(go(&mut journal, &world), Err(RunHalt::Port(_))));
        journal.failing_checkpoints = 0;
        let end = go(&mut journal, &world).expect("the events still follow from each other");
        assert_eq!(end.stop_reason(), Some(StopReason::MaxDepth));
    }
}

#[test]
fn a_panic_behind_a_port_halts_the_run_and_loses_nothing() {
    let world = MemoryWorld::new(7, 7);
    world.give(Trouble::Panic);
    let mut journal = MemoryJournal::begun(meaning(), reach(2));
    let halted = go(&mut journal, &world);
    assert!(matches!(&halted, Err(RunHalt::Broken { why, .. }) if why == "the executor broke"));
    world.give(Trouble::None);
    assert!(go(&mut journal, &world).is_ok());
}

#[test]
fn a_root_that_cannot_be_compared_with_is_swept_again_on_resume() {
    let world = MemoryWorld::new(7, 7);
    world.give(Trouble::Failing);
    let mut journal = MemoryJournal::begun(meaning(), reach(1));
    for submissions in 1..=2 {
        let halted = go(&mut journal, &world);
        assert!(matches!(halted, Err(RunHalt::RootUnsound { .. })));
        assert_eq!(journal.state().submission_count(SweepSubject::Root), submissions);
    }
    world.give(Trouble::None);
    assert!(!go(&mut journal, &world).expect("a run").evals.is_empty());
}

#[test]
fn the_late_end_of_an_earlier_submission_is_inert() {
    let world = MemoryWorld::new(7, 7);
    let mut journal = MemoryJournal::begun(meaning(), reach(2));
    let expected = settled(go(&mut journal, &world).expect("a run"), world.disk());
    let world = MemoryWorld::new(7, 7);
    world.give(Trouble::Echo);
    let mut journal = MemoryJournal::begun(meaning(), reach(2));
    assert!(settled(go(&mut journal, &world).expect("a run"), world.disk()) == expected);
}

#[test]
fn what_is_kept_stays_until_it_is_wanted_no_more() {
    let candidates = |disk: Disk| disk.worktrees.into_keys().filter(|n| n.starts_with('e')).count();
    let world = MemoryWorld::new(7, 7);
    let keep = RunLimits { keep_rejected_worktrees: true, max_depth: 1, ..reach(1) };
    let mut journal = MemoryJournal::begun(meaning(), keep.clone());
    let end = go(&mut journal, &world).expect("a run");
    let judged = |stage: &Stage| matches!(stage, Stage::Decided(_, _, CandidateFate::Dropped));
    let dropped = end.evals.iter().filter(|eval| judged(&eval.stage)).count();
    assert_eq!(candidates(world.disk()), dropped, "the promoted ones are nodes");

    let world = MemoryWorld::new(7, 7);
    let mut journal = MemoryJournal::begun(meaning(), keep);
    // Removals are recorded when they are done: this is before the depth closes even if none is.
    journal.fuse = Some(18);
    assert!(go(&mut journal, &world).is_err());
    journal.fuse = None;
    let closed = |event: &Event| matches!(event, Event::DepthClosed { .. });
    assert!(!journal.events.iter().any(closed));
    journal.events.push(Event::SettingsChanged { reach: RunLimits { max_depth: 1, ..reach(1) } });
    go(&mut journal, &world).expect("a run");
    assert_eq!(candidates(world.disk()), 0, "wanted no more before the depth closed");
}

#[test]
fn a_depth_that_a_budget_cut_short_goes_on_with_all_of_its_frontier() {
    let two = FixedSettings { ideas_per_node: number(2), ..meaning() };
    let cut = (0..400).find_map(|seed| {
        let world = MemoryWorld::new(seed, 0);
        let reach = RunLimits { max_total_idea_evals: Some(3), ..reach(1) };
        let mut journal = MemoryJournal::begun(two.clone(), reach);
        let end = go(&mut journal, &world).expect("a run");
        let last = end.closed.last()?;
        (last.cut_short && last.beam.is_empty() && end.frontier.len() == 2)
            .then_some((world, journal))
    });
    let (world, mut journal) = cut.expect("a seed whose second depth is cut and promotes nothing");
    let before = journal.state();
    assert!(audit::check_structure(&before).is_empty());
    assert_eq!(before.stop_reason(), Some(StopReason::MaxEvals));
    journal.events.push(Event::SettingsChanged { reach: reach(1) });
    let end = go(&mut journal, &world).expect("a run");
    let expanded = end.closed.get(2).map(|closed| closed.expanded.clone());
    assert_eq!(expanded, Some(before.frontier.clone()), "both nodes get their turn");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_completion_gives_the_same_tree(
        seed in 0_u64..1000,
        order in any::<u64>(),
        workers in 2_u32..9,
        scope in prop_oneof![
            Just(DedupeScope::None),
            Just(DedupeScope::Global),
            Just(DedupeScope::NodePlusAncestors)
        ],
        budget in prop_oneof![Just(None), (1_u32..20).prop_map(Some)],
        per_node in prop_oneof![Just(None), (1_u32..3).prop_map(NonZeroU32::new)],
    ) {
        let meaning = || FixedSettings { dedupe_scope: scope, ..meaning() };
        let run = |workers, order| {
            let world = MemoryWorld::new(seed, order);
            let reach = RunLimits {
                max_total_idea_evals: budget,
                max_parallel_per_node: per_node,
                ..reach(workers)
            };
            let mut journal = MemoryJournal::begun(meaning(), reach);
            let end = go(&mut journal, &world).expect("a run");
            let over = |stage: &Stage| matches!(stage, Stage::Decided(..) | Stage::Failed { .. });
            prop_assert!(end.evals.iter().all(|eval| over(&eval.stage)));
            prop_assert_eq!(&journal.state(), &end);
            Ok(settled(end, world.disk()))
        };
        prop_assert!(run(1, 0)? == run(workers, order)?);
    }
}
