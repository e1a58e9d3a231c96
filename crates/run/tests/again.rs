//! Work that is repeated, with ports in memory: evals that are retried, and work that a user sends
//! back. Cut off after every event and with any number of workers, the run must end the same.

#![cfg(test)]

use proptest::prelude::*;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use treebeam_core::audit;
use treebeam_core::bill::RoleBills;
use treebeam_core::event::{Event, FailureKind, SentBack, StopReason};
use treebeam_core::facts::{Eval, ExpansionIdeas, Facts, RunHistory, Stage};
use treebeam_core::group::IdeaSource;
use treebeam_core::id::{Commit, Depth, EvalId, NodeId};
use treebeam_core::plan::{self, RedoKind};
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_core::state::State;
use treebeam_run::port::{Clock as _, Journal as _, MessageContent, RecordedMoment, UserIdea};
use treebeam_run::{RunHalt, drive_run};
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::{Disk, MemoryWorld, Trouble};

const ALL: [RedoKind; 3] = [RedoKind::RetryFailed, RedoKind::RerunEvals, RedoKind::RegenerateIdeas];

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

fn reach(workers: u32, eval_retries: u32) -> RunLimits {
    RunLimits {
        max_depth: 2,
        max_parallel_evals: number(workers),
        eval_retries,
        ..RunLimits::default()
    }
}

fn go(journal: &mut MemoryJournal, world: &MemoryWorld) -> Result<State, RunHalt> {
    drive_run(journal.state(), world.ports(), journal, &mut |_, _| {})
}

/// The parts of a finished run that do not depend on how it came about.
#[derive(PartialEq)]
struct Settled {
    facts: Facts,
    refs: BTreeMap<String, String>,
    worktrees: Vec<String>,
    files: Vec<(String, Vec<u8>)>,
}

fn settled(state: State, disk: Disk) -> Settled {
    let mut facts = state.into_facts();
    facts.history = RunHistory::default();
    facts.limits.max_parallel_evals = NonZeroU32::MIN;
    let worktrees = disk.worktrees.into_keys().collect();
    // The files of single submissions depend on how often they were cut off.
    let number = |part: &str| part.strip_prefix('s').is_some_and(|n| n.parse::<u32>().is_ok());
    let stable = |path: &str| !path.split('/').any(number);
    let files = disk.files.into_iter().filter(|(path, _)| stable(path)).collect();
    Settled { facts, refs: disk.refs, worktrees, files }
}

/// A run of one worker that was left after so many events, with its world at that moment.
fn left_after(events: usize, seed: u64, retries: u32) -> (MemoryJournal, MemoryWorld) {
    let world = MemoryWorld::new(seed, seed);
    let mut journal = MemoryJournal::begun(meaning(), reach(1, retries));
    journal.fuse = Some(events);
    assert!(go(&mut journal, &world).is_err(), "no cut after {events}");
    journal.fuse = None;
    (journal, world)
}

/// Records the event of these wishes, as the program does.
fn wish(journal: &mut MemoryJournal, world: &MemoryWorld, wishes: &[RedoKind]) -> Option<SentBack> {
    let state = journal.state();
    let at = world.recorded_time(RecordedMoment::SentBack(state.next_eval_id()));
    let sent = plan::send_back(&state, wishes, &|_| true, at)?;
    journal.events.push(Event::SentBack(Box::new(sent.clone())));
    Some(sent)
}

fn workers(journal: &mut MemoryJournal, workers: u32, retries: u32) {
    journal.events.push(Event::SettingsChanged { reach: reach(workers, retries) });
}

