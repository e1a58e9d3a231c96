//! Takeovers of a run: who may take it, the traces that this leaves, and writes that come late. One
//! machine plays two: removing `run.lock` hides the locks of one from the other.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod story;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use treebeam_core::event::{Event, TakeoverReason};
use treebeam_core::facts::{Facts, RunHistory};
use treebeam_core::state::State;
use treebeam_run::port::{CheckpointKind, Journal as _};
use treebeam_store::{
    ForcePolicy, OpenNote, OwnerLocation, RunClaim, RunDir, RunStore, StoreError,
    find_manifest_mismatch, lease, open_to_read, replay_journal,
};

/// Seconds of a day.
const DAY: i64 = 86_400;
/// Number of events of the story that a scene begins with.
const BEGUN: usize = 10;

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
    fn begun(&self) -> RunStore {
        let mut store = RunStore::create(self.root.path(), &story::started()).unwrap().0;
        store.append(&self.events[1..BEGUN]).unwrap();
        store
    }
    /// Creates a run with its first events and the note of an owner that is gone.
    fn left(&self) -> Value {
        let store = self.begun();
        let note = read_note(&self.run());
        drop(store);
        note
    }
    fn state(&self, end: usize) -> State {
        State::from_events(&self.events[..end]).unwrap()
    }
}

fn read_note(run: &RunDir) -> Value {
    serde_json::from_slice(&fs::read(run.lock_note_path()).unwrap()).unwrap()
}

/// Writes a note with some fields changed, as another machine would.
fn write_note(run: &RunDir, note: &Value, changes: &Value) {
    let mut note = note.clone();
    for (name, value) in changes.as_object().unwrap() {
        note[name] = value.clone();
    }
    fs::write(run.lock_note_path(), note.to_string()).unwrap();
}

fn ago(seconds: i64) -> Value {
    Timestamp::now().checked_sub(SignedDuration::from_secs(seconds)).unwrap().to_string().into()
}

fn elsewhere(seconds: i64) -> Value {
    json!({"hostname": "box", "boot_id": "another", "last_heartbeat_at": ago(seconds)})
}

/// Returns the facts without the history of interruptions.
fn lasting(state: &State) -> Facts {
    Facts { history: RunHistory::default(), ..state.clone().into_facts() }
}

#[track_caller]
fn refused(run: &RunDir, claim: impl Into<RunClaim>, at: OwnerLocation, says: &[&str]) {
    let error = RunStore::open_to_run(run, claim).unwrap_err();
    assert!(matches!(&error, StoreError::Locked { owner, .. } if *owner == at), "{error}");
    for text in says {
        assert!(error.to_string().contains(text), "no {text:?} in: {error}");
    }
    assert!(error.hint().unwrap().contains("--force"));
}

/// Takes the run over, for this reason, and finishes the story. The record must then be sound.
#[track_caller]
fn taken(scene: &Scene, claim: impl Into<RunClaim>, why: TakeoverReason) {
    let run = scene.run();
    let (mut store, mut state, notes) = RunStore::open_to_run(&run, claim).unwrap();
    assert!(
        matches!(&notes[..], [OpenNote::TakenOver { because, .. }] if *because == why),
        "{notes:?}"
    );
    let event = store.takeover().unwrap().clone();
    assert!(matches!(&event, Event::LockTakenOver { because, .. } if *because == why));
    let lines = fs::read_to_string(run.journal_path()).unwrap();
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!(last["event"], serde_json::to_value(&event).unwrap(), "the event comes first");
    assert_eq!(lasting(&state), lasting(&scene.state(BEGUN)), "only history knows");
    assert_eq!(state.history.lock_takeovers, 1);
    go_on(scene, &mut store, &mut state);
}

fn go_on(scene: &Scene, store: &mut RunStore, state: &mut State) {
    for event in &scene.events[BEGUN..] {
        store.append(std::slice::from_ref(event)).unwrap();
        state.apply(event).unwrap();
    }
    store.write_checkpoint(state, CheckpointKind::End).unwrap();
    sound(scene, state);
}

fn sound(scene: &Scene, state: &State) {
    let run = scene.run();
    assert_eq!(lasting(state), lasting(&scene.state(scene.events.len())));
    assert_eq!(open_to_read(&run).unwrap().state, *state);
    assert_eq!(replay_journal(&run).unwrap().state, *state);
    assert_eq!(find_manifest_mismatch(&run).unwrap(), None);
}

