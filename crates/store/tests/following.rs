//! Follows a run while it is written: in pieces, across manifests, takeovers, another journal.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod story;

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use tempfile::TempDir;
use treebeam_core::event::Event;
use treebeam_core::state::State;
use treebeam_run::port::{CheckpointKind, Journal as _};
use treebeam_store::run_follower::{JournalUpdate, RunFollower};
use treebeam_store::{ForcePolicy, RunDir, RunStore};

struct Scene {
    root: TempDir,
    events: Vec<Event>,
}

impl Scene {
    fn new() -> Self {
        Self { root: TempDir::new().unwrap(), events: story::events() }
    }

    fn run(&self) -> RunDir {
        RunDir::from_run_id(self.root.path(), &story::started().run)
    }

    /// Creates a run with its first events, and returns its store.
    fn begun(&self, events: usize) -> RunStore {
        let mut store = RunStore::create(self.root.path(), &story::started()).unwrap().0;
        store.append(&self.events[1..events]).unwrap();
        store
    }

    fn state(&self, end: usize) -> State {
        State::from_events(&self.events[..end]).unwrap()
    }
}

fn append(path: &Path, bytes: &[u8]) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

/// Returns the numbers of the new events; none if the run was reloaded.
fn numbers(follower: &mut RunFollower) -> Option<Vec<u64>> {
    match follower.read_updates().unwrap() {
        JournalUpdate::Appended(records) => Some(records.iter().map(|record| record.seq).collect()),
        JournalUpdate::Reloaded => None,
    }
}

#[test]
fn a_state_keeps_up_with_its_journal_whatever_the_pieces() {
    let scene = Scene::new();
    let all = scene.events.len();
    drop(scene.begun(all));
    let journal = scene.run().journal_path();
    let whole = fs::read(&journal).unwrap();
    let lines: Vec<_> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    for (begin, piece) in [(1, 997), (2, 4096), (all / 2, 1), (all - 1, 3), (all, 1)] {
        let head = lines[..begin].concat();
        fs::write(&journal, &head).unwrap();
        let mut follower = RunFollower::open(&scene.run()).unwrap();
        assert_eq!(follower.state(), &scene.state(begin));
        let mut seen = Vec::new();
        let most = if piece == 1 { 3000 } else { usize::MAX };
        let rest = &whole[head.len()..];
        for bytes in rest[..rest.len().min(most)].chunks(piece) {
            append(&journal, bytes);
            seen.extend(numbers(&mut follower).unwrap());
        }
        append(&journal, &rest[rest.len().min(most)..]);
        seen.extend(numbers(&mut follower).unwrap());
        let (begin, all) = (u64::try_from(begin).unwrap(), u64::try_from(all).unwrap());
        assert_eq!(seen, (begin + 1..=all).collect::<Vec<_>>());
        assert_eq!(follower.state(), &scene.state(scene.events.len()));
        assert_eq!(numbers(&mut follower), Some(Vec::new()));
    }
}

#[test]
fn what_was_recorded_last_is_known_at_once() {
    let scene = Scene::new();
    let mut store = scene.begun(20);
    store.write_checkpoint(&scene.state(20), CheckpointKind::End).unwrap();
    store.append(&scene.events[20..30]).unwrap();
    let mut follower = RunFollower::open(&scene.run()).unwrap();
    let recent = |follower: &RunFollower| {
        let events = follower.recent_records().into_iter().map(|record| record.event);
        events.collect::<Vec<_>>()
    };
    assert_eq!(recent(&follower), scene.events[..30]);
    store.append(&scene.events[30..33]).unwrap();
    assert_eq!(recent(&follower), scene.events[..30], "what is in the state alone");
    assert_eq!(numbers(&mut follower), Some(vec![31, 32, 33]));
    assert_eq!(recent(&follower), scene.events[..33]);
    // A long journal is not read from its beginning.
    let padding = Event::RootRefused { why: "x".repeat(400 * 1024) };
    assert_eq!(known_at_once(&padding), [3, 4]);
}

/// Returns the recent events of a run that consists of this event three times.
fn known_at_once(event: &Event) -> Vec<u64> {
    let root = TempDir::new().unwrap();
    let mut store = RunStore::create(root.path(), &story::started()).unwrap().0;
    for _ in 0..3 {
        store.append(std::slice::from_ref(event)).unwrap();
    }
    let run = RunDir::from_run_id(root.path(), &story::started().run);
    let follower = RunFollower::open(&run).unwrap();
    follower.recent_records().iter().map(|record| record.seq).collect()
}

#[test]
fn a_takeover_and_another_journal_are_survived() {
    let scene = Scene::new();
    drop(scene.begun(10));
    let run = scene.run();
    let mut follower = RunFollower::open(&run).unwrap();
    append(&run.journal_path(), b"{\"seq\":11,\"epoch\":1,\"t\"");
    assert_eq!(numbers(&mut follower), Some(Vec::new()));
    let (mut store, ..) = RunStore::open_to_run(&run, ForcePolicy::No).unwrap();
    store.append(&scene.events[10..12]).unwrap();
    store.write_checkpoint(&scene.state(12), CheckpointKind::End).unwrap();
    assert_eq!(numbers(&mut follower), Some(vec![11, 12]));
    assert_eq!(follower.state(), &scene.state(12));
    drop(store);
    fs::remove_file(run.journal_path()).unwrap();
    assert!(follower.read_updates().is_err(), "nothing is there to be read");
    assert_eq!(follower.state(), &scene.state(12), "what was known stays known");
    let (mut store, ..) = RunStore::open_to_run(&run, ForcePolicy::Yes).unwrap();
    store.append(&scene.events[12..14]).unwrap();
    let _ = numbers(&mut follower);
    assert_eq!(follower.state(), &scene.state(14));
    store.append(&scene.events[14..15]).unwrap();
    assert_eq!(numbers(&mut follower), Some(vec![15]));
}

#[test]
fn a_journal_that_went_back_in_time_is_read_anew() {
    let scene = Scene::new();
    drop(scene.begun(20));
    let run = scene.run();
    let whole = fs::read(run.journal_path()).unwrap();
    let lines: Vec<_> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let mut follower = RunFollower::open(&run).unwrap();
    assert_eq!(numbers(&mut follower), Some(Vec::new()));
    fs::write(run.journal_path(), lines[..7].concat()).unwrap();
    assert_eq!(numbers(&mut follower), None);
    assert_eq!(follower.state(), &scene.state(7));
    append(&run.journal_path(), b"no line at all\n");
    assert!(follower.read_updates().is_err());
    assert_eq!(follower.state(), &scene.state(7));
    fs::write(run.journal_path(), &whole).unwrap();
    let _ = numbers(&mut follower);
    assert_eq!(follower.state(), &scene.state(20));
}

#[test]
fn what_somebody_looks_at_stays_as_it_was() {
    let scene = Scene::new();
    let mut store = scene.begun(5);
    let mut follower = RunFollower::open(&scene.run()).unwrap();
    let seen = follower.snapshot();
    store.append(&scene.events[5..9]).unwrap();
    assert_eq!(numbers(&mut follower).map(|numbers| numbers.len()), Some(4));
    assert_eq!((&*seen, follower.state()), (&scene.state(5), &scene.state(9)));
}
