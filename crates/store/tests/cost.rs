//! Cost of a run in machine-independent counts: bytes, appends, events, moves (times: `benches/`).

#![cfg(test)]

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::num::NonZeroU32;
use std::ops::Range;
use tempfile::TempDir;
use treebeam_core::event::{Event, Leftover, RunStarted};
use treebeam_core::plan::{self, PlanMove, RunningSteps};
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_core::state::State;
use treebeam_run::drive_run;
use treebeam_run::port::{CheckpointKind, Journal, PortError};
use treebeam_store::{RunStore, open_to_read};
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::MemoryWorld;

type Outcome = Result<(), Box<dyn Error>>;

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not zero")
}

fn begun(ideas: u32, beam: u32, evals: u32) -> MemoryJournal {
    let meaning = FixedSettings {
        ideas_per_node: number(ideas),
        beam_width: number(beam),
        sweep_config_limit: Some(number(4)),
        ..FixedSettings::default()
    };
    let reach =
        RunLimits { max_depth: 50, max_total_idea_evals: Some(evals), ..RunLimits::default() };
    MemoryJournal::begun(meaning, reach)
}

/// A journal in memory that records its length after each append.
struct Counting {
    journal: MemoryJournal,
    lengths: Vec<usize>,
}

impl Journal for Counting {
    fn append(&mut self, events: &[Event]) -> Result<(), PortError> {
        self.journal.append(events)?;
        self.lengths.push(self.journal.events.len());
        Ok(())
    }
    fn write_checkpoint(&mut self, state: &State, moment: CheckpointKind) -> Result<(), PortError> {
        self.journal.write_checkpoint(state, moment)
    }
}

/// Returns a run of 2,100 evals over several depths.
fn searched() -> Result<Counting, Box<dyn Error>> {
    let mut counting = Counting { journal: begun(100, 10, 2_100), lengths: Vec::new() };
    let state = counting.journal.state();
    let end = drive_run(state, MemoryWorld::new(7, 7).ports(), &mut counting, &mut |_, _| {})?;
    assert_eq!(end.evals.len(), 2_100);
    assert!(end.closed.len() >= 3, "{} depths", end.closed.len());
    Ok(counting)
}

/// Returns the range of events from the end of one eval to the end of another.
fn between(events: &[Event], evals: Range<usize>) -> Range<usize> {
    let ends = |event: &Event| matches!(event, Event::Scored { .. } | Event::EvalFailed { .. });
    let mut ended = events.iter().enumerate().filter(|(_, event)| ends(event)).map(|(at, _)| at);
    let first = ended.nth(evals.start).expect("an eval");
    let last = ended.nth(evals.len() - 1).expect("an eval");
    first + 1..last + 1
}

/// Returns true if an event is about one eval, and so repeats for each.
fn is_of_eval(event: &Event) -> bool {
    !matches!(event, Event::IdeasProposed(_) | Event::DepthClosed { .. } | Event::NodeAdded { .. })
}

fn started(journal: &MemoryJournal) -> &RunStarted {
    let Some(Event::RunStarted(started)) = journal.events.first() else { panic!("no start") };
    started
}

#[test]
fn an_eval_late_in_a_run_takes_no_more_of_the_journal_than_an_early_one() -> Outcome {
    let Counting { journal, lengths } = searched()?;
    let (early, late) =
        (between(&journal.events, 100..300), between(&journal.events, 1_900..2_100 - 1));
    let folder = TempDir::new()?;
    let (mut store, _) = RunStore::create(folder.path(), started(&journal))?;
    let mut bytes = |range: &Range<usize>| -> Result<f64, Box<dyn Error>> {
        let events = journal.events[range.clone()].iter().filter(|event| is_of_eval(event));
        let events: Vec<Event> = events.cloned().collect();
        let path = store.run_dir().journal_path();
        let before = fs::metadata(&path)?.len();
        store.append(&events)?;
        let grown = u32::try_from(fs::metadata(&path)?.len() - before)?;
        Ok(f64::from(grown) / f64::from(u32::try_from(events.len())?))
    };
    let ratio = bytes(&late)? / bytes(&early)?;
    assert!((0.8..1.05).contains(&ratio), "bytes per event grew by {ratio:.3}");
    for range in [early, late] {
        let appends = lengths.iter().filter(|length| range.contains(length)).count();
        let events = range.len();
        assert!(appends <= events && appends <= 200 * 8, "{appends} appends, {events} events");
    }
    Ok(())
}