#[test]
fn a_run_that_tries_again_and_is_cut_off_after_any_event_ends_the_same() {
    let world = MemoryWorld::new(7, 7);
    let mut clean = MemoryJournal::begun(meaning(), reach(1, 2));
    let end = go(&mut clean, &world).expect("a whole run");
    let mended = |stage: &Stage| matches!(stage, Stage::Decided(..));
    assert!(end.evals.iter().any(|eval| eval.attempt == 2 && mended(&eval.stage)), "mended");
    let hopeless = |stage: &Stage| matches!(stage, Stage::Failed { .. });
    assert!(end.evals.iter().any(|eval| eval.attempt == 3 && hopeless(&eval.stage)), "hopeless");
    let counted = |attempt: u32, failures: usize| usize::try_from(attempt) == Ok(failures + 1);
    assert!(end.evals.iter().all(|eval| counted(eval.attempt, eval.failures.len())));
    let expected = settled(end, world.disk());
    for workers in [1, 4] {
        for cut in 1..clean.events.len() {
            let world = MemoryWorld::new(7, 7);
            let mut journal = MemoryJournal::begun(meaning(), reach(workers, 2));
            journal.fuse = Some(cut);
            if go(&mut journal, &world).is_err() && cut % 2 == 0 {
                world.restart();
            }
            journal.fuse = None;
            let resumed = go(&mut journal, &world).expect("a resumed run");
            assert_eq!(journal.state(), resumed, "the events lead to the state");
            let same = settled(resumed, world.disk()) == expected;
            assert!(same, "cut after event {cut} with {workers} workers");
        }
    }
}

/// The next commit must not depend on whether a failed attempt's ref was removed already.
#[test]
fn an_attempt_that_changes_the_same_has_a_commit_of_its_own() {
    let swept_twice = (0..50).find_map(|seed| {
        let world = MemoryWorld::new(seed, seed);
        let mut journal = MemoryJournal::begun(meaning(), reach(1, 1));
        let end = go(&mut journal, &world).expect("a run");
        let hopeless = |eval: &Cow<'_, Eval>| {
            let failed = matches!(&eval.stage, Stage::Failed { failure, .. } if failure.kind == FailureKind::Sweep);
            failed && eval.failures.iter().all(|failure| failure.kind == FailureKind::Sweep)
        };
        end.evals.iter().find(hopeless).map(|eval| (journal, eval.id))
    });
    let (journal, hopeless) = swept_twice.expect("a sweep that fails twice");
    let commits = journal.events.iter().filter_map(|event| {
        let Event::Implemented { eval, commit, .. } = event else { return None };
        (*eval == hopeless).then_some(commit)
    });
    let commits: Vec<_> = commits.collect();
    let [first, second] = commits[..] else { panic!("{commits:?}") };
    assert_ne!(first, second);
}

/// Sends back all work of a run that was left, and cuts it off after every event from there on.
fn check_sent_back(
    (journal, left_world): (MemoryJournal, MemoryWorld),
    wishes: &[RedoKind],
    (seed, retries): (u64, u32),
) -> Option<(SentBack, Facts)> {
    let left = journal.events.len();
    let (mut clean, world) = (journal.clone(), left_world.fork(seed));
    let sent = wish(&mut clean, &world, wishes)?;
    workers(&mut clean, 1, retries);
    let begun = clean.events.len();
    let end = go(&mut clean, &world).expect("a whole run");
    assert!(audit::check_structure(&end).is_empty() && audit::check_beams(&end).is_empty());
    let expected = settled(end, world.disk());
    for count in [1, 3] {
        for cut in begun..clean.events.len() {
            let (mut journal, world) = (journal.clone(), left_world.fork(seed + 1));
            wish(&mut journal, &world, wishes);
            workers(&mut journal, count, retries);
            journal.fuse = Some(cut);
            if go(&mut journal, &world).is_err() && cut % 2 == 0 {
                world.restart();
            }
            journal.fuse = None;
            let end = go(&mut journal, &world).expect("a resumed run");
            assert_eq!(journal.state(), end, "the events lead to the state");
            let same = settled(end, world.disk()) == expected;
            assert!(same, "left after {left}, cut after {cut}, {count} workers");
        }
    }
    Some((sent, expected.facts))
}

#[test]
fn what_is_sent_back_ends_the_same_wherever_it_is_cut_off() {
    let mut seen = BTreeSet::new();
    for (left, retries) in [(14, 0), (23, 0), (29, 1), (41, 0), (60, 1)] {
        let run = left_after(left, 7, retries);
        let Some((sent, _)) = check_sent_back(run, &ALL, (7, retries)) else { continue };
        let kinds = [
            ("retried", !sent.retried.is_empty()),
            ("rerun", !sent.rerun.is_empty()),
            ("set aside", !sent.set_aside.is_empty()),
        ];
        seen.extend(kinds.iter().filter(|(_, there)| *there).map(|(kind, _)| *kind));
    }
    assert_eq!(seen, BTreeSet::from(["rerun", "retried", "set aside"]), "each kind is cut");
}

