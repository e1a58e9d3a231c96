//! The space of worktrees is bounded throughout a run, however slowly they are removed.

#![cfg(test)]

use std::num::NonZeroU32;
use treebeam_core::event::{Event, LeftoverKind};
use treebeam_core::facts::{Facts, RemovalState};
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_run::drive_run;
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::MemoryWorld;

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not zero")
}

/// Worktrees that could not be removed, and are tried again later.
fn deferred(facts: &Facts) -> usize {
    let worktrees = facts.leftovers.iter().filter(|(it, _)| it.kind == LeftoverKind::Worktree);
    worktrees.filter(|(_, removal)| matches!(removal, RemovalState::Deferred { .. })).count()
}

#[test]
fn worktrees_are_no_more_than_those_of_nodes_and_of_evals_at_once() {
    for at_once in [1, 3] {
        let world = MemoryWorld::new(7, 7).with_slow_removals();
        let meaning = FixedSettings {
            ideas_per_node: number(20),
            beam_width: number(2),
            sweep_config_limit: Some(number(4)),
            ..FixedSettings::default()
        };
        let reach =
            RunLimits { max_depth: 2, max_parallel_evals: number(at_once), ..RunLimits::default() };
        let mut journal = MemoryJournal::begun(meaning, reach);
        let evals = usize::try_from(at_once).expect("few");
        let mut look = |state: &treebeam_core::state::State, _: &[Event]| {
            let there = world.worktrees();
            let most = state.nodes.len() + evals + deferred(state);
            assert!(there <= most, "{there} worktrees, {most} at most, {at_once} at once");
        };
        let end =
            drive_run(journal.state(), world.ports(), &mut journal, &mut look).expect("a run");
        assert!(end.evals.len() > 30, "{} evals", end.evals.len());
        assert_eq!(world.worktrees(), end.nodes.len(), "nothing is left behind");
    }
}
