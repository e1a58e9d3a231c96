//! Memory of a run per eval, counted in bytes that are the same on every machine. A test binary of
//! its own, because it counts every allocation of the process.

#![cfg(test)]
#![expect(unsafe_code, reason = "an allocator that counts, and hands on to that of the system")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;
use treebeam_core::event::Event;
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_core::state::State;
use treebeam_run::drive_run;
use treebeam_run::port::{CheckpointKind, Journal as _};
use treebeam_store::{RunStore, open_to_read};
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::MemoryWorld;

/// Number of bytes that are allocated at this moment.
static HELD: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Counting;

// SAFETY: each call is passed on unchanged; only a counter is updated besides.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the same promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the same promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Builds a value, and returns it with the number of bytes that it holds.
fn held<T>(build: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.load(Ordering::Relaxed);
    let made = build();
    (made, HELD.load(Ordering::Relaxed) - before)
}

const EARLY: usize = 500;
const LATE: usize = 2_000;
/// The most bytes that an eval may take.
const MOST: usize = 740;

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not zero")
}

/// Returns the events of a run with a beam of two, deep and narrow.
fn searched() -> Vec<Event> {
    let meaning = FixedSettings {
        ideas_per_node: number(20),
        beam_width: number(2),
        sweep_config_limit: Some(number(4)),
        ..FixedSettings::default()
    };
    let evals = u32::try_from(LATE).ok();
    let reach = RunLimits { max_depth: 200, max_total_idea_evals: evals, ..RunLimits::default() };
    let mut journal = MemoryJournal::begun(meaning, reach);
    let state = journal.state();
    let end = drive_run(state, MemoryWorld::new(7, 7).ports(), &mut journal, &mut |_, _| {});
    assert_eq!(end.expect("a run").evals.len(), LATE);
    journal.events
}

/// Returns the events up to the close of the depth in which so many evals have ended.
fn until(events: &[Event], evals: usize) -> &[Event] {
    let mut over = 0;
    let end = events.iter().position(|event| {
        over += usize::from(matches!(event, Event::Scored { .. } | Event::EvalFailed { .. }));
        over >= evals && matches!(event, Event::DepthClosed { .. })
    });
    &events[..=end.expect("a depth that closes")]
}

/// Writes a state and returns it as read back from disk, with its bytes.
fn opened(events: &[Event], state: &State) -> (State, usize) {
    let folder = TempDir::new().expect("a folder");
    let Some((Event::RunStarted(started), rest)) = events.split_first() else { panic!("no start") };
    let (mut store, _) = RunStore::create(folder.path(), started).expect("a run");
    store.append(rest).expect("a journal");
    store.write_checkpoint(state, CheckpointKind::End).expect("a manifest");
    let run = store.run_dir().clone();
    drop(store);
    held(|| open_to_read(&run).expect("a run").state)
}

#[test]
fn an_eval_takes_little_and_hardly_more_where_it_was_read_from_the_disk() {
    let events = searched();
    let of = |evals| held(|| State::from_events(until(&events, evals)).expect("a state"));
    let [(early, small), (late, large)] = [EARLY, LATE].map(of);
    let each = (large - small) / (late.evals.len() - early.evals.len());
    assert!(each <= MOST, "{each} bytes per eval");
    let (again, read) = opened(until(&events, LATE), &late);
    assert_eq!(again, late);
    // Lists that were read have spare capacity.
    assert!(read <= large + large / 4, "{read} bytes where {large} would do");
}
