//! A run whose deadline is over. Nothing new begins, the depth is closed with the finished evals,
//! and with more time the run goes on.

#![cfg(test)]

use jiff::Timestamp;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use treebeam_core::audit;
use treebeam_core::event::{Event, StopReason, SweepSubject};
use treebeam_core::facts::{Eval, Facts, RunHistory, Stage};
use treebeam_core::id::EvalId;
use treebeam_core::plan::{self, RunningSteps};
use treebeam_core::policy::{FixedSettings, RunDeadline, RunLimits};
use treebeam_core::state::State;
use treebeam_run::{RunHalt, drive_run};
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::MemoryWorld;

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not zero")
}

/// Settings without a control group, and with one.
const CONTROLS: [Option<&str>; 2] = [None, Some("best-of-n=0.4")];

fn meaning(control: Option<&str>) -> FixedSettings {
    FixedSettings {
        control: control.map(|text| text.parse().expect("a control")),
        ideas_per_node: number(4),
        beam_width: number(2),
        sweep_config_limit: Some(number(4)),
        ..FixedSettings::default()
    }
}

/// Limits with as many answers as there are seconds until the deadline.
fn reach(workers: u32, answers: Option<usize>) -> RunLimits {
    let moment =
        |answers| Timestamp::from_second(i64::try_from(answers).expect("few")).expect("a time");
    RunLimits {
        max_depth: 3,
        max_parallel_evals: number(workers),
        deadline: answers.map(|answers| RunDeadline::At(moment(answers))),
        ..RunLimits::default()
    }
}

fn world() -> MemoryWorld {
    MemoryWorld::new(7, 7).with_slow_answers()
}

fn go(journal: &mut MemoryJournal, world: &MemoryWorld) -> Result<State, RunHalt> {
    drive_run(journal.state(), world.ports(), journal, &mut |_, _| {})
}

fn count(facts: &Facts, wanted: fn(&Eval) -> bool) -> usize {
    facts.evals.iter().filter(|eval| wanted(eval)).count()
}

fn all_answers(control: Option<&str>) -> usize {
    let world = world();
    go(&mut MemoryJournal::begun(meaning(control), reach(1, None)), &world).expect("a run");
    world.paid()
}

fn must_be_sound(end: &State, world: &MemoryWorld, what: &str) {
    assert_eq!(end.stop_reason(), Some(StopReason::Deadline), "{what}");
    assert!(audit::check_structure(end).is_empty() && audit::check_beams(end).is_empty(), "{what}");
    let open = |eval: &Eval| match eval.stage {
        Stage::Queued
        | Stage::Implementing(_)
        | Stage::Implemented(_)
        | Stage::Sweeping(_)
        | Stage::Swept(..) => true,
        // Evals of the control group come no further.
        Stage::Scored(_) => eval.group.is_tree(),
        Stage::Decided(..)
        | Stage::Failed { .. }
        | Stage::Unfinished { .. }
        | Stage::Superseded(..)
        | Stage::SetAside => false,
    };
    assert_eq!(count(end, open), 0, "{what}: every eval is judged or closed");
    let worktrees = world.disk().worktrees.into_keys().filter(|name| name.starts_with('e'));
    assert_eq!(worktrees.count(), 0, "{what}: nothing is left behind");
}

#[test]
fn nothing_begins_once_the_time_is_over_wherever_that_is() {
    for control in CONTROLS {
        let all = all_answers(control);
        let (mut unswept, mut promoted) = (0, 0);
        for (workers, answers) in [1, 3].into_iter().flat_map(|n| (0..all).map(move |a| (n, a))) {
            let end = late(control, workers, answers);
            let begun =
                |eval: &Eval| matches!(eval.stage, Stage::Unfinished { started_at: Some(_), .. });
            unswept += count(&end, begun);
            promoted += usize::from(end.nodes.len() > 1);
        }
        assert!(unswept > all / 2 && promoted > all / 2, "{unswept} unswept, {promoted} of {all}");
    }
}