#[test]
fn of_four_that_want_a_left_run_one_gets_it_each_time() {
    const LANES: usize = 5;
    const ROUNDS: usize = 50;
    let begun = Instant::now();
    thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| (0..ROUNDS).fold(None, |lane, round| Some(contest(lane, round))));
        }
    });
    assert!(begun.elapsed() < Duration::from_mins(2), "{:?}", begun.elapsed());
}

/// Runs one round: a dead process has left the run, and four processes try to take it.
fn contest(lane: Option<(Scene, Value)>, round: usize) -> (Scene, Value) {
    let (scene, note) = lane.unwrap_or_else(|| {
        let scene = Scene::new();
        let note = scene.left();
        (scene, note)
    });
    let run = scene.run();
    let dead = [json!({"pid": u32::MAX}), json!({"start_time": 1}), elsewhere(DAY)];
    write_note(&run, &note, &dead[round % dead.len()]);
    let start = Barrier::new(4);
    let contend = || {
        start.wait();
        RunStore::open_to_run(&run, ForcePolicy::No)
    };
    let opened: Vec<_> = thread::scope(|scope| {
        let contenders: Vec<_> = (0..4).map(|_| scope.spawn(contend)).collect();
        contenders.into_iter().map(|contender| contender.join().unwrap()).collect()
    });
    let owners = opened.iter().filter(|opened| opened.is_ok()).count();
    assert_eq!(owners, 1, "round {round}: {opened:?}");
    assert!(opened.iter().all(|o| matches!(o, Ok(_) | Err(StoreError::Locked { .. }))));
    drop(opened);
    let takeovers = open_to_read(&run).unwrap().state.history.lock_takeovers;
    assert_eq!(usize::try_from(takeovers).unwrap(), round + 1, "one event for each takeover");
    (scene, note)
}

#[test]
fn a_note_says_who_and_goes_when_its_writer_leaves() {
    let scene = Scene::new();
    let store = scene.begun();
    let (run, holder) = (scene.run(), lease::find_holder(&scene.run()).unwrap());
    assert_eq!((holder.pid, holder.epoch), (std::process::id(), 1));
    assert_eq!(holder.boot_id.is_some(), cfg!(target_os = "linux"));
    assert_eq!(holder.start_time.is_some(), cfg!(target_os = "linux"));
    let words = lease::describe_owner(&run).unwrap();
    assert!(words.contains(&format!("process {} on `", holder.pid)), "{words}");
    assert!(words.contains("last heartbeat 20"), "{words}");
    drop(store);
    assert!(!run.lock_note_path().exists() && run.lock_path().is_file());
    let (store, state, notes) = RunStore::open_to_run(&run, ForcePolicy::No).unwrap();
    assert!(notes.is_empty() && store.takeover().is_none());
    assert_eq!(state, scene.state(BEGUN), "a clean handover leaves nothing");
    assert_eq!(lease::find_holder(&run).unwrap().epoch, 2);
}

#[test]
fn the_heart_beats_after_an_event() {
    let scene = Scene::new();
    let store = scene.begun();
    let first = lease::find_holder(&scene.run()).unwrap();
    let begun = Instant::now();
    while lease::find_holder(&scene.run()).unwrap().last_heartbeat_at == first.last_heartbeat_at {
        assert!(begun.elapsed() < Duration::from_secs(9), "no heartbeat");
        thread::sleep(Duration::from_millis(20));
    }
    assert!(begun.elapsed() > Duration::from_millis(500), "and not at once again");
    drop(store);
    assert!(!scene.run().lock_note_path().exists(), "nothing writes it anew");
}

#[cfg(target_os = "linux")]
#[test]
fn a_dead_owner_on_this_machine_is_replaced_at_once_whatever_the_clock_says() {
    let hostname = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    for change in [
        json!({"pid": u32::MAX}),
        json!({"start_time": 1}),
        json!({"start_time": null}),
        json!({"boot_id": "another", "hostname": hostname.trim()}),
        json!({"boot_id": null}),
    ] {
        for heartbeat in [-DAY, 0, DAY] {
            let scene = Scene::new();
            let mut note = scene.left();
            note["last_heartbeat_at"] = ago(heartbeat);
            write_note(&scene.run(), &note, &change);
            taken(&scene, ForcePolicy::No, TakeoverReason::OwnerDead);
        }
    }
}

