//! The loop with ports in memory and messages of the user at any moment. Pauses and stops change
//! nothing but history, an idea becomes one eval or is refused, and no message counts twice,
//! however often the run is cut off.

#![cfg(test)]

use std::borrow::Cow;
use std::num::NonZeroU32;
use treebeam_core::audit;
use treebeam_core::event::{Event, StopReason, TakeoverReason, UserRequest};
use treebeam_core::facts::{CandidateFate, Eval, Facts, RunHistory, Stage};
use treebeam_core::id::{EvalId, NodeId};
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_core::state::State;
use treebeam_run::port::{MessageContent, UserIdea};
use treebeam_run::{RunHalt, drive_run};
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::{Disk, MemoryWorld};

const MINE: &str = "IDEA: gain 500 of my own\n";

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not zero")
}

fn reach(workers: u32) -> RunLimits {
    RunLimits { max_depth: 3, max_parallel_evals: number(workers), ..RunLimits::default() }
}

fn begun_with(reach: RunLimits) -> MemoryJournal {
    let meaning = FixedSettings {
        ideas_per_node: number(4),
        beam_width: number(2),
        sweep_config_limit: Some(number(4)),
        ..FixedSettings::default()
    };
    MemoryJournal::begun(meaning, reach)
}

fn begun(workers: u32) -> MemoryJournal {
    begun_with(reach(workers))
}

fn go(journal: &mut MemoryJournal, world: &MemoryWorld) -> Result<State, RunHalt> {
    drive_run(journal.state(), world.ports(), journal, &mut |_, _| {})
}

/// The parts of a run that do not depend on messages: no history, no files of submissions.
fn settled(state: State, mut disk: Disk) -> (Facts, Disk) {
    let mut facts = state.into_facts();
    facts.history = RunHistory::default();
    facts.limits.max_parallel_evals = NonZeroU32::MIN;
    let number = |part: &str| part.strip_prefix('s').is_some_and(|n| n.parse::<u32>().is_ok());
    disk.files.retain(|path, _| !path.split('/').any(number));
    (facts, disk)
}

fn whole() -> (Facts, Disk) {
    let world = MemoryWorld::new(7, 7);
    let end = go(&mut begun(1), &world).expect("a whole run");
    assert_eq!(end.stop_reason(), Some(StopReason::MaxDepth));
    settled(end, world.disk())
}

fn own(node: Option<u32>, text: &str) -> MessageContent {
    MessageContent::Idea(UserIdea { node: node.map(NodeId::new), text: text.to_owned() })
}

fn wishes(journal: &MemoryJournal) -> Vec<(UserRequest, bool)> {
    let wish = |event: &Event| {
        let Event::Asked { wish, message, .. } = event else { return None };
        Some((*wish, message.is_some()))
    };
    journal.events.iter().filter_map(wish).collect()
}

/// Returns the events between a pause and its end.
fn while_paused(journal: &MemoryJournal) -> impl Iterator<Item = &Event> {
    let is = |wanted| move |event: &&Event| matches!(event, Event::Asked { wish, .. } if *wish == wanted);
    let paused = journal.events.iter().skip_while(move |event| !is(UserRequest::Pause)(event));
    paused.take_while(move |event| !is(UserRequest::Unpause)(event))
}

fn begins(event: &Event) -> bool {
    matches!(
        event,
        Event::StepStarted { .. }
            | Event::SweepSubmitted { .. }
            | Event::DepthClosed { .. }
            | Event::Stopped { .. }
    )
}