#[test]
fn a_root_is_not_swept_once_the_time_is_over() {
    let world = world();
    let mut journal = MemoryJournal::begun(meaning(None), reach(1, Some(0)));
    let end = go(&mut journal, &world).expect("a run that stops");
    must_be_sound(&end, &world, "no time");
    let swept = |event: &Event| matches!(event, Event::SweepSubmitted { .. });
    assert!(!journal.events.iter().any(swept), "{:?}", journal.events);
    // A run that was given more time ends like one that had it from the beginning.
    journal.events.push(Event::SettingsChanged { reach: reach(1, None) });
    let end = go(&mut journal, &world).expect("a run with more time");
    let mut whole = MemoryJournal::begun(meaning(None), reach(1, None));
    let whole = go(&mut whole, &self::world()).expect("a run");
    let [end, whole] =
        [end, whole].map(|state| Facts { history: RunHistory::default(), ..state.into_facts() });
    assert_eq!(end, whole);
}

#[test]
fn a_root_that_is_being_swept_when_the_time_is_over_counts() {
    let state = MemoryJournal::begun(meaning(None), reach(1, Some(0))).state();
    let jobs = [SweepSubject::Root].into();
    let running = RunningSteps { jobs, ..RunningSteps::default() };
    assert_eq!(plan::next_moves(&state, &running, Timestamp::UNIX_EPOCH), []);
}

/// A run with the time for so many answers.
fn late(control: Option<&str>, workers: u32, answers: usize) -> State {
    let (world, what) = (world(), format!("{control:?}, {workers} at once, {answers} answers"));
    let mut journal = MemoryJournal::begun(meaning(control), reach(workers, Some(answers)));
    let end = go(&mut journal, &world).expect("a run that stops");
    must_be_sound(&end, &world, &what);
    // Questions that were asked before the deadline may have been answered after it.
    let most = answers + usize::try_from(workers).expect("few") - 1;
    assert!((answers..=most).contains(&world.paid()), "{what}: {}", world.paid());
    assert_eq!(journal.state(), end, "{what}: the events lead to the state");
    let late = journal.events.iter().position(|e| matches!(e, Event::DeadlinePassed { .. }));
    let begun =
        |event: &&Event| matches!(event, Event::StepStarted { .. } | Event::SweepSubmitted { .. });
    if let Some(late) = late {
        assert_eq!(journal.events[late..].iter().find(begun), None, "{what}");
    }
    end
}

#[test]
fn a_run_that_is_cut_off_is_late_all_the_same_and_goes_on_with_more_time() {
    for control in CONTROLS {
        let all = all_answers(control);
        let moments = [all / 2, 0, 1, 4, all - 1];
        let many = if control.is_some() { 1 } else { moments.len() };
        for answers in moments.into_iter().take(many) {
            let mut clean = MemoryJournal::begun(meaning(control), reach(1, Some(answers)));
            go(&mut clean, &world()).expect("a run");
            for cut in 1..clean.events.len() {
                cut_off(control, answers, cut);
            }
        }
    }
}

fn cut_off(control: Option<&str>, answers: usize, cut: usize) {
    let (world, what) = (world(), format!("{control:?}, {answers} answers, cut after event {cut}"));
    let mut journal = MemoryJournal::begun(meaning(control), reach(1, Some(answers)));
    journal.fuse = Some(cut);
    if go(&mut journal, &world).is_err() && cut.is_multiple_of(2) {
        world.restart();
    }
    journal.fuse = None;
    let end = go(&mut journal, &world).expect("a resumed run");
    must_be_sound(&end, &world, &what);
    journal.events.push(Event::SettingsChanged { reach: reach(1, None) });
    let end = go(&mut journal, &world).expect("a run with more time");
    assert_ne!(end.stop_reason(), Some(StopReason::Deadline), "{what}");
    let went_on = world.paid() > answers || end.stop_reason() == Some(StopReason::MaxDepth);
    assert!(end.stop_reason().is_some() && went_on, "{what}");
}

#[test]
fn what_runs_when_the_time_is_over_comes_to_its_end() {
    let mut all = 0;
    for answers in 4..12 {
        let mut journal = MemoryJournal::begun(meaning(None), reach(3, Some(answers)));
        let end = go(&mut journal, &world()).expect("a run");
        let submitted = |event: &Event| {
            let Event::SweepSubmitted { subject: SweepSubject::Eval(eval), .. } = event else {
                return None;
            };
            Some(*eval)
        };
        let swept: BTreeSet<EvalId> = journal.events.iter().filter_map(submitted).collect();
        all += swept.len();
        for eval in swept {
            let stage = end.eval(eval).map(|eval| eval.stage.clone());
            let counts = matches!(stage, Some(Stage::Decided(..) | Stage::Failed { .. }));
            assert!(counts, "{answers} answers: every sweep that was begun counts: {stage:?}");
        }
    }
    assert!(all > 0, "some sweep was begun");
}
