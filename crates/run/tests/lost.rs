//! Jobs whose process is gone without a result: they are run again, but not for ever.

#![cfg(test)]

use std::num::NonZeroU32;
use treebeam_core::event::{FailureKind, SweepSubject};
use treebeam_core::facts::Stage;
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_core::state::State;
use treebeam_run::{RunHalt, drive_run};
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::{MemoryWorld, Trouble};

fn begun() -> MemoryJournal {
    let number = |n| NonZeroU32::new(n).expect("not zero");
    let meaning = FixedSettings {
        ideas_per_node: number(3),
        sweep_config_limit: Some(number(4)),
        ..FixedSettings::default()
    };
    MemoryJournal::begun(meaning, RunLimits { max_depth: 2, ..RunLimits::default() })
}

fn go(journal: &mut MemoryJournal, world: &MemoryWorld) -> Result<State, RunHalt> {
    drive_run(journal.state(), world.ports(), journal, &mut |_, _| {})
}

/// Renders the tree without the numbers of submissions.
fn tree(state: State) -> String {
    let facts = state.into_facts();
    format!("{:?} {:?}", facts.nodes, facts.evals)
}

#[test]
fn what_is_lost_twice_is_run_a_third_time_and_nothing_else_changes() {
    let expected = tree(go(&mut begun(), &MemoryWorld::new(7, 7)).expect("a run"));
    let world = MemoryWorld::new(7, 7);
    world.give(Trouble::Losing(2));
    let mut journal = begun();
    let end = go(&mut journal, &world).expect("a run");
    assert_eq!(end.submission_count(SweepSubject::Root), 3);
    let swept = || end.evals.iter().map(|eval| end.submission_count(SweepSubject::Eval(eval.id)));
    assert!(swept().any(|n| n == 3) && swept().all(|n| n == 0 || n == 3));
    assert_eq!(tree(end), expected);
}

#[test]
fn what_is_lost_each_time_fails_alone() {
    let world = MemoryWorld::new(7, 7);
    world.give(Trouble::Losing(u32::MAX));
    let mut journal = begun();
    let halted = go(&mut journal, &world);
    assert!(matches!(&halted, Err(RunHalt::RootUnsound { why }) if why == "it was killed"));
    assert_eq!(journal.state().submission_count(SweepSubject::Root), 3);
    world.give(Trouble::None);
    journal.fuse = Some(journal.events.len() + 3);
    assert!(go(&mut journal, &world).is_err());
    journal.fuse = None;
    world.give(Trouble::Losing(u32::MAX));
    let end = go(&mut journal, &world).expect("a run");
    let is_lost = |stage: &Stage| matches!(stage, Stage::Failed { failure, .. } if failure.kind == FailureKind::Sweep);
    let lost = end.evals.iter().filter(|eval| is_lost(&eval.stage));
    assert!(lost.count() > 0);
}

/// Worktrees are never synced: when the power is cut after the end of a sweep, its files may be
/// torn by the time that the results are collected.
#[test]
fn a_sweep_whose_worktree_a_power_cut_has_torn_is_run_again_and_nothing_else_changes() {
    let mut clean = begun();
    let expected = tree(go(&mut clean, &MemoryWorld::new(7, 7)).expect("a run"));
    let mut repeated = 0;
    for cut in 1..clean.events.len() {
        let (world, mut journal) = (MemoryWorld::new(7, 7), begun());
        journal.fuse = Some(cut);
        assert!(go(&mut journal, &world).is_err(), "cut {cut}");
        journal.fuse = None;
        world.cut_power();
        let end = go(&mut journal, &world).expect("a run");
        let subjects =
            end.evals.iter().map(|eval| SweepSubject::Eval(eval.id)).chain([SweepSubject::Root]);
        repeated += subjects.filter(|subject| end.submission_count(*subject) > 1).count();
        assert_eq!(tree(end), expected, "cut {cut}");
    }
    assert!(repeated > 0, "no cut came between a sweep's end and its record");
}