/// Returns the run as it was at the first moment at which `holds` is true.
fn first(seed: u64, holds: impl Fn(&State) -> bool) -> (MemoryJournal, MemoryWorld) {
    (4..200)
        .map(|events| left_after(events, seed, 0))
        .find(|(journal, _)| holds(&journal.state()))
        .expect("a moment")
}

fn has(state: &State, check: fn(&Stage) -> bool) -> bool {
    state.open_evals().iter().any(|eval| check(&eval.stage))
}

#[test]
fn failed_evals_get_their_next_attempt_and_nothing_is_removed_under_it() {
    let (mut journal, world) = first(7, |state| has(state, |s| matches!(s, Stage::Failed { .. })));
    let before = journal.state();
    assert!(!before.leftovers.is_empty(), "the failed attempt has something to remove");
    let sent = wish(&mut journal, &world, &[RedoKind::RetryFailed]).expect("something to retry");
    let [eval] = sent.retried[..] else { panic!("{sent:?}") };
    let after = journal.state();
    assert!(after.leftovers.keys().all(|left| left.place.to_string() != format!("e{eval}")));
    assert_eq!(after.eval(eval).map(|eval| (eval.attempt, eval.failures.len())), Some((2, 1)));
    let end = go(&mut journal, &world).expect("a run");
    assert!(end.leftovers.is_empty(), "{:?}", end.leftovers);
    let folder = format!("eval/{eval}/experiment/");
    let written = |name: &str| world.disk().files.contains_key(&format!("{folder}{name}"));
    assert!(written("coder_prompt_round_0.txt") && written("attempt_2/coder_prompt_round_0.txt"));
}

#[test]
fn a_wish_acts_again_on_what_has_failed_since() {
    let (mut journal, world) = first(7, |state| has(state, |s| matches!(s, Stage::Failed { .. })));
    wish(&mut journal, &world, &[RedoKind::RetryFailed]).expect("something to retry");
    assert_eq!(
        wish(&mut journal, &world, &[RedoKind::RetryFailed]),
        None,
        "it is in the queue now"
    );
    let failed = |journal: &MemoryJournal| {
        journal
            .state()
            .open_evals()
            .iter()
            .filter(|e| matches!(e.stage, Stage::Failed { .. }))
            .count()
    };
    while failed(&journal) == 0 {
        // Repeated submissions and digests after a cut-off make no progress alone.
        let leads_nowhere = |event: &&Event| {
            matches!(event, Event::SweepSubmitted { .. } | Event::FilesRecorded(_))
        };
        let more = journal.events.iter().rev().take_while(leads_nowhere).count().min(2);
        journal.fuse = Some(journal.events.len() + 1 + more);
        let over = go(&mut journal, &world).is_ok();
        assert!(!over, "nothing fails again before the depth closes");
    }
    let number = failed(&journal);
    let sent = wish(&mut journal, &world, &[RedoKind::RetryFailed]).expect("something to retry");
    assert_eq!(sent.retried.len(), number);
}

#[test]
fn scored_evals_are_evaluated_again_under_new_ids_as_far_as_the_budget_goes() {
    let three = |state: &State| {
        state.open_evals().iter().filter(|e| matches!(e.stage, Stage::Scored(_))).count() == 3
    };
    let (mut journal, world) = first(7, three);
    let made = u32::try_from(journal.state().evals.len()).expect("a number");
    let budget = RunLimits { max_total_idea_evals: Some(made + 2), ..reach(1, 0) };
    journal.events.push(Event::SettingsChanged { reach: budget });
    let sent = wish(&mut journal, &world, &[RedoKind::RerunEvals]).expect("something to rerun");
    let ids: Vec<_> = sent.rerun.iter().map(|rerun| rerun.eval).collect();
    assert_eq!(ids, [EvalId::new(made + 1), EvalId::new(made + 2)], "the next ids, two of three");
    assert_eq!(wish(&mut journal, &world, &[RedoKind::RerunEvals]), None, "no room for the third");
    let end = go(&mut journal, &world).expect("a run");
    for rerun in &sent.rerun {
        let [old, new] = [rerun.of, rerun.eval].map(|id| end.eval(id).expect("an eval").clone());
        assert!(matches!(old.stage, Stage::Superseded(_, by) if by == new.id));
        assert_eq!((&old.idea, old.parent, old.depth), (&new.idea, new.parent, new.depth));
        let (old, new) =
            (old.scored_candidate().expect("figures"), new.scored_candidate().expect("figures"));
        assert_eq!(old.scored, new.scored, "the same idea does the same");
        assert_ne!(old.results.path, new.results.path, "each has its own evidence");
    }
    assert!(audit::check_beams(&end).is_empty());
    let judged = journal.events.iter().find_map(|event| {
        let Event::DepthClosed { verdicts, .. } = event else { return None };
        Some(verdicts)
    });
    let judged: Vec<_> = judged.expect("a closed depth").iter().map(|(eval, _)| *eval).collect();
    assert!(sent.rerun.iter().all(|rerun| !judged.contains(&rerun.of)), "{judged:?}");
}