#[test]
fn a_run_that_is_paused_at_any_moment_ends_the_same() {
    let expected = whole();
    for workers in [1, 4] {
        let mut pauses = 0;
        for after in 0.. {
            let world = MemoryWorld::new(7, 7);
            let mut journal = begun(workers);
            world.post("1-pause", MessageContent::Wish(UserRequest::Pause), after);
            world.post("2-unpause", MessageContent::Wish(UserRequest::Unpause), after + 12);
            let end = go(&mut journal, &world).expect("a run that goes on");
            assert_eq!(journal.state(), end);
            assert!(while_paused(&journal).all(|event| !begins(event)), "{after}");
            assert!(settled(end, world.disk()) == expected, "{workers} workers, {after}");
            if wishes(&journal).is_empty() {
                break;
            }
            assert_eq!(
                wishes(&journal),
                [(UserRequest::Pause, true), (UserRequest::Unpause, true)]
            );
            assert_eq!(world.posted(), []);
            pauses += 1;
        }
        assert!(pauses > 20, "paused in {pauses} places only");
    }
}

#[test]
fn what_runs_when_a_pause_comes_ends_and_is_recorded() {
    let mut ended = 0;
    for after in 0..60 {
        let world = MemoryWorld::new(7, 7);
        let mut journal = begun(4);
        world.post("1-pause", MessageContent::Wish(UserRequest::Pause), after);
        world.post("2-stop", MessageContent::Wish(UserRequest::Stop), after + 40);
        let Err(RunHalt::Interrupted(state)) = go(&mut journal, &world) else { break };
        assert!(state.implementing_evals().is_empty() && state.history.paused_since.is_none());
        ended += while_paused(&journal).count() - 1;
    }
    assert!(ended > 10, "{ended} events");
}

#[test]
fn a_pause_outlives_its_process_and_a_resume_ends_it() {
    let expected = whole();
    for after in (0..40).step_by(5) {
        let world = MemoryWorld::new(7, 7);
        let mut journal = begun(1);
        world.post("1-pause", MessageContent::Wish(UserRequest::Pause), after);
        world.interrupt_after(Some(after + 5));
        let left = go(&mut journal, &world);
        assert!(
            matches!(left, Err(RunHalt::Interrupted(_))),
            "Ctrl-C is heard while paused: {after}"
        );
        assert!(journal.state().history.paused_since.is_some());
        world.interrupt_after(None);
        let end = go(&mut journal, &world).expect("a resumed run");
        assert_eq!(wishes(&journal), [(UserRequest::Pause, true), (UserRequest::Unpause, false)]);
        assert!(settled(end, world.disk()) == expected);
    }
}

#[test]
fn a_run_that_is_stopped_at_any_moment_ends_the_same_and_no_stop_counts_twice() {
    let expected = whole();
    for workers in [1, 4] {
        let mut stops = 0;
        for after in 0.. {
            let world = MemoryWorld::new(7, 7);
            let mut journal = begun(workers);
            world.post("1-stop", MessageContent::Wish(UserRequest::Stop), after);
            // A process that is killed between record and removal leaves the file.
            world.let_messages_stick(after % 2 == 0);
            match go(&mut journal, &world) {
                Ok(_) => break,
                Err(RunHalt::Interrupted(state)) => assert_eq!(journal.state(), *state),
                Err(other) => panic!("{other}"),
            }
            assert_eq!(wishes(&journal), [(UserRequest::Stop, true)]);
            assert_eq!(world.posted().len(), usize::from(after % 2 == 0));
            world.let_messages_stick(false);
            let end = go(&mut journal, &world).expect("a resumed run");
            assert_eq!(wishes(&journal).len(), 1, "once");
            assert_eq!(world.posted(), []);
            assert!(settled(end, world.disk()) == expected, "{workers} workers, {after}");
            stops += 1;
        }
        assert!(stops > 20, "stopped in {stops} places only");
    }
}

#[test]
fn a_wish_that_changes_nothing_leaves_no_event() {
    let world = MemoryWorld::new(7, 7);
    let mut journal = begun(1);
    world.post("1-unpause", MessageContent::Wish(UserRequest::Unpause), 0);
    world.post("2-pause", MessageContent::Wish(UserRequest::Pause), 3);
    world.post("3-pause", MessageContent::Wish(UserRequest::Pause), 4);
    world.post("4-unpause", MessageContent::Wish(UserRequest::Unpause), 6);
    go(&mut journal, &world).expect("a run");
    assert_eq!(wishes(&journal), [(UserRequest::Pause, true), (UserRequest::Unpause, true)]);
    assert_eq!(world.posted(), []);
}

