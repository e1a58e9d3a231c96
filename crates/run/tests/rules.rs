//! A run that begins with the first rules of scoring and continues with the latest. The open depth
//! is decided as a whole by the latest rules, and closed depths stay as they are.

#![cfg(test)]

use std::num::NonZeroU32;
use treebeam_core::audit;
use treebeam_core::event::Event;
use treebeam_core::facts::{Eval, Facts, Stage};
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_core::rules_version::RulesVersion;
use treebeam_core::state::State;
use treebeam_run::{RunHalt, drive_run};
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::MemoryWorld;

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not zero")
}

fn begun(rules_version: RulesVersion, workers: u32) -> MemoryJournal {
    let meaning = FixedSettings {
        ideas_per_node: number(4),
        beam_width: number(2),
        sweep_config_limit: Some(number(4)),
        ..FixedSettings::default()
    };
    let reach =
        RunLimits { max_depth: 2, max_parallel_evals: number(workers), ..RunLimits::default() };
    let mut journal = MemoryJournal::begun(meaning, reach);
    if let Some(Event::RunStarted(started)) = journal.events.first_mut() {
        started.rules_version = rules_version;
    }
    journal
}

fn go(journal: &mut MemoryJournal, world: &MemoryWorld) -> Result<State, RunHalt> {
    drive_run(journal.state(), world.ports(), journal, &mut |_, _| {})
}

/// The decisions, independent of the rules: evals with their rank scores, and beams.
fn decided(facts: &Facts) -> Vec<String> {
    let of = |eval: &Eval| {
        if let Stage::Decided(measured, word, fate) = &eval.stage {
            let score = measured.scored.vs_root.recommendation.score;
            format!("{} {} {score} {} {fate:?}", eval.id, measured.work.commit, word.has_passed())
        } else {
            format!("{} {:?}", eval.id, std::mem::discriminant(&eval.stage))
        }
    };
    let beams = facts.closed.iter().map(|closed| format!("{:?}", closed.beam));
    facts.evals.iter().map(|eval| of(&eval)).chain(beams).collect()
}

#[test]
fn the_open_depth_is_scored_anew_and_closed_ones_stand() {
    let world = MemoryWorld::new(7, 7);
    let mut older = begun(RulesVersion::First, 1);
    let expected = decided(&go(&mut older, &world).expect("a whole run"));
    let mut scored_anew = 0;
    for workers in [1, 3] {
        for cut in 2..older.events.len() {
            let world = MemoryWorld::new(7, 7);
            let mut journal = begun(RulesVersion::First, workers);
            journal.fuse = Some(cut);
            if go(&mut journal, &world).is_ok() {
                continue;
            }
            journal.fuse = None;
            let left = journal.state();
            let is_scored = |eval: &&Eval| matches!(eval.stage, Stage::Scored(_));
            scored_anew += left.open_evals().iter().filter(is_scored).count();
            let closed = left.closed.len();
            journal.events.push(Event::RulesChanged { rules_version: RulesVersion::LATEST });
            let end = go(&mut journal, &world).expect("a resumed run");
            assert_eq!(journal.state(), end, "the events lead to the state");
            assert_eq!(decided(&end), expected, "cut after event {cut} with {workers} workers");
            assert!(audit::check_beams(&end).is_empty() && audit::check_structure(&end).is_empty());
            for eval in end.evals.iter() {
                let Some(measured) = eval.scored_candidate() else { continue };
                let by = measured.scored.rules_version;
                let was_closed = usize::try_from(eval.depth.0).expect("a depth") < closed;
                assert_eq!(by.is_latest(), !was_closed, "{} after event {cut}", eval.id);
                assert_eq!(audit::check_decision(&end, &eval, &measured.scored), None);
            }
        }
    }
    assert!(scored_anew > 0, "no eval was scored when it was left");
}

#[test]
fn the_rules_never_go_back() {
    let mut state = begun(RulesVersion::LATEST, 1).state();
    for rules_version in [RulesVersion::First, RulesVersion::LATEST] {
        assert!(state.apply(&Event::RulesChanged { rules_version }).is_err());
    }
}