#[test]
fn other_ideas_replace_those_that_have_not_begun_and_no_file_is_written_twice() {
    let (mut journal, world) = first(7, |state| has(state, |s| matches!(s, Stage::Scored(_))));
    let ideas = |world: &MemoryWorld| -> BTreeMap<String, Vec<u8>> {
        let files = world.disk().files.into_iter();
        files.filter(|(path, _)| path.starts_with("node_ideas/0000/")).collect()
    };
    let before = ideas(&world);
    let sent = wish(&mut journal, &world, &[RedoKind::RegenerateIdeas]).expect("ideas that wait");
    assert_eq!(sent.asked, [NodeId::ROOT]);
    assert!(!sent.set_aside.is_empty() && sent.rerun.is_empty() && sent.retried.is_empty());
    assert_eq!(wish(&mut journal, &world, &[RedoKind::RegenerateIdeas]), None, "asked already");
    let end = go(&mut journal, &world).expect("a run");
    let after = ideas(&world);
    assert!(before.iter().all(|(path, text)| after.get(path) == Some(text)), "all of it stays");
    assert!(after.len() > before.len());
    let root = end.node(NodeId::ROOT).expect("a root");
    let [_, again] = &root.expansions[..] else { panic!("{:?}", root.expansions) };
    assert_eq!(again.eval_ids().count(), sent.set_aside.len(), "as many as were set aside");
    let standing = end.evals.iter().filter(|eval| eval.parent == NodeId::ROOT && eval.is_current());
    assert_eq!(standing.count(), 5, "K ideas are tried");
    let numbers: BTreeSet<_> = end.evals.iter().map(|eval| eval.idea.path.clone()).collect();
    assert_eq!(numbers.len(), end.evals.len(), "each idea has its own file");
    assert!(
        sent.set_aside.iter().all(|id| end.eval(*id).expect("an eval").stage == Stage::SetAside)
    );
    let turns: Vec<_> = again.eval_ids().filter_map(|id| end.eval(*id)).collect();
    assert!(turns.iter().all(|eval| eval.idea.turn > Some(1)), "its conversation goes on");
}

#[test]
fn where_no_other_ideas_come_those_set_aside_are_tried_after_all() {
    let (mut journal, world) = first(7, |state| has(state, |s| matches!(s, Stage::Scored(_))));
    let sent = wish(&mut journal, &world, &[RedoKind::RegenerateIdeas]).expect("ideas that wait");
    let (node, why) = (NodeId::ROOT, "refused".to_owned());
    let source = IdeaSource::Node(node);
    let at = world.recorded_time(RecordedMoment::Start);
    let (bills, conversation) = (RoleBills::default(), Vec::new());
    journal.events.push(Event::ProposalFailed { source, why, turns: 3, bills, conversation, at });
    let end = go(&mut journal, &world).expect("a run");
    let root = end.node(node).expect("a root");
    assert!(matches!(root.expansions.last().expect("one").ideas, ExpansionIdeas::Failed { .. }));
    let over = |stage: &Stage| matches!(stage, Stage::Decided(..) | Stage::Failed { .. });
    assert!(sent.set_aside.iter().all(|id| over(&end.eval(*id).expect("an eval").stage)));
}