fn added(facts: &Facts) -> Vec<Cow<'_, Eval>> {
    facts.evals.iter().filter(|eval| eval.idea.turn.is_none()).collect()
}

fn refusals(journal: &MemoryJournal) -> Vec<&str> {
    fn why(event: &Event) -> Option<&str> {
        let Event::IdeaRefused { why, .. } = event else { return None };
        Some(why)
    }
    journal.events.iter().filter_map(why).collect()
}

#[test]
fn an_idea_of_the_users_is_an_eval_like_others() {
    let world = MemoryWorld::new(7, 7);
    let mut journal = begun(1);
    world.post("1-idea", own(None, MINE), 0);
    let end = go(&mut journal, &world).expect("a run");
    let [mine] = &added(&end)[..] else { panic!("{:?}", refusals(&journal)) };
    assert_eq!((mine.parent, mine.id.number()), (NodeId::ROOT, 5), "after those of the root");
    assert_eq!(mine.idea.path.as_str(), "node_ideas/0000/u01_gain_500_of_my_own.md");
    assert_eq!(world.disk().files[mine.idea.path.as_str()], MINE.as_bytes());
    assert!(
        matches!(mine.stage, Stage::Decided(_, _, CandidateFate::Promoted(_))),
        "{:?}",
        mine.stage
    );
    assert!(audit::check_structure(&end).is_empty() && audit::check_beams(&end).is_empty());
    let told = world.disk().files["node_ideas/0001/prompt_context.txt"].clone();
    assert!(String::from_utf8_lossy(&told).contains("gain 500 of my own"), "others hear of it");
    assert_eq!(world.posted(), []);
}

/// Ideas that wait from the beginning: for the root, a repeat of it, and for a later node.
fn with_ideas(workers: u32, order: u64) -> (MemoryWorld, MemoryJournal) {
    let world = MemoryWorld::new(7, order);
    world.post("1-idea", own(Some(0), MINE), 0);
    world.post("2-idea", own(None, "IDEA: gain 40 of my own\n"), 0);
    world.post("3-idea", own(None, "IDEA: gain 500   of my OWN\n"), 0);
    (world, begun(workers))
}

#[test]
fn a_run_with_ideas_of_the_users_that_is_cut_off_after_any_event_ends_the_same() {
    let (world, mut clean) = with_ideas(1, 7);
    let end = go(&mut clean, &world).expect("a whole run");
    assert_eq!((added(&end).len(), refusals(&clean).len()), (2, 1));
    let expected = settled(end, world.disk());
    for workers in [1, 4] {
        for cut in 1..clean.events.len() {
            let (world, mut journal) = with_ideas(workers, 7 + cut as u64 % 3);
            world.let_messages_stick(cut % 5 < 2);
            journal.fuse = Some(cut);
            assert!(go(&mut journal, &world).is_err(), "no cut at {cut}");
            if cut % 2 == 0 {
                world.restart();
            }
            journal.fuse = None;
            let (from, because) = (None, TakeoverReason::OwnerDead);
            let at = jiff::Timestamp::UNIX_EPOCH;
            journal.events.push(Event::LockTakenOver { from, because, at });
            world.let_messages_stick(false);
            let end = go(&mut journal, &world).expect("a resumed run");
            assert_eq!(journal.state(), end);
            assert_eq!(world.posted(), [], "cut after {cut}");
            assert!(settled(end, world.disk()) == expected, "cut after {cut}, {workers} workers");
        }
    }
}

