//! The use of parallel slots, in virtual time. The real loop and plan are compared with the greedy
//! list schedule in the order of ids, for evals of uneven length; and no node waits for another.

#![cfg(test)]

mod greedy;
mod virtual_time;

use greedy::{Lanes, Work, makespan};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use treebeam_core::id::{EvalId, NodeId};
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_core::state::State;
use treebeam_run::drive_run;
use treebeam_testkit::journal::MemoryJournal;
use virtual_time::{Length, Times, VirtualTime};

/// Largest allowed ratio to the greedy schedule, in hundredths.
const LONGER: u64 = 105;
const SLOTS: [u32; 3] = [2, 4, 8];

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not zero")
}

/// The size of a run.
#[derive(Clone, Copy)]
struct Size {
    ideas: u32,
    beam: u32,
    depth: u32,
}

const ONE_NODE: Size = Size { ideas: 64, beam: 1, depth: 1 };
/// One node, then four.
const SEVERAL: Size = Size { ideas: 16, beam: 4, depth: 2 };

fn lanes(evals: u32) -> Lanes {
    Lanes { evals: usize::try_from(evals).expect("few"), per_node: None, sweeps: None }
}

fn reach(size: Size, lanes: Lanes) -> RunLimits {
    let count = |n: usize| number(u32::try_from(n).expect("few"));
    RunLimits {
        max_depth: size.depth,
        max_parallel_evals: count(lanes.evals),
        max_parallel_per_node: lanes.per_node.map(count),
        sweep_max_parallel: lanes.sweeps.map(count),
        ..RunLimits::default()
    }
}

/// Runs to the end, and returns when each of its evals began and ended.
fn run(
    size: Size,
    lanes: Lanes,
    length: impl Fn(u32) -> Length + Sync + 'static,
) -> (State, BTreeMap<EvalId, Times>) {
    let meaning = FixedSettings {
        ideas_per_node: number(size.ideas),
        beam_width: number(size.beam),
        sweep_config_limit: Some(number(4)),
        ..FixedSettings::default()
    };
    let world = VirtualTime::new(move |eval: EvalId| length(eval.number()));
    let mut journal = MemoryJournal::begun(meaning, reach(size, lanes));
    let mut see = |state: &State, _: &[_]| world.see(state);
    let end = drive_run(journal.state(), world.ports(), &mut journal, &mut see).expect("a run");
    (end, world.times())
}

/// Returns the evals of each depth, as input of the greedy schedule.
fn depths(state: &State, length: impl Fn(u32) -> Length) -> Vec<Vec<Work>> {
    let mut depths: BTreeMap<_, Vec<Work>> = BTreeMap::new();
    for eval in state.evals.iter() {
        let node = state.node(eval.parent).expect("its node");
        let work = (usize::try_from(node.id.number()).expect("few"), length(eval.id.number()));
        depths.entry(node.depth).or_default().push(work);
    }
    depths.into_values().collect()
}

#[track_caller]
fn check(
    what: &str,
    size: Size,
    lanes: Lanes,
    length: impl Fn(u32) -> Length + Sync + Copy + 'static,
) {
    let (end, times) = run(size, lanes, length);
    let depths = depths(&end, length);
    assert_eq!(depths.iter().map(Vec::len).sum::<usize>(), times.len(), "{what}: {lanes:?}");
    assert!(times.len() >= 64, "{what}: {} evals", times.len());
    let ideal: u64 = depths.iter().map(|work| makespan(work, lanes)).sum();
    let took = times.values().map(|times| times.ended).max().expect("evals");
    assert!(took * 100 <= ideal * LONGER, "{what}: {lanes:?}: {took}, greedy {ideal}");
}

/// Returns a pseudorandom number below `end` for a seed and an eval.
fn drawn(seed: u64, eval: u32, end: u64) -> u64 {
    let mut mixed = (seed << 32 | u64::from(eval)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 31)) % end
}

const fn length(implement: u64, sweep: u64) -> Length {
    Length { implement, sweep }
}

