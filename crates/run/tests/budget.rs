//! A budget that is reached in the middle of a run. Running work ends, the depth is closed with the
//! finished evals, nothing is lost or failed, and a raised budget continues the run. It ends the
//! same after any cut.

#![cfg(test)]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use treebeam_core::audit;
use treebeam_core::event::{BudgetKind, Event, StopReason, TakeoverReason};
use treebeam_core::facts::{Eval, Facts, RunHistory, Stage};
use treebeam_core::id::{RunPath, Sha256};
use treebeam_core::path;
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_core::state::State;
use treebeam_run::port::{AgentError, MessageContent, UserIdea};
use treebeam_run::{RunHalt, drive_run};
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::{MemoryWorld, Trouble};

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not zero")
}

/// Settings with one node at a time, so that one worker pays in one order.
fn meaning(beam_width: u32) -> FixedSettings {
    FixedSettings {
        ideas_per_node: number(4),
        beam_width: number(beam_width),
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

fn settled(state: State) -> Facts {
    let mut facts = state.into_facts();
    facts.history = RunHistory::default();
    facts
}

fn count(facts: &Facts, wanted: fn(&Stage) -> bool) -> usize {
    facts.evals.iter().filter(|eval| wanted(&eval.stage)).count()
}

fn unfinished(facts: &Facts) -> usize {
    count(facts, |stage| matches!(stage, Stage::Unfinished { .. }))
}

/// Number of answers in a run without a budget.
fn answers(beam_width: u32) -> usize {
    let world = MemoryWorld::new(7, 7);
    go(&mut MemoryJournal::begun(meaning(beam_width), reach(1)), &world).expect("a run");
    world.paid()
}

/// Checks a run that a budget stopped, however it came about.
fn must_be_sound(end: &State, world: &MemoryWorld, purse: usize) {
    assert_eq!(end.stop_reason(), Some(StopReason::MaxCost), "{purse} answers");
    assert!(
        audit::check_structure(end).is_empty() && audit::check_beams(end).is_empty(),
        "{purse} answers"
    );
    assert!(world.paid() <= purse);
    let open = |stage: &Stage| {
        matches!(
            stage,
            Stage::Queued | Stage::Implementing(_) | Stage::Implemented(_) | Stage::Scored(_)
        )
    };
    assert_eq!(count(end, open), 0, "{purse} answers: every eval is judged or closed");
    let idle = end.evals.iter().filter(|eval| eval.depth == end.depth).count();
    assert_eq!(idle, 0, "{purse} answers: the depth that has evals is closed");
    let last = end.closed.last();
    assert!(unfinished(end) == 0 || last.is_some_and(|closed| closed.cut_short));
    let worktrees = world.disk().worktrees.into_keys().filter(|name| name.starts_with('e'));
    assert_eq!(worktrees.count(), 0, "{purse} answers: nothing is left behind");
}

#[test]
fn a_budget_closes_the_depth_with_what_finished_wherever_it_is_reached() {
    let all = answers(1);
    let (mut some_finished, mut none_asked) = (0, 0);
    for purse in 0..all {
        let world = MemoryWorld::new(7, 7).with_purse(purse);
        let mut journal = MemoryJournal::begun(meaning(1), reach(1));
        let end = go(&mut journal, &world).expect("a run that stops");
        must_be_sound(&end, &world, purse);
        assert_eq!(world.paid(), purse, "all that could be paid for was");
        let finished = end.closed.last().is_some_and(|closed| !closed.beam.is_empty());
        some_finished += usize::from(finished && unfinished(&end) > 0);
        none_asked += usize::from(unfinished(&end) == 0);
        assert_eq!(journal.state(), end, "the events lead to the state");
    }
    assert!(some_finished > 0 && none_asked > 1, "{some_finished}, {none_asked} of {all}");
}

/// Returns the digests of files in a journal.
fn recorded_digests(journal: &MemoryJournal) -> BTreeMap<RunPath, Sha256> {
    let mut digests = BTreeMap::new();
    for event in &journal.events {
        if let Event::FilesRecorded(recorded) = event {
            digests.extend(recorded.files.iter().map(|file| (file.path.clone(), file.sha256)));
        }
    }
    digests
}

#[test]
fn the_files_of_an_eval_that_a_budget_has_ended_must_have_their_digests() {
    let mut compared = 0;
    for purse in 0..answers(1) {
        let world = MemoryWorld::new(7, 7).with_purse(purse);
        let mut journal = MemoryJournal::begun(meaning(1), reach(1));
        let end = go(&mut journal, &world).expect("a run that stops");
        let (digests, disk) = (recorded_digests(&journal), world.disk());
        let references = audit::recorded_files(&end, &digests);
        for eval in end.evals.iter().filter(|eval| matches!(eval.stage, Stage::Unfinished { .. })) {
            let folder = format!("{}/", path::eval_folder(eval.id));
            for (path, sha256) in
                digests.iter().filter(|(path, _)| path.as_str().starts_with(&folder))
            {
                let reference = references.iter().find(|reference| reference.path == *path);
                assert!(reference.is_some(), "{purse} answers: `{path}` is not compared");
                let bytes = disk.files.get(path.as_str()).expect("a recorded file");
                assert_eq!(Sha256::hash_bytes(bytes), *sha256, "{purse} answers: `{path}`");
                compared += 1;
            }
        }
        // An eval that was never begun has no file, and so no digest.
        assert_eq!(audit::evals_without_digests(&end, &digests), 0, "{purse} answers");
    }
    assert!(compared > 0, "no budget was reached amid an eval");
}

#[test]
fn a_run_that_a_budget_stops_ends_the_same_wherever_it_is_cut_off() {
    let all = answers(1);
    for purse in [0, 1, 3, all / 2, all - 1] {
        let world = MemoryWorld::new(7, 7).with_purse(purse);
        let mut clean = MemoryJournal::begun(meaning(1), reach(1));
        let expected = settled(go(&mut clean, &world).expect("a run"));
        for cut in 1..clean.events.len() {
            let world = MemoryWorld::new(7, 7).with_purse(purse);
            let mut journal = MemoryJournal::begun(meaning(1), reach(1));
            journal.fuse = Some(cut);
            if go(&mut journal, &world).is_err() && cut % 2 == 0 {
                world.restart();
            }
            journal.fuse = None;
            let (from, because) = (None, TakeoverReason::OwnerDead);
            let at = jiff::Timestamp::UNIX_EPOCH;
            journal.events.push(Event::LockTakenOver { from, because, at });
            let end = go(&mut journal, &world).expect("a resumed run");
            assert!(settled(end) == expected, "{purse} answers, cut after event {cut}");
        }
    }
}

/// With several workers, the evals that a budget reaches are not fixed; everything else holds.
#[test]
fn several_workers_share_a_budget() {
    let all = answers(2);
    for purse in (0..all).step_by(3) {
        for order in 0..4 {
            let world = MemoryWorld::new(7, order).with_purse(purse);
            let mut journal = MemoryJournal::begun(meaning(2), reach(4));
            journal.fuse = (order % 2 == 1).then_some(5 + purse);
            let end = go(&mut journal, &world).or_else(|_| {
                journal.fuse = None;
                go(&mut journal, &world)
            });
            must_be_sound(&end.expect("a run that stops"), &world, purse);
        }
    }
}

#[test]
fn a_raised_budget_goes_on_at_the_next_depth() {
    let all = answers(1);
    let reach = || RunLimits { stop_on_empty_frontier: false, ..reach(1) };
    for purse in 0..all {
        let poor = MemoryWorld::new(7, 7).with_purse(purse);
        let mut journal = MemoryJournal::begun(meaning(1), reach());
        let stopped = go(&mut journal, &poor).expect("a run that stops");
        journal.events.push(Event::SettingsChanged { reach: reach() });
        let end = go(&mut journal, &poor.fork(7)).expect("a run that goes on");
        assert_eq!(end.stop_reason(), Some(StopReason::MaxDepth), "{purse} answers");
        assert_eq!(unfinished(&end), unfinished(&stopped), "{purse} answers: closed depths stand");
        assert_eq!(end.closed.len(), 3, "{purse} answers: no depth is lost to a question");
        assert!(end.reached_budget.is_none());
        assert_eq!(journal.state(), end);
    }
}

#[test]
fn what_a_budget_left_unfinished_is_not_told_as_failed() {
    let mut told = 0;
    for purse in 0..answers(1) {
        let poor = MemoryWorld::new(7, 7).with_purse(purse);
        let mut journal = MemoryJournal::begun(meaning(1), reach(1));
        go(&mut journal, &poor).expect("a run that stops");
        journal.events.push(Event::SettingsChanged { reach: reach(1) });
        let rich = poor.fork(7);
        let end = go(&mut journal, &rich).expect("a run that goes on");
        let disk = rich.disk();
        let texts: Vec<_> = disk.files.values().map(|text| String::from_utf8_lossy(text)).collect();
        let unfinished = |eval: &Cow<'_, Eval>| matches!(eval.stage, Stage::Unfinished { .. });
        for eval in end.evals.iter().filter(unfinished) {
            let line = |outcome| format!("{}: on n{}, {outcome}", eval.idea.title, eval.parent);
            let count = |line: &str| texts.iter().filter(|text| text.contains(line)).count();
            assert_eq!(count(&line("failed")), 0, "{purse} answers: {}", eval.idea.title);
            told += count(&line("not tried to its end"));
        }
    }
    assert!(told > 10, "{told}");
}

/// A run whose purse held three answers, at the moment when the end of the purse was recorded.
fn cut_off_when_reached() -> (MemoryWorld, MemoryJournal) {
    let world = MemoryWorld::new(7, 7).with_purse(3);
    let mut journal = MemoryJournal::begun(meaning(1), reach(1));
    go(&mut journal, &world).expect("a run that stops");
    let reached =
        |event: &Event| matches!(event, Event::BudgetReached { budget: BudgetKind::Cost, .. });
    let at = journal.events.iter().position(reached).expect("a budget that is reached");
    journal.events.truncate(at + 1);
    (world, journal)
}

#[test]
fn a_budget_that_is_raised_before_its_depth_closes_leaves_nothing_unfinished() {
    let mut whole = MemoryJournal::begun(meaning(1), reach(1));
    let expected = settled(go(&mut whole, &MemoryWorld::new(7, 7)).expect("a run"));
    let (poor, mut journal) = cut_off_when_reached();
    journal.events.push(Event::SettingsChanged { reach: reach(1) });
    let end = go(&mut journal, &poor.fork(7)).expect("a run that goes on");
    assert!(settled(end) == expected, "as if the budget had never been reached");
}

#[test]
fn an_idea_of_the_users_is_refused_once_the_budget_is_reached() {
    let (world, mut journal) = cut_off_when_reached();
    let text = "IDEA: gain 40 of my own\n".to_owned();
    world.post("20260101T000000-1-1", MessageContent::Idea(UserIdea { node: None, text }), 0);
    let end = go(&mut journal, &world).expect("a run that stops");
    assert_eq!((end.stop_reason(), end.evals.len()), (Some(StopReason::MaxCost), 4));
    let why: Vec<_> = world.set_aside().into_iter().map(|(_, why)| why).collect();
    assert_eq!(why, ["the budget has no room for it (max_cost_reached)"]);
}

#[test]
fn an_agent_that_cannot_be_used_halts_the_run_and_leaves_nothing_on_record() {
    let mut whole = MemoryJournal::begun(meaning(1), reach(2));
    let expected = settled(go(&mut whole, &MemoryWorld::new(7, 7)).expect("a run"));
    for cut in [2, 6, 9, 20] {
        let world = MemoryWorld::new(7, 7);
        let mut journal = MemoryJournal::begun(meaning(1), reach(2));
        journal.fuse = Some(cut);
        assert!(go(&mut journal, &world).is_err());
        journal.fuse = None;
        world.give(Trouble::NoAgent);
        let halted = go(&mut journal, &world);
        assert!(matches!(halted, Err(RunHalt::Agent(AgentError::Unavailable(_)))), "cut at {cut}");
        assert_eq!(journal.state().stop_reason(), None);
        world.give(Trouble::None);
        let end = go(&mut journal, &world).expect("a run that goes on");
        assert!(
            settled(end) == expected,
            "cut at {cut}: a key that is right again is all it takes"
        );
    }
}
