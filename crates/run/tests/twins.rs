//! Candidates with the same git tree: swept once, one place in a beam, and the same record in any
//! order of ends. The agent in memory words a few changes in ever new ways.

#![cfg(test)]

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use treebeam_core::audit;
use treebeam_core::event::{EvalRerun, Event, SweepSubject};
use treebeam_core::facts::{CandidateFate, Eval, Facts, RunHistory, Stage};
use treebeam_core::gate::GateRule;
use treebeam_core::id::{EvalId, GitTree};
use treebeam_core::plan::{RedoKind, send_back};
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_core::state::State;
use treebeam_run::{RunHalt, drive_run};
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::MemoryWorld;

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not zero")
}

fn meaning() -> FixedSettings {
    FixedSettings {
        ideas_per_node: number(6),
        beam_width: number(3),
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

/// A whole run with so many workers, whose sweeps end in this order.
fn run(seed: u64, order: u64, workers: u32) -> (State, Vec<Event>) {
    let world = MemoryWorld::new(seed, order).with_same_code();
    let mut journal = MemoryJournal::begun(meaning(), reach(workers));
    let end = go(&mut journal, &world).expect("a run");
    assert_eq!(journal.state(), end, "the events lead to the state");
    (end, journal.events)
}

/// The parts of a run that do not depend on the order of ends.
fn settled(state: &State) -> Facts {
    let mut facts = state.clone().into_facts();
    facts.history = RunHistory::default();
    facts.limits.max_parallel_evals = NonZeroU32::MIN;
    facts
}

fn tree(eval: &Eval) -> Option<GitTree> {
    eval.scored_candidate()?.work.tree
}

fn original(eval: &Eval) -> Option<SweepSubject> {
    eval.scored_candidate()?.work.same_code_as
}

/// Measured evals of each git tree, the oldest first.
fn by_tree(state: &State) -> BTreeMap<GitTree, Vec<Eval>> {
    let mut found: BTreeMap<_, Vec<Eval>> = BTreeMap::new();
    for eval in state.evals.iter() {
        if let Some(tree) = tree(&eval) {
            found.entry(tree).or_default().push(eval.into_owned());
        }
    }
    found
}

#[test]
fn one_at_a_time_each_tree_is_swept_once() {
    let mut twins = 0;
    for seed in 0..20 {
        let (end, events) = run(seed, 0, 1);
        let swept = |id| {
            let of = |event: &&Event| matches!(event, Event::Swept { eval, .. } if *eval == id);
            events.iter().filter(of).count()
        };
        for evals in by_tree(&end).into_values() {
            let (first, others) = evals.split_first().expect("an eval");
            let is_original = original(first).is_none();
            assert_eq!(swept(first.id), usize::from(is_original), "seed {seed}, e{}", first.id);
            for twin in others {
                let expected = original(first).or(Some(SweepSubject::Eval(first.id)));
                assert_eq!(original(twin), expected, "seed {seed}, e{}", twin.id);
                assert_eq!(swept(twin.id), 0, "seed {seed}, e{}", twin.id);
                assert_eq!(twin.results(), first.results());
                twins += 1;
            }
        }
        assert!(end.history.replaced_sweeps.is_empty());
    }
    assert!(twins > 40, "{twins} twins");
}

#[test]
fn a_tree_has_one_place_in_all_beams() {
    let mut refused = 0;
    for seed in 0..20 {
        let (end, _) = run(seed, 0, 1);
        let kept: Vec<_> = end
            .evals
            .iter()
            .filter(|eval| matches!(eval.stage, Stage::Decided(_, _, CandidateFate::Promoted(_))))
            .filter_map(|eval| tree(&eval))
            .collect();
        let distinct: BTreeSet<_> = kept.iter().collect();
        assert_eq!(kept.len(), distinct.len(), "seed {seed}");
        assert_eq!(audit::check_beams(&end), [], "seed {seed}");
        assert_eq!(audit::check_structure(&end), [], "seed {seed}");
        let passed = |eval: &Eval| eval.gate_verdict().is_some_and(|verdict| verdict.has_passed());
        refused += end
            .evals
            .iter()
            .filter(|eval| {
                passed(eval)
                    && original(eval).is_some()
                    && matches!(eval.stage, Stage::Decided(_, _, CandidateFate::Dropped))
            })
            .count();
    }
    assert!(refused > 10, "{refused} refused");
}

#[test]
fn a_tree_equal_to_its_parents_has_no_effect_and_is_not_swept() {
    let mut found = 0;
    for seed in 0..40 {
        let (end, events) = run(seed, 0, 1);
        for eval in end.evals.iter() {
            let parent = end.node(eval.parent).expect("a parent");
            let same = end
                .evals
                .iter()
                .find(|other| other.candidate().is_some_and(|work| work.commit == parent.commit));
            let Some(same) = same.filter(|same| tree(same) == tree(&eval)) else { continue };
            let submitted = SweepSubject::Eval(eval.id);
            let is_swept = |event: &Event| matches!(event, Event::SweepSubmitted { subject, .. } if *subject == submitted);
            assert!(!events.iter().any(is_swept), "seed {seed}, e{}", eval.id);
            assert_eq!(eval.results(), same.results());
            let verdict = eval.gate_verdict().expect("a verdict");
            let check = verdict.checks.iter().find(|check| check.rule == GateRule::HasEffect);
            assert!(check.is_some_and(|check| !check.passed), "seed {seed}, e{}", eval.id);
            found += 1;
        }
    }
    assert!(found > 3, "{found} without effect");
}

#[test]
fn a_twin_that_was_swept_before_the_older_one_keeps_its_sweep_on_record_beside() {
    let mut replaced = 0;
    for order in 0..30 {
        let (end, events) = run(3, order, 8);
        for (id, results) in &end.history.replaced_sweeps {
            let own = |event: &Event| matches!(event, Event::Swept { eval, results: own, .. } if eval == id && own == results);
            assert!(events.iter().any(own), "e{id}");
            assert!(audit::recorded_references(&end).iter().any(|file| file.path == results.path));
            let eval = end.eval(*id).expect("an eval");
            assert!(original(&eval).is_some() && eval.results().as_ref() != Some(results));
            replaced += 1;
        }
    }
    assert!(replaced > 0, "no order in which both were swept");
}

#[test]
fn a_run_with_twins_that_is_cut_off_after_any_event_ends_the_same() {
    let (end, events) = run(3, 0, 1);
    let expected = settled(&end);
    for workers in [1, 8] {
        for cut in (1..events.len()).step_by(3) {
            let world = MemoryWorld::new(3, 5).with_same_code();
            let mut journal = MemoryJournal::begun(meaning(), reach(workers));
            journal.fuse = Some(cut);
            let broken = go(&mut journal, &world);
            if broken.is_err() && cut % 2 == 0 {
                world.restart();
            }
            journal.fuse = None;
            let resumed = go(&mut journal, &world).expect("a resumed run");
            assert_eq!(journal.state(), resumed, "the events lead to the state");
            assert!(settled(&resumed) == expected, "cut after {cut} with {workers} workers");
        }
    }
}

#[test]
fn what_is_evaluated_again_is_swept_again() {
    let world = MemoryWorld::new(3, 0).with_same_code();
    let mut journal = MemoryJournal::begun(meaning(), reach(1));
    let (_, events) = run(3, 0, 1);
    let closes = events.iter().position(|event| matches!(event, Event::DepthClosed { .. }));
    journal.fuse = closes.map(|at| at - 1);
    assert!(go(&mut journal, &world).is_err(), "cut off before the depth closes");
    journal.fuse = None;
    let at = jiff::Timestamp::UNIX_EPOCH;
    let sent = send_back(&journal.state(), &[RedoKind::RerunEvals], &|_| true, at).expect("reruns");
    let rerun: Vec<EvalRerun> = sent.rerun.clone();
    let twins = rerun.iter().filter(|rerun| {
        journal.state().eval(rerun.of).is_some_and(|eval| original(&eval).is_some())
    });
    assert!(twins.count() > 0, "a twin is evaluated again");
    journal.events.push(Event::SentBack(Box::new(sent)));
    let end = go(&mut journal, &world).expect("a run");
    for EvalRerun { eval: id, .. } in rerun {
        let eval = end.eval(id).expect("an eval");
        assert_eq!(original(&eval), None, "e{id}");
        let swept = |event: &Event| matches!(event, Event::Swept { eval, .. } if *eval == id);
        assert_eq!(journal.events.iter().filter(|event| swept(event)).count(), 1, "e{id}");
    }
    assert_eq!(audit::check_beams(&end), []);
}

#[test]
fn tree_and_control_group_do_not_share_a_sweep() {
    for seed in 0..10 {
        let world = MemoryWorld::new(seed, 0).with_same_code();
        let with_control = FixedSettings {
            control: Some("best-of-n=0.4".parse().expect("a control")),
            ..meaning()
        };
        let mut journal = MemoryJournal::begun(with_control, reach(8));
        let end = go(&mut journal, &world).expect("a run");
        for eval in end.evals.iter() {
            let Some(SweepSubject::Eval(of)) = original(&eval) else { continue };
            assert_eq!(end.eval(of).expect("an eval").group, eval.group, "e{}", eval.id);
        }
    }
}

#[test]
fn a_failed_sweep_is_not_taken_over() {
    let mut failed = 0;
    for seed in 0..20 {
        let (end, events) = run(seed, 0, 1);
        for eval in end.evals.iter() {
            let Stage::Failed { work: Some(work), .. } = &eval.stage else { continue };
            assert_eq!(work.same_code_as, None);
            let submitted = SweepSubject::Eval(eval.id);
            assert!(events.iter().any(|event| {
                matches!(event, Event::SweepSubmitted { subject, .. } if *subject == submitted)
            }));
            failed += 1;
        }
    }
    assert!(failed > 10, "{failed} failed");
}

#[test]
fn a_record_that_names_a_wrong_original_is_found() {
    let (end, _) = run(3, 0, 1);
    let twin = end.evals.iter().find(|eval| matches!(original(eval), Some(SweepSubject::Eval(_))));
    let twin = twin.expect("a twin").id;
    let mut facts = end.clone().into_facts();
    let wrong = |eval: &mut Eval, of: u32| {
        let Stage::Decided(measured, ..) = &mut eval.stage else { panic!("it is decided") };
        measured.work.same_code_as = Some(SweepSubject::Eval(EvalId::new(of)));
    };
    let place = usize::try_from(twin.number() - 1).expect("a place");
    let others = end.evals.iter().filter(|eval| tree(eval) != tree(&end.eval(twin).expect("it")));
    let other = others.map(|eval| eval.id.number()).next().expect("another");
    wrong(&mut facts.evals.unpack_all()[place], other);
    let findings = audit::check_structure(&facts);
    assert!(
        findings.iter().any(|finding| finding.what.contains("not the same code")),
        "{findings:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn twins_at_1_2_and_8_at_once_in_every_order_of_completion_are_the_same_record(
        seed in 0_u64..1000,
        order in any::<u64>(),
    ) {
        let expected = settled(&run(seed, 0, 1).0);
        for workers in [2, 8] {
            prop_assert!(settled(&run(seed, order, workers).0) == expected, "{} at once", workers);
        }
    }
}