/// Named lengths of evals, by the number of an eval.
type Shape = (&'static str, fn(u32) -> Length);

const SHAPES: [Shape; 7] = [
    ("all alike", |_| length(10, 50)),
    ("long ones at the end", |eval| if eval > 56 { length(20, 900) } else { length(5, 40) }),
    ("one giant", |eval| if eval == 30 { length(50, 5_000) } else { length(7, 60) }),
    ("alternating", |eval| if eval.is_multiple_of(2) { length(3, 400) } else { length(3, 17) }),
    ("long answers", |eval| length(drawn(7, eval, 600) + 1, drawn(8, eval, 20) + 1)),
    ("long sweeps", |eval| length(drawn(9, eval, 20) + 1, drawn(10, eval, 600) + 1)),
    ("ever shorter", |eval| length(400 / u64::from(eval) + 1, 4_000 / u64::from(eval) + 1)),
];

#[test]
fn slots_are_used_as_well_as_a_greedy_schedule_would() {
    for (name, shape) in SHAPES {
        for slots in SLOTS {
            check(name, ONE_NODE, lanes(slots), shape);
        }
    }
}

#[test]
fn lengths_by_lot_are_scheduled_as_well() {
    for slots in SLOTS {
        check("seed 1", ONE_NODE, lanes(slots), |eval| {
            length(drawn(1, eval, 300), drawn(2, eval, 300))
        });
        check("seed 3", ONE_NODE, lanes(slots), |eval| {
            length(drawn(3, eval, 90), drawn(4, eval, 2_000))
        });
    }
}

#[test]
fn fewer_sweeps_than_evals_at_once_keep_all_of_their_lanes_busy() {
    for (name, shape) in SHAPES {
        for (slots, sweeps) in [(4, 1), (8, 3)] {
            check(name, ONE_NODE, Lanes { sweeps: Some(sweeps), ..lanes(slots) }, shape);
        }
    }
}

#[test]
fn several_nodes_are_scheduled_as_well_with_and_without_lanes_of_their_own() {
    for (name, shape) in SHAPES {
        for per_node in [None, Some(1), Some(2)] {
            check(name, SEVERAL, Lanes { per_node, ..lanes(8) }, shape);
        }
    }
}

/// Returns the times of the deepest nodes' evals, by node.
fn deepest(end: &State, times: &BTreeMap<EvalId, Times>) -> BTreeMap<NodeId, Vec<Times>> {
    let mut by_node: BTreeMap<NodeId, Vec<Times>> = BTreeMap::new();
    for eval in end.evals.iter().filter(|eval| eval.parent != NodeId::ROOT) {
        by_node.entry(eval.parent).or_default().push(times[&eval.id]);
    }
    by_node
}

#[test]
fn with_lanes_per_node_no_node_waits_for_another() {
    // The evals of one node take ten times as long as all others.
    let slow = |eval| if (17..=32).contains(&eval) { length(10, 1_000) } else { length(10, 90) };
    let (end, times) = run(SEVERAL, Lanes { per_node: Some(2), ..lanes(8) }, slow);
    let by_node = deepest(&end, &times);
    assert_eq!(by_node.len(), 4);
    let begins: Vec<u64> = by_node
        .values()
        .map(|evals| evals.iter().map(|it| it.begun).min().expect("evals"))
        .collect();
    assert!(begins.iter().all(|begun| *begun == begins[0]), "all begin at once: {begins:?}");
    let ends: Vec<u64> = by_node
        .values()
        .map(|evals| evals.iter().map(|it| it.ended).max().expect("evals"))
        .collect();
    assert_eq!(ends[1..], [begins[0] + 800; 3], "as if they were alone: {ends:?}");
    assert_eq!(ends[0], begins[0] + 8 * 1_010);
}

#[test]
fn lanes_of_the_root_count_the_control_group_too() {
    let meaning = FixedSettings {
        ideas_per_node: number(8),
        sweep_config_limit: Some(number(4)),
        control: Some("best-of-n=0.5".parse().expect("a control group")),
        ..FixedSettings::default()
    };
    let world = VirtualTime::new(|_: EvalId| length(10, 90));
    let lanes = Lanes { per_node: Some(1), ..lanes(8) };
    let mut journal = MemoryJournal::begun(meaning, reach(Size { depth: 1, ..SEVERAL }, lanes));
    let mut most = 0;
    let mut see = |state: &State, _: &[_]| {
        world.see(state);
        most = most.max(state.evals_under_way().count());
    };
    let end = drive_run(journal.state(), world.ports(), &mut journal, &mut see).expect("a run");
    assert!(end.evals.iter().any(|eval| !eval.group.is_tree()), "there is a control group");
    assert_eq!(most, 1, "all of them are the root's");
}

#[test]
fn what_ends_first_makes_room_first_whatever_its_id() {
    let (end, times) = run(ONE_NODE, lanes(4), |eval| length(5, 10 + 97 * u64::from(65 - eval)));
    let begun: Vec<u64> = times.values().map(|it| it.begun).collect();
    assert!(begun.is_sorted(), "evals begin in the order of their ids: {begun:?}");
    let ended: Vec<u64> = times.values().map(|it| it.ended).collect();
    assert!(!ended.is_sorted(), "and end in another");
    assert_eq!(end.closed.len(), 1);
    // Whenever an eval ends another begins at once, while there is one.
    for begins in begun.iter().skip(4) {
        assert!(ended.contains(begins), "nothing ended at {begins}: {ended:?}");
    }
}