#[test]
fn closed_depths_stand_and_a_stopped_run_has_nothing_to_do_again() {
    let world = MemoryWorld::new(7, 7);
    let mut journal = MemoryJournal::begun(meaning(), reach(1, 0));
    let end = go(&mut journal, &world).expect("a run");
    assert!(end.evals.iter().any(|eval| matches!(eval.stage, Stage::Failed { .. })));
    assert_eq!(wish(&mut journal, &world, &ALL), None);
    journal
        .events
        .push(Event::SettingsChanged { reach: RunLimits { max_depth: 3, ..reach(1, 0) } });
    assert_eq!(wish(&mut journal, &world, &ALL), None, "the next depth has not begun");
    let (mut journal, world) =
        first(7, |state| !state.closed.is_empty() && !state.open_evals().is_empty());
    let first_open = journal.state().first_open_eval_id();
    if let Some(sent) = wish(&mut journal, &world, &ALL) {
        let old = sent.rerun.iter().map(|rerun| rerun.of);
        let all = sent.retried.iter().copied().chain(old).chain(sent.set_aside.iter().copied());
        assert!(all.into_iter().all(|id| id >= first_open));
    }
}

/// A run that has ended after a depth that promoted nothing.
fn barren(seed: u64, ideas: u32, purse: Option<usize>) -> Option<(MemoryJournal, MemoryWorld)> {
    let world = MemoryWorld::new(seed, seed);
    let world = if let Some(purse) = purse { world.with_purse(purse) } else { world };
    let meaning = FixedSettings { ideas_per_node: number(ideas), ..meaning() };
    let mut journal = MemoryJournal::begun(meaning, reach(1, 0));
    let end = go(&mut journal, &world).expect("a run");
    end.closed.last()?.beam.is_empty().then_some((journal, world))
}

#[test]
fn a_last_depth_that_promoted_nothing_is_opened_again_and_ends_the_same_wherever_it_is_cut_off() {
    let (mut deeper, mut as_before) = (0, 0);
    for seed in 0..60 {
        let Some(run) = barren(seed, 2, None) else { continue };
        let before = run.0.state();
        let Some((sent, end)) = check_sent_back(run, &[RedoKind::RetryFailed], (seed, 0)) else {
            assert_eq!(before.closed.last().map(|closed| closed.failed), Some(0), "seed {seed}");
            continue;
        };
        assert_eq!(sent.reopened.map(Depth::next), Some(before.depth), "seed {seed}");
        let tried = |id: &EvalId| end.eval(*id).is_some_and(|eval| eval.attempt == 2);
        assert!(!sent.retried.is_empty() && sent.retried.iter().all(tried), "seed {seed}");
        let stood = |eval: Cow<'_, Eval>| {
            sent.retried.contains(&eval.id) || end.eval(eval.id) == Some(eval)
        };
        assert!(before.evals.iter().all(stood), "seed {seed}: nothing else is done again");
        if end.nodes.len() > before.nodes.len() { deeper += 1 } else { as_before += 1 }
    }
    assert!(deeper > 0 && as_before > 0, "{deeper} went on, {as_before} did not");
}

/// With a control group beside the tree, and all wishes at once: new ideas come too.
#[test]
fn whatever_is_wished_for_at_such_a_depth_ends_the_same_wherever_it_is_cut_off() {
    let mut opened = 0;
    for seed in 100..115 {
        let world = MemoryWorld::new(seed, seed);
        let control = "best-of-n=0.5".parse().ok();
        let meaning = FixedSettings { ideas_per_node: number(2), control, ..meaning() };
        let mut journal = MemoryJournal::begun(meaning, reach(1, 0));
        let before = go(&mut journal, &world).expect("a run");
        if before.reopenable_depth().is_some() {
            let Some((sent, end)) = check_sent_back((journal, world), &ALL, (seed, 0)) else {
                continue;
            };
            opened += 1;
            assert!(sent.reopened.is_some() && sent.rerun.is_empty(), "{sent:?}");
            let judged = |eval: &Cow<'_, Eval>| matches!(eval.stage, Stage::Decided(..));
            let stands = |eval: Cow<'_, Eval>| end.eval(eval.id) == Some(eval);
            assert!(before.evals.iter().filter(judged).all(stands), "what was judged stands");
        }
    }
    assert!(opened > 2, "{opened} depths were opened again");
}