/// After a kill a child may hold the lock until it has executed another program.
#[cfg(target_os = "linux")]
#[test]
fn a_lock_that_outlives_its_dead_owner_for_a_moment_is_waited_for() {
    let scene = Scene::new();
    let note = scene.left();
    write_note(&scene.run(), &note, &json!({"pid": u32::MAX}));
    let held = File::open(scene.run().lock_path()).unwrap();
    held.lock().unwrap();
    let holder = thread::spawn(move || {
        thread::sleep(Duration::from_millis(700));
        drop(held);
    });
    taken(&scene, ForcePolicy::No, TakeoverReason::OwnerDead);
    holder.join().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_living_owner_on_this_machine_stays_whatever_the_clock_says() {
    let scene = Scene::new();
    let store = scene.begun();
    let (run, note) = (scene.run(), read_note(&scene.run()));
    let never = RunClaim { force: ForcePolicy::Yes, stale_after: Duration::ZERO };
    let name = format!("process {} on", std::process::id());
    for locks_work in [true, false] {
        if !locks_work {
            fs::remove_file(run.lock_path()).unwrap();
        }
        for heartbeat in [-DAY, 0, DAY] {
            write_note(&run, &note, &json!({"last_heartbeat_at": ago(heartbeat)}));
            refused(&run, ForcePolicy::No, OwnerLocation::Here, &[&name]);
            refused(&run, never, OwnerLocation::Here, &[&name]);
        }
    }
    drop(store);
    assert!(!run.lock_note_path().exists());
}

#[test]
fn an_owner_elsewhere_goes_by_its_heartbeat_or_by_force() {
    let minute = RunClaim { force: ForcePolicy::No, stale_after: Duration::from_mins(1) };
    let check = |heartbeat: i64, claim: RunClaim, expected: Result<TakeoverReason, &str>| {
        let scene = Scene::new();
        let note = scene.left();
        write_note(&scene.run(), &note, &elsewhere(heartbeat));
        match expected {
            Ok(why) => taken(&scene, claim, why),
            Err(says) => {
                let before = fs::read(scene.run().journal_path()).unwrap();
                refused(&scene.run(), claim, OwnerLocation::Elsewhere, &["on `box` since", says]);
                assert_eq!(fs::read(scene.run().journal_path()).unwrap(), before);
                assert_eq!(read_note(&scene.run())["hostname"], "box", "and the note stays");
            }
        }
    };
    check(5, ForcePolicy::No.into(), Err("it counts as dead after 600 s"));
    check(599, ForcePolicy::No.into(), Err("dead after 600 s"));
    check(50, minute, Err("dead after 60 s"));
    check(-DAY, ForcePolicy::No.into(), Err("in the future: the clocks differ"));
    check(600, ForcePolicy::No.into(), Ok(TakeoverReason::HeartbeatStale));
    check(DAY, ForcePolicy::No.into(), Ok(TakeoverReason::HeartbeatStale));
    check(60, minute, Ok(TakeoverReason::HeartbeatStale));
    check(5, ForcePolicy::Yes.into(), Ok(TakeoverReason::Forced));
    check(-DAY, ForcePolicy::Yes.into(), Ok(TakeoverReason::Forced));
}

#[test]
fn a_note_that_cannot_be_read_is_as_old_as_its_file() {
    for text in ["", "{", "{\"pid\":\"x\"}", "[]"] {
        let scene = Scene::new();
        scene.left();
        let run = scene.run();
        fs::write(run.lock_note_path(), text).unwrap();
        let says = ["a process without a name", "`run.lock.json` cannot be read"];
        refused(&run, ForcePolicy::No, OwnerLocation::Elsewhere, &says);
        let hour_ago = std::time::SystemTime::now() - Duration::from_hours(1);
        File::options()
            .write(true)
            .open(run.lock_note_path())
            .unwrap()
            .set_modified(hour_ago)
            .unwrap();
        taken(&scene, ForcePolicy::No, TakeoverReason::HeartbeatStale);
    }
}

#[test]
fn the_note_of_an_older_treebeam_is_understood() {
    let scene = Scene::new();
    scene.left();
    let time = "2026-01-31T22:00:00Z";
    let note = json!({"pid": 7, "hostname": "box", "created_at": time, "last_heartbeat_at": time});
    fs::write(scene.run().lock_note_path(), note.to_string()).unwrap();
    taken(&scene, ForcePolicy::No, TakeoverReason::HeartbeatStale);
}

/// Makes a run look owned by another machine whose locks are not visible here.
fn out_of_reach(run: &RunDir) {
    write_note(run, &read_note(run), &elsewhere(DAY));
    fs::remove_file(run.lock_path()).unwrap();
}

#[test]
fn one_that_lost_its_run_notices_before_its_next_write_and_is_inert() {
    let scene = Scene::new();
    let mut old = scene.begun();
    let run = scene.run();
    let lines = fs::read_to_string(run.journal_path()).unwrap();
    let mut late = OpenOptions::new().append(true).open(run.journal_path()).unwrap();
    out_of_reach(&run);
    let (mut new, mut state, _) = RunStore::open_to_run(&run, ForcePolicy::No).unwrap();

    let before = fs::read(run.journal_path()).unwrap();
    for _ in 0..2 {
        let error = old.append(&scene.events[BEGUN..BEGUN + 2]).unwrap_err();
        assert!(error.to_string().contains("was taken over by process"), "{error}");
        let error = old.write_checkpoint(&scene.state(BEGUN + 1), CheckpointKind::End).unwrap_err();
        assert!(error.to_string().contains("writes nothing more"), "{error}");
        assert!(matches!(old.check_ownership(), Err(StoreError::Lost { .. })));
    }
    assert_eq!(fs::read(run.journal_path()).unwrap(), before);
    new.append(&scene.events[BEGUN..BEGUN + 3]).unwrap();
    for event in &scene.events[BEGUN..BEGUN + 3] {
        state.apply(event).unwrap();
    }

    // A late write that was under way during the takeover goes to a file without a name.
    late.write_all(lines.lines().last().unwrap().as_bytes()).unwrap();
    late.write_all(b"\n{\"half").unwrap();
    assert_eq!(open_to_read(&run).unwrap().state, state);
    for event in &scene.events[BEGUN + 3..] {
        new.append(std::slice::from_ref(event)).unwrap();
        state.apply(event).unwrap();
    }
    thread::sleep(Duration::from_millis(1200));
    assert_eq!(
        lease::find_holder(&run).unwrap().epoch,
        2,
        "the old heart does not write over the new"
    );
    new.write_checkpoint(&state, CheckpointKind::End).unwrap();
    sound(&scene, &state);
    drop(old);
    assert_eq!(lease::find_holder(&run).unwrap().epoch, 2, "and does not take the new note away");
    drop(new);
    assert!(!run.lock_note_path().exists());
}

#[test]
fn one_that_lost_its_run_notices_even_when_its_successor_is_gone() {
    let scene = Scene::new();
    let mut old = scene.begun();
    let run = scene.run();
    out_of_reach(&run);
    let (mut new, mut state, _) = RunStore::open_to_run(&run, ForcePolicy::No).unwrap();
    go_on(&scene, &mut new, &mut state);
    drop(new);
    assert!(!run.lock_note_path().exists());
    let error = old.append(&scene.events[BEGUN..]).unwrap_err();
    assert!(error.to_string().contains("was taken over by another process"), "{error}");
    drop(old);
    assert!(!run.lock_note_path().exists());
    sound(&scene, &state);
}

#[test]
fn a_late_note_does_not_take_the_run_back() {
    let scene = Scene::new();
    let mut old = scene.begun();
    let (run, note) = (scene.run(), read_note(&scene.run()));
    out_of_reach(&run);
    let (mut new, mut state, _) = RunStore::open_to_run(&run, ForcePolicy::No).unwrap();
    fs::write(run.lock_note_path(), note.to_string()).unwrap();
    assert!(
        matches!(old.check_ownership(), Err(StoreError::Lost { .. })),
        "it has another journal"
    );
    assert!(old.append(&scene.events[BEGUN..]).is_err());
    go_on(&scene, &mut new, &mut state);
}

#[test]
fn a_late_manifest_is_passed_over_or_merely_older() {
    for late in [BEGUN, BEGUN + 1, BEGUN + 3] {
        for written_first in [false, true] {
            let scene = Scene::new();
            let mut old = scene.begun();
            let run = scene.run();
            let journal = fs::read(run.journal_path()).unwrap();
            old.append(&scene.events[BEGUN..late]).unwrap();
            old.write_checkpoint(&scene.state(late), CheckpointKind::End).unwrap();
            let late_manifest = fs::read(run.manifest_path()).unwrap();
            fs::remove_file(run.manifest_path()).unwrap();
            // As if those events had not reached the file before it was copied.
            let file = OpenOptions::new().write(true).open(run.journal_path()).unwrap();
            file.set_len(u64::try_from(journal.len()).unwrap()).unwrap();
            out_of_reach(&run);
            let (mut new, mut state, _) = RunStore::open_to_run(&run, ForcePolicy::No).unwrap();
            let steps = scene.events[BEGUN..].iter().take(2);
            for event in steps {
                new.append(std::slice::from_ref(event)).unwrap();
                state.apply(event).unwrap();
            }
            if written_first {
                new.write_checkpoint(&state, CheckpointKind::End).unwrap();
                fs::rename(run.manifest_path(), run.previous_manifest_path()).unwrap();
            }
            fs::write(run.manifest_path(), &late_manifest).unwrap();
            let opened = open_to_read(&run).unwrap();
            assert_eq!(opened.state, state, "a manifest of {late} events");
            let passed_over = matches!(&opened.notes[..], [OpenNote::Late { .. }]);
            assert_eq!(passed_over, late > BEGUN, "{:?}", opened.notes);
            drop((old, new));
            let (mut new, mut state, _) = RunStore::open_to_run(&run, ForcePolicy::No).unwrap();
            for event in &scene.events[BEGUN + 2..] {
                new.append(std::slice::from_ref(event)).unwrap();
                state.apply(event).unwrap();
            }
            new.write_checkpoint(&state, CheckpointKind::End).unwrap();
            sound(&scene, &state);
            assert!(open_to_read(&run).unwrap().notes.is_empty(), "the next write repairs it");
        }
    }
}

/// Two processes that want a run at the same time, and cannot see each other's locks.
#[test]
fn of_two_that_cannot_see_each_others_locks_at_most_one_writes() {
    const ROUNDS: usize = 120;
    let (mut written, mut stopped) = (0, 0);
    for round in 0..ROUNDS {
        let scene = Scene::new();
        let note = scene.left();
        let run = scene.run();
        if round % 3 > 0 {
            write_note(&run, &note, &elsewhere(DAY));
        }
        let start = Barrier::new(2);
        let contend = || {
            start.wait();
            drop(fs::remove_file(run.lock_path()));
            let (mut store, state, _) = RunStore::open_to_run(&run, ForcePolicy::No).ok()?;
            // The other may have written before this one took the run.
            let first = lasting(&state) == lasting(&scene.state(BEGUN));
            let next = if first { BEGUN } else { BEGUN + 1 };
            let wrote = store.append(&scene.events[next..=next]).is_ok();
            Some((store, wrote))
        };
        let opened: Vec<_> = thread::scope(|scope| {
            let contenders: Vec<_> = (0..2).map(|_| scope.spawn(contend)).collect();
            contenders.into_iter().filter_map(|contender| contender.join().unwrap()).collect()
        });
        let owners = opened.iter().filter(|(store, _)| store.check_ownership().is_ok()).count();
        assert!(owners <= 1, "round {round}");
        stopped += opened.len() - owners;
        written += opened.iter().filter(|(_, wrote)| *wrote).count();
        let state = replay_journal(&run).unwrap().state;
        let some = [BEGUN, BEGUN + 1, BEGUN + 2].map(|end| lasting(&scene.state(end)));
        assert!(some.contains(&lasting(&state)), "round {round}");
        assert_eq!(open_to_read(&run).unwrap().state, state);
        drop(opened);
        RunStore::open_to_run(&run, ForcePolicy::Yes).unwrap();
    }
    assert!(written > ROUNDS / 2, "{written} wrote, {stopped} were stopped");
}

#[test]
fn a_torn_journal_is_taken_over_whole() {
    for (cut, end) in [(1, BEGUN), (9, BEGUN - 1)] {
        let scene = Scene::new();
        let note = scene.left();
        let run = scene.run();
        let length = fs::metadata(run.journal_path()).unwrap().len();
        OpenOptions::new()
            .write(true)
            .open(run.journal_path())
            .unwrap()
            .set_len(length - cut)
            .unwrap();
        write_note(&run, &note, &elsewhere(DAY));
        let (store, state, notes) = RunStore::open_to_run(&run, ForcePolicy::No).unwrap();
        assert_eq!(lasting(&state), lasting(&scene.state(end)));
        assert_eq!(notes.len(), 1 + BEGUN - end, "{notes:?}");
        drop(store);
        let opened = open_to_read(&run).unwrap();
        assert_eq!((opened.state, opened.notes), (state, vec![]));
    }
}

#[test]
fn a_damaged_run_keeps_its_note_for_the_next_one() {
    let scene = Scene::new();
    let note = scene.left();
    let run = scene.run();
    let journal = fs::read(run.journal_path()).unwrap();
    write_note(&run, &note, &json!({"pid": u32::MAX}));
    fs::write(run.journal_path(), "no journal\n").unwrap();
    assert!(matches!(
        RunStore::open_to_run(&run, ForcePolicy::No),
        Err(StoreError::BadLine { .. })
    ));
    assert_eq!(read_note(&run)["pid"], u32::MAX);
    fs::write(run.journal_path(), journal).unwrap();
    taken(&scene, ForcePolicy::No, TakeoverReason::OwnerDead);
}