#[test]
fn a_stopped_run_opens_without_its_journal_and_a_cut_off_one_with_a_short_tail() -> Outcome {
    let Counting { journal, .. } = searched()?;
    let folder = TempDir::new()?;
    let (mut store, mut state) = RunStore::create(folder.path(), started(&journal))?;
    let run = store.run_dir().clone();
    let rest = journal.events.get(1..).unwrap_or_default();
    let closes = |event: &Event| matches!(event, Event::DepthClosed { .. });
    for depth in rest.split_inclusive(closes) {
        let before = fs::metadata(run.journal_path())?.len();
        depth.iter().try_for_each(|event| state.apply(event))?;
        store.append(depth)?;
        let of_depth = fs::metadata(run.journal_path())?.len() - before;
        let cost = open_to_read(&run)?.stats;
        let short = (64 * 1024).max(cost.manifest_bytes / 2) + of_depth;
        assert!(cost.journal_bytes_read < short + 4096, "{cost:?}, {of_depth} of this depth");
        store.write_checkpoint(&state, CheckpointKind::DepthClosed)?;
    }
    store.write_checkpoint(&state, CheckpointKind::End)?;
    let opened = open_to_read(&run)?;
    assert_eq!(opened.state, state);
    assert_eq!(opened.stats.events_replayed, 0);
    assert!(opened.stats.journal_bytes_read < 4096, "{:?}", opened.stats);
    Ok(())
}

#[test]
fn the_plan_offers_no_more_than_there_is_room_for() -> Outcome {
    for slots in [1, 4, 64] {
        let mut journal = begun(1_000, 1, 10_000);
        journal.fuse = Some(8);
        let state = journal.state();
        assert!(
            drive_run(state, MemoryWorld::new(7, 7).ports(), &mut journal, &mut |_, _| {}).is_err()
        );
        let mut state = journal.state();
        let reach = RunLimits { max_parallel_evals: number(slots), ..state.limits.clone() };
        state.apply(&Event::SettingsChanged { reach })?;
        let queued: usize = state.queued_evals().map(|(_, evals)| evals.len()).sum();
        assert!(queued > 900, "{queued} queued");
        let moves = plan::next_moves(&state, &RunningSteps::default(), jiff::Timestamp::UNIX_EPOCH);
        assert_eq!(moves.len(), usize::try_from(slots)?);
        assert!(moves.iter().all(|next| matches!(next, PlanMove::Start(plan::Step::Implement(_)))));
    }
    Ok(())
}

#[test]
fn what_cannot_be_removed_does_not_get_in_the_way_of_what_can() -> Outcome {
    let Counting { journal, .. } = searched()?;
    let mut deferred: BTreeSet<Leftover> = BTreeSet::new();
    let mut state = State::from_run_started(started(&journal));
    for event in journal.events.iter().skip(1) {
        state.apply(event)?;
        if let Event::DiscardDeferred { leftover, .. } = event {
            deferred.insert(*leftover);
        }
        if let Event::Discarded { leftover } = event {
            deferred.remove(leftover);
        }
        let next = state.next_removable(jiff::Timestamp::UNIX_EPOCH);
        assert!(next.is_none_or(|next| !deferred.contains(&next)), "{next:?} has to wait");
        let due = state.leftovers.len() - deferred.len();
        assert_eq!(next.is_some(), due > 0);
        let later = state.next_removable(jiff::Timestamp::MAX);
        assert_eq!(later.is_some(), !state.leftovers.is_empty());
    }
    Ok(())
}