#[test]
fn what_a_budget_left_unfinished_waits_again_where_its_depth_is_opened_again() {
    let unfinished = |facts: &Facts| {
        let unfinished = |eval: &Cow<'_, Eval>| matches!(eval.stage, Stage::Unfinished { .. });
        facts.evals.iter().filter(unfinished).count()
    };
    let mut seen = 0;
    for (seed, purse) in (0..30).flat_map(|seed| [3, 5].map(|purse| (seed, purse))) {
        let Some((mut journal, world)) = barren(seed, 5, Some(purse)) else { continue };
        let before = unfinished(&journal.state());
        if wish(&mut journal, &world, &[RedoKind::RetryFailed]).is_none() {
            continue;
        }
        assert_eq!(unfinished(&journal.state()), 0, "{before} wait again");
        if before > 0 {
            let mut poor = journal.clone();
            let end =
                go(&mut poor, &world.fork(seed).with_purse(0)).expect("a run that stops again");
            assert!(unfinished(&end) >= before, "seed {seed}: nothing is paid for");
            let again = wish(&mut poor, &world, &[RedoKind::RetryFailed]);
            assert!(again.is_some(), "seed {seed}: what was not finished is still in reach");
        }
        let world = world.with_purse(1000);
        let end = go(&mut journal, &world).expect("a run");
        assert_eq!(unfinished(&end), 0, "seed {seed}, {purse} answers");
        assert!(end.leftovers.is_empty() && audit::check_structure(&end).is_empty());
        seen += before;
    }
    assert!(seen > 0, "nothing was left unfinished");
}

#[test]
fn a_run_that_got_no_ideas_asks_for_them_again() {
    let asked = |state: &State| state.node(NodeId::ROOT).is_some_and(|n| !n.expansions.is_empty());
    let (mut journal, world) = first(7, asked);
    let (source, why) = (IdeaSource::Node(NodeId::ROOT), "no answer".to_owned());
    let (turns, bills, conversation) = (0, RoleBills::default(), Vec::new());
    let at = world.recorded_time(RecordedMoment::Start);
    journal.events.push(Event::ProposalFailed { source, why, turns, bills, conversation, at });
    let end = go(&mut journal, &world).expect("a run");
    assert_eq!((end.stop_reason(), end.evals.len()), (Some(StopReason::NoIdeas), 0));
    let run = (journal, world);
    let (sent, end) =
        check_sent_back(run, &[RedoKind::RetryFailed], (7, 0)).expect("a node to ask");
    assert_eq!((&sent.asked[..], sent.reopened), (&[NodeId::ROOT][..], Some(Depth(0))));
    assert_eq!(end.evals.iter().filter(|eval| eval.depth == Depth(0)).count(), 5);
    assert_eq!(end.stop_reason(), Some(StopReason::MaxDepth));
}

