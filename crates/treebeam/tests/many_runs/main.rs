//! Five concurrent runs in one repository, each with parallel evals, each killed again and again at
//! random moments and resumed: every one ends as without kills, no call or sweep that is on disk is
//! repeated, and nothing is left over.

#![cfg(test)]
#![cfg(target_os = "linux")]
#![expect(
    clippy::disallowed_methods,
    reason = "runners lead groups of their own, and are killed with them"
)]

mod field;

use field::{Field, Lane, Size};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};
use treebeam_testkit::apart::{is_campaign, remark};
use treebeam_testkit::program::{Signal, send, send_group};
use treebeam_testkit::traces::processes;

const LANES: [Lane; 5] = [
    Lane { run: "a", at_once: "1" },
    Lane { run: "b", at_once: "2" },
    Lane { run: "c", at_once: "3" },
    Lane { run: "d", at_once: "2" },
    Lane { run: "e", at_once: "4" },
];
/// Runs in which sometimes everything is killed, sweeps too.
const HARDER: [&str; 2] = ["d", "e"];
/// Maximum time of anything, unless it hangs.
const LONG: Duration = Duration::from_mins(5);

/// Returns the size of the runs, and the number of kills of each.
fn extent() -> (Size, usize) {
    if is_campaign() {
        (Size { ideas: 8, depth: 4, beam: 2 }, 40)
    } else {
        (Size { ideas: 2, depth: 2, beam: 1 }, 4)
    }
}

/// Pseudo-random numbers from a seed.
struct Lot(u64);

impl Lot {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Target of a kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blow {
    Runner,
    /// The runner and all processes in its group.
    Group,
    /// All processes of the run, in any group.
    Everything,
}

impl Blow {
    fn drawn(lot: &mut Lot, lane: Lane) -> Self {
        match lot.below(6) {
            0 => Self::Group,
            1 if HARDER.contains(&lane.run) => Self::Everything,
            _ => Self::Runner,
        }
    }

    fn strike(self, runner: &mut Child, field: &Field, lane: Lane) {
        if self == Self::Group {
            // It may have ended by itself.
            let _ = send_group(runner.id(), Signal::Kill);
        }
        drop(runner.kill());
        runner.wait().expect("its end");
        let mut left = usize::from(self == Self::Everything);
        while left > 0 {
            let all = processes(&field.run_dir(lane));
            left = all.len();
            // A process may have ended meanwhile.
            let _told = all.iter().filter(|(pid, _)| send(*pid, Signal::Kill)).count();
            thread::sleep(Duration::from_millis(2));
        }
    }
}

/// State at a kill: the number of logged calls, and the finished work that must not be logged
/// again.
struct Guard {
    calls: usize,
    finished: BTreeSet<String>,
}

/// Kills of a run, and its state at each.
#[derive(Default)]
struct Told {
    blows: Vec<Blow>,
    guards: Vec<Guard>,
}

/// Drives a run to its end, and kills it this often on the way.
fn beaten(field: &Field, lane: Lane, kills: usize, lot: &mut Lot) -> Told {
    let mut told = Told::default();
    loop {
        let mut runner = field.start(lane);
        let more = told.blows.len() < kills;
        let enough = field.events(lane) + usize::try_from(lot.below(5)).expect("few");
        let begun = Instant::now();
        while runner.try_wait().expect("its state").is_none() {
            assert!(begun.elapsed() < LONG, "{lane:?} hangs: {}", field.said(lane));
            if more && field.events(lane) >= enough {
                break;
            }
            thread::sleep(Duration::from_millis(2));
        }
        if let Some(ended) = runner.try_wait().expect("its state") {
            assert!(ended.success(), "{lane:?}, after {:?}: {}", told.blows, field.said(lane));
            return told;
        }
        thread::sleep(Duration::from_millis(lot.below(50)));
        let blow = Blow::drawn(lot, lane);
        blow.strike(&mut runner, field, lane);
        told.blows.push(blow);
        // In this order: finished work was logged before.
        let finished = field.finished(lane);
        told.guards.push(Guard { finished, calls: field.calls(lane).len() });
    }
}

/// Asserts that no finished work was repeated, and no sweep was restarted unless it was killed too.
fn must_not_repeat(field: &Field, lane: Lane, told: &Told) {
    let calls = field.calls(lane);
    for Guard { calls: before, finished } in &told.guards {
        let again = |call: &&String| finished.iter().any(|it| call.starts_with(it.as_str()));
        let repeated: Vec<&String> = calls[*before..].iter().filter(again).collect();
        assert_eq!(repeated, [""; 0], "{lane:?}, {:?}: {calls:#?}", told.blows);
    }
    let mut sweeps: BTreeMap<&str, usize> = BTreeMap::new();
    for call in &calls {
        if let Some((eval, _)) = call.strip_prefix("begin sweep ").and_then(|it| it.split_once(' '))
        {
            *sweeps.entry(eval).or_default() += 1;
        }
    }
    let hard = told.blows.contains(&Blow::Everything);
    let repeated: Vec<_> = sweeps.iter().filter(|(_, times)| **times > 1 && !hard).collect();
    assert!(repeated.is_empty(), "{lane:?}, {:?}: {repeated:?} in {calls:#?}", told.blows);
}

#[test]
fn five_runs_at_once_killed_again_and_again_end_as_if_nobody_had() {
    let (size, kills) = extent();
    let (whole, field) = (Field::new(size), Field::new(size));
    let mut all = Vec::new();
    thread::scope(|scope| {
        let start = |field, lane, kills, seed: u64| {
            scope.spawn(move || beaten(field, lane, kills, &mut Lot(seed)))
        };
        let whole: Vec<_> = LANES.iter().map(|lane| start(&whole, *lane, 0, 1)).collect();
        for run in whole {
            drop(run.join().expect("a whole run"));
        }
        let killed: Vec<_> = LANES
            .iter()
            .zip(0x2545_f491..)
            .map(|(lane, seed)| start(&field, *lane, kills, seed))
            .collect();
        all.extend(killed.into_iter().map(|run| run.join().expect("a killed run")));
    });
    for (lane, told) in LANES.into_iter().zip(&all) {
        assert!(!told.blows.is_empty(), "{lane:?} was through before it could be killed");
        assert!(!is_campaign() || told.blows.len() == kills, "{lane:?}: {}", told.blows.len());
        must_not_repeat(&field, lane, told);
        field.must_equal(&whole, lane);
        let count = |kind| told.blows.iter().filter(|blow| **blow == kind).count();
        let begun = |field: &Field| {
            field.calls(lane).iter().filter(|call| call.starts_with("begin")).count()
        };
        remark(&format!(
            "run {}: killed {} times ({} the group, {} everything), {} calls begun, {} where nobody was killed",
            lane.run,
            told.blows.len(),
            count(Blow::Group),
            count(Blow::Everything),
            begun(&field),
            begun(&whole),
        ));
    }
    field.must_be_as(&whole);
}