#[test]
fn an_idea_that_comes_at_any_moment_is_tried_or_refused() {
    let (plain, _) = whole();
    let (mut tried, mut refused, mut late) = (0, 0, 0);
    for after in 0.. {
        let world = MemoryWorld::new(7, 7);
        let mut journal = begun(2);
        world.post("1-idea", own(None, MINE), after);
        let end = go(&mut journal, &world).expect("a run");
        match (&added(&end)[..], &refusals(&journal)[..]) {
            ([mine], []) => {
                let generated =
                    |eval: &Cow<'_, Eval>| eval.depth == mine.depth && eval.id != mine.id;
                let others: Vec<_> = end.evals.iter().filter(generated).collect();
                assert!(others.iter().all(|eval| eval.id < mine.id), "{after}");
                let same = |eval: &&Cow<'_, Eval>| plain.evals.iter().any(|e| e.idea == eval.idea);
                assert_eq!(others.iter().filter(same).count(), others.len(), "{after}");
                tried += 1;
                late += usize::from(mine.depth.0 > 0);
            }
            ([], [why]) => {
                assert_eq!(*why, "the run is over (max_depth_reached)");
                refused += 1;
            }
            ([], []) => {
                assert!(world.looks() <= after + 1, "never read");
                break;
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(world.posted(), []);
    }
    assert!(tried > 20 && late > 5 && refused > 0, "{tried} tried, {late} late, {refused} refused");
}

#[test]
fn what_does_not_fit_is_refused_with_the_reason() {
    let check = |reach: RunLimits, request: MessageContent, after: u64, reason: &str| {
        let world = MemoryWorld::new(7, 7);
        let mut journal = begun_with(reach);
        world.post("1-idea", request, after);
        go(&mut journal, &world).expect("a run");
        assert_eq!(refusals(&journal), [reason]);
        let aside = world.set_aside();
        assert_eq!((aside.len(), aside[0].1.as_str()), (1, reason));
        assert_eq!(world.posted(), []);
    };
    let few = RunLimits { max_total_idea_evals: Some(4), ..reach(1) };
    check(few, own(None, MINE), 0, "the budget of evals has no room for it");
    check(reach(1), own(Some(9), MINE), 0, "there is no node `n0009`");
    let first = whole().0.eval(EvalId::FIRST).expect("an eval").idea.title.clone();
    let rest = "RATIONALE: to see\nREQUIRED_CHANGES: as it says";
    let again = format!("# IDEA:  {}\n\n{rest}\n", first.to_uppercase());
    check(reach(1), own(None, &again), 0, "it repeats the idea of `e0001`");
}

#[test]
fn an_idea_for_a_node_that_had_its_turn_is_refused_and_one_for_none_is_tried_now() {
    let world = MemoryWorld::new(7, 7);
    let mut journal = begun(1);
    go(&mut journal, &world).expect("a run");
    let closed = |event: &Event| matches!(event, Event::DepthClosed { .. });
    let end = journal.events.iter().position(closed).expect("a depth");
    // Removals may be recorded before or after.
    let cut = |events: usize| {
        let world = MemoryWorld::new(7, 7);
        let mut journal = begun(1);
        journal.fuse = Some(events);
        assert!(go(&mut journal, &world).is_err());
        journal.fuse = None;
        (journal, world)
    };
    let (mut journal, world) = (end..end + 20)
        .map(cut)
        .find(|(journal, _)| journal.events.iter().any(closed))
        .expect("a cut");
    let depth = journal.state().depth;
    world.post("1-idea", own(Some(0), MINE), 0);
    world.post("2-idea", own(None, MINE), 0);
    let end = go(&mut journal, &world).expect("a run");
    assert_eq!(refusals(&journal), ["`n0000` is not in the frontier"]);
    let [mine] = &added(&end)[..] else { panic!("{:?}", refusals(&journal)) };
    assert!(mine.depth >= depth && mine.parent != NodeId::ROOT);
}

#[test]
fn an_idea_that_came_with_a_pause_waits_for_its_end() {
    let world = MemoryWorld::new(7, 7);
    let mut journal = begun(1);
    world.post("1-pause", MessageContent::Wish(UserRequest::Pause), 0);
    world.post("2-idea", own(None, MINE), 0);
    world.post("3-unpause", MessageContent::Wish(UserRequest::Unpause), 30);
    let end = go(&mut journal, &world).expect("a run");
    assert_eq!(added(&end).len(), 1);
    assert!(while_paused(&journal).all(|event| !begins(event)));
}