#[test]
fn what_cannot_be_done_again_is_refused_by_the_record() {
    let (journal, _) = first(7, |state| has(state, |s| matches!(s, Stage::Scored(_))));
    let state = journal.state();
    let scored = state.open_evals().iter().find(|e| matches!(e.stage, Stage::Scored(_)));
    let scored = scored.expect("a scored eval").id;
    let nothing = SentBack {
        swept: vec![],
        reopened: None,
        retried: vec![],
        rerun: vec![],
        set_aside: vec![],
        asked: vec![],
        at: jiff::Timestamp::UNIX_EPOCH,
    };
    let rerun = |eval| treebeam_core::event::EvalRerun { of: scored, eval };
    let refused = [
        SentBack { retried: vec![scored], ..nothing.clone() },
        SentBack { swept: vec![scored], retried: vec![scored], ..nothing.clone() },
        SentBack { rerun: vec![rerun(state.next_eval_id().next())], ..nothing.clone() },
        SentBack { set_aside: vec![scored], ..nothing.clone() },
        SentBack { asked: vec![NodeId::new(9)], ..nothing.clone() },
        SentBack { asked: vec![NodeId::ROOT, NodeId::ROOT], ..nothing.clone() },
        SentBack { reopened: Some(state.depth), ..nothing.clone() },
    ];
    for sent in refused {
        let mut state = state.clone();
        assert!(state.apply(&Event::SentBack(Box::new(sent.clone()))).is_err(), "{sent:?}");
    }
    let fine = SentBack { rerun: vec![rerun(state.next_eval_id())], ..nothing };
    assert!(state.clone().apply(&Event::SentBack(Box::new(fine))).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_number_of_workers_changes_nothing_about_what_is_done_again(
        seed in 0_u64..1000,
        left in 5_usize..70,
        order in any::<u64>(),
        count in 2_u32..9,
        retries in 0_u32..3,
        wishes in proptest::sample::subsequence(ALL.to_vec(), 0..=3),
        budget in prop_oneof![Just(None), (3_u32..25).prop_map(Some)],
    ) {
        let reach = |count| RunLimits { max_total_idea_evals: budget, ..reach(count, retries) };
        let left_world = MemoryWorld::new(seed, order);
        let mut left_journal = MemoryJournal::begun(meaning(), reach(2));
        left_journal.fuse = Some(left);
        drop(go(&mut left_journal, &left_world));
        left_journal.fuse = None;
        let run = |count, order| {
            let (mut journal, world) = (left_journal.clone(), left_world.fork(order));
            wish(&mut journal, &world, &wishes);
            journal.events.push(Event::SettingsChanged { reach: reach(count) });
            let end = go(&mut journal, &world).expect("a run");
            prop_assert_eq!(&journal.state(), &end);
            prop_assert!(audit::check_structure(&end).is_empty() && audit::check_beams(&end).is_empty());
            prop_assert!(end.leftovers.is_empty());
            Ok(settled(end, world.disk()))
        };
        prop_assert!(run(1, 0)? == run(count, order)?);
    }
}

/// A run with an idea of the user's, left as soon as its eval's stage satisfies `stands`.
fn with_own_idea(stands: fn(&Stage) -> bool) -> (MemoryJournal, MemoryWorld, EvalId) {
    for events in 1.. {
        let world = MemoryWorld::new(7, 7);
        let text = "IDEA: gain 500 of my own\n".to_owned();
        world.post("1-mine", MessageContent::Idea(UserIdea { node: None, text }), 0);
        let mut journal = MemoryJournal::begun(meaning(), reach(1, 0));
        journal.fuse = Some(events);
        assert!(go(&mut journal, &world).is_err(), "it never stands so");
        journal.fuse = None;
        let state = journal.state();
        let own = state.evals.iter().find(|eval| eval.idea.turn.is_none());
        if let Some(own) = own.filter(|own| stands(&own.stage)) {
            return (journal, world, own.id);
        }
    }
    unreachable!("it ends before it has so many events")
}

#[test]
fn an_idea_of_the_users_gives_way_to_no_other() {
    let (mut journal, world, own) = with_own_idea(|stage| *stage == Stage::Queued);
    let sent = wish(&mut journal, &world, &[RedoKind::RegenerateIdeas]).expect("ideas that wait");
    assert!(!sent.set_aside.is_empty() && !sent.set_aside.contains(&own));
    let end = go(&mut journal, &world).expect("a run");
    assert!(matches!(end.eval(own).expect("an eval").stage, Stage::Decided(..)));
    let of_root = end.evals.iter().filter(|eval| eval.parent == NodeId::ROOT && eval.is_current());
    assert_eq!(of_root.count(), 5 + 1, "K of the generator's, and the user's own");
    assert!(audit::check_structure(&end).is_empty(), "the record holds together");
}

#[test]
fn an_idea_of_the_users_can_be_evaluated_again() {
    let (mut journal, world, own) = with_own_idea(|stage| matches!(stage, Stage::Scored(_)));
    let sent = wish(&mut journal, &world, &[RedoKind::RerunEvals]).expect("scored evals");
    let next = sent.rerun.iter().find(|rerun| rerun.of == own).expect("the user's own").eval;
    let end = go(&mut journal, &world).expect("a run");
    let root = end.node(NodeId::ROOT).expect("a root");
    assert_eq!(root.expansions[0].added, [own, next], "it stays the user's");
    assert!(
        matches!(end.eval(own).expect("an eval").stage, Stage::Superseded(_, by) if by == next)
    );
    assert!(matches!(end.eval(next).expect("an eval").stage, Stage::Decided(..)));
}

/// A run that has ended because no sweep was completed.
fn nothing_measured(seed: u64) -> (MemoryJournal, MemoryWorld) {
    let world = MemoryWorld::new(seed, seed);
    let mut journal = MemoryJournal::begun(meaning(), reach(1, 0));
    let measured = |event: &Event| matches!(event, Event::RootMeasured { .. });
    journal.fuse = (1..20).find(|cut| {
        let (mut journal, world) = (journal.clone(), world.fork(seed));
        journal.fuse = Some(*cut);
        let _ = go(&mut journal, &world);
        journal.events.iter().any(measured)
    });
    assert!(go(&mut journal, &world).is_err(), "it is cut off when the root is measured");
    journal.fuse = None;
    world.give(Trouble::Failing);
    go(&mut journal, &world).expect("a run");
    world.give(Trouble::None);
    (journal, world)
}

/// Commits of failed evals, with the attempts that made them.
fn failed_candidates(facts: &Facts) -> Vec<(EvalId, Commit, u32)> {
    let failed = facts.evals.iter().filter(|eval| matches!(eval.stage, Stage::Failed { .. }));
    let work = failed.filter_map(|eval| Some((eval.id, eval.candidate()?)));
    work.map(|(id, work)| (id, work.commit, work.made_in)).collect()
}

#[test]
fn a_candidate_whose_sweep_failed_is_swept_again_and_nobody_is_asked_for_another() {
    let (journal, world) = nothing_measured(7);
    let before = failed_candidates(&journal.state());
    assert!(before.len() > 2, "{before:?}");
    let wishes = [RedoKind::RetryFailed];
    let (_, end) = check_sent_back((journal, world), &wishes, (7, 0)).expect("something to retry");
    for (id, commit, made_in) in before {
        let eval = end.eval(id).expect("an eval");
        let work = eval.candidate().map(|work| (work.commit, work.made_in));
        assert_eq!((work, eval.attempt), (Some((commit, made_in)), 2), "e{id}");
        assert_eq!((&eval.again, eval.candidate_attempt()), (&None, 1), "e{id}");
        assert!(eval.spend_on_attempt().is_none_or(|bills| bills.is_empty()), "e{id}");
    }
}

#[test]
fn a_candidate_whose_sweep_failed_twice_or_that_is_gone_gives_way_to_another() {
    let (journal, world) = nothing_measured(7);
    let again = |(journal, world): (&MemoryJournal, &MemoryWorld), trouble, prune: bool| {
        let (mut journal, world) = (journal.clone(), world.fork(7));
        wish(&mut journal, &world, &[RedoKind::RetryFailed]).expect("something to retry");
        if prune {
            world.prune();
        }
        world.give(trouble);
        let paid = world.paid();
        let end = go(&mut journal, &world).expect("a run");
        (failed_candidates(&end), world.paid() - paid, (journal, world))
    };
    let made_in = |found: &[(EvalId, Commit, u32)]| {
        found.iter().map(|(_, _, attempt)| *attempt).collect::<BTreeSet<_>>()
    };
    let (twice, _, (journal_2, world_2)) = again((&journal, &world), Trouble::Failing, false);
    assert_eq!(made_in(&twice), BTreeSet::from([1]), "swept twice");
    let (anew, paid, _) = again((&journal_2, &world_2), Trouble::Failing, false);
    assert!(made_in(&anew) == BTreeSet::from([3]) && paid >= anew.len(), "{anew:?}, {paid}");
    let (anew, paid, _) = again((&journal, &world), Trouble::Failing, true);
    assert!(made_in(&anew) == BTreeSet::from([2]) && paid >= anew.len(), "{anew:?}, {paid}");
}

#[test]
fn a_candidate_that_waited_when_the_time_was_over_is_not_made_again() {
    let unswept = |stage: &Stage| matches!(stage, Stage::Implemented(_) | Stage::Sweeping(_));
    let (mut journal, world) = first(7, |state| has(state, unswept));
    let state = journal.state();
    let waiting = state.open_evals().iter().find(|eval| unswept(&eval.stage)).expect("an eval");
    let (id, commit) = (waiting.id, waiting.candidate().expect("a candidate").commit);
    world.restart();
    journal
        .append(&[Event::DeadlinePassed { at: world.recorded_time(RecordedMoment::Stop(id)) }])
        .expect("an event");
    let end = go(&mut journal, &world).expect("a run");
    let eval = end.eval(id).expect("an eval");
    assert!(matches!(eval.stage, Stage::Unfinished { .. }), "{eval:?}");
    assert_eq!(eval.again.as_ref().map(|work| &work.commit), Some(&commit), "it is kept");
    workers(&mut journal, 1, 0);
    wish(&mut journal, &world, &[RedoKind::RetryFailed]).expect("a depth to open again");
    let end = go(&mut journal, &world).expect("a run");
    let work = end.eval(id).and_then(|eval| eval.candidate()).expect("a candidate");
    assert_eq!((work.commit, work.made_in), (commit, 1));
    assert_eq!(end.eval(id).map(|eval| eval.again.is_none()), Some(true), "it was measured");
}
