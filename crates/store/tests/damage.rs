//! Damage to a journal while its run goes on. A lost name is restored; a changed journal is left
//! alone, and the manifest keeps the record. Each line names the digest of the line before it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod story;

use std::fs::{self, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::thread;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use treebeam_core::event::Event;
use treebeam_core::facts::{Facts, RunHistory};
use treebeam_core::id::Sha256;
use treebeam_core::state::State;
use treebeam_run::port::{CheckpointKind, Journal as _};
use treebeam_store::journal_chain::survey_chain;
use treebeam_store::{
    ForcePolicy, RunDir, RunStore, StoreError, find_manifest_mismatch, open_to_read, replay_journal,
};

/// Number of events of the story that a scene begins with.
const BEGUN: usize = 10;
/// Longer than the steps in which a file system counts time.
const TIMESTAMP_TICK: Duration = Duration::from_millis(50);

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
    fn begun(&self) -> RunStore {
        let mut store = RunStore::create(self.root.path(), &story::started()).unwrap().0;
        store.append(&self.events[1..BEGUN]).unwrap();
        store
    }
    fn state(&self, end: usize) -> State {
        State::from_events(&self.events[..end]).unwrap()
    }
}

/// Returns the facts without the history of interruptions.
fn lasting(state: &State) -> Facts {
    Facts { history: RunHistory::default(), ..state.clone().into_facts() }
}

#[test]
fn a_journal_that_was_removed_or_renamed_is_put_back_and_the_run_goes_on() {
    for is_renamed in [false, true] {
        let scene = Scene::new();
        let mut store = scene.begun();
        let (journal, away) = (scene.run().journal_path(), scene.root.path().join("away"));
        let before = fs::read(&journal).unwrap();
        if is_renamed {
            fs::rename(&journal, &away).unwrap();
        } else {
            fs::remove_file(&journal).unwrap();
        }
        store.check_ownership().unwrap();
        store.append(&scene.events[BEGUN..=BEGUN]).unwrap();
        let now = fs::read(&journal).unwrap();
        assert!(now.starts_with(&before) && now.len() > before.len());
        assert!(!is_renamed || fs::read(&away).unwrap() == before, "nothing goes there any more");
        let mut state = scene.state(BEGUN + 1);
        let event = store.check_integrity().unwrap().unwrap();
        assert!(matches!(event, Event::JournalRestored { .. }));
        assert_eq!(store.check_integrity().unwrap(), None, "it is said once");
        for event in std::iter::once(&event).chain(&scene.events[BEGUN + 1..]) {
            store.append(std::slice::from_ref(event)).unwrap();
            state.apply(event).unwrap();
        }
        fs::remove_file(&journal).unwrap();
        assert!(store.check_integrity().unwrap().is_some(), "looking is enough");
        store.write_checkpoint(&state, CheckpointKind::End).unwrap();
        drop(store);
        assert_eq!(state.history.journal_restorations, 2, "one of them is in the story");
        assert_eq!(lasting(&state), lasting(&scene.state(scene.events.len())));
        assert_eq!(open_to_read(&scene.run()).unwrap().state, state);
        assert_eq!(replay_journal(&scene.run()).unwrap().state, state);
        assert_eq!(find_manifest_mismatch(&scene.run()).unwrap(), None);
    }
}

/// Checks that a damaged journal is not written to, and that the manifest continues the run.
#[track_caller]
fn damaged(damage: impl FnOnce(&RunDir, &[u8]), why: &str) {
    let scene = Scene::new();
    let (mut store, run) = (scene.begun(), scene.run());
    damage(&run, &fs::read(run.journal_path()).unwrap());
    let left = fs::symlink_metadata(run.journal_path()).unwrap();
    let state = scene.state(BEGUN + 2);
    store.rescue_state(&state, 2).unwrap();
    assert!(!run.manifest_path().exists(), "nothing is known to be wrong yet");
    for _ in 0..2 {
        let error = store.append(&scene.events[BEGUN..BEGUN + 2]).unwrap_err();
        assert!(error.to_string().contains(why), "no {why:?} in: {error}");
        assert!(error.hint.unwrap().contains("--force"));
        assert!(store.check_integrity().is_err());
    }
    let now = fs::symlink_metadata(run.journal_path()).unwrap();
    assert_eq!((left.len(), left.modified().unwrap()), (now.len(), now.modified().unwrap()));
    store.rescue_state(&state, 2).unwrap();
    drop(store);
    fs::rename(run.journal_path(), run.root().join("journal.away")).unwrap();
    let refused = RunStore::open_to_run(&run, ForcePolicy::No).unwrap_err();
    assert!(matches!(refused, StoreError::JournalMissing { .. }), "{refused}");
    let (mut store, opened, _) = RunStore::open_to_run(&run, ForcePolicy::Yes).unwrap();
    assert_eq!(lasting(&opened), lasting(&state), "what was decided is in the manifest");
    store.append(&scene.events[BEGUN + 2..]).unwrap();
    drop(store);
    let whole = scene.state(scene.events.len());
    assert_eq!(lasting(&open_to_read(&run).unwrap().state), lasting(&whole));
}

#[test]
fn a_journal_that_was_cut_or_changed_is_left_as_it_is() {
    damaged(|run, _| drop(fs::File::create(run.journal_path()).unwrap()), "it has 0 bytes");
    let cut = |run: &RunDir, text: &[u8]| {
        let last = text[..text.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
        let file = OpenOptions::new().write(true).open(run.journal_path()).unwrap();
        file.set_len(u64::try_from(last).unwrap()).unwrap();
    };
    damaged(cut, "bytes, ");
    let changed = |run: &RunDir, text: &[u8]| {
        let mut text = text.to_vec();
        let at = text.len() - 30;
        text[at] ^= 1;
        fs::write(run.journal_path(), text).unwrap();
    };
    damaged(changed, "its last line, event 10, was changed");
    // In place and with the length kept, so that only the file's times tell of it.
    let earlier = |run: &RunDir, text: &[u8]| {
        thread::sleep(TIMESTAMP_TICK);
        let begins: Vec<_> = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').collect();
        let at = u64::try_from(begins[2].0 + 40).unwrap();
        let mut file = OpenOptions::new().write(true).open(run.journal_path()).unwrap();
        file.seek(SeekFrom::Start(at)).unwrap();
        file.write_all(b"#").unwrap();
    };
    damaged(earlier, "an earlier line, after event 3, was changed: the checksum does not fit");
    let add = |run: &RunDir, _: &[u8]| {
        let mut file = OpenOptions::new().append(true).open(run.journal_path()).unwrap();
        file.write_all(b"a line of mine\n").unwrap();
    };
    damaged(add, "something was added to it after event 10");
    let replaced = |run: &RunDir, text: &[u8]| {
        let other = run.root().join("other");
        fs::write(&other, &text[..text.len() / 2]).unwrap();
        fs::rename(other, run.journal_path()).unwrap();
    };
    damaged(replaced, "another file has its name");
}

#[test]
fn a_late_line_of_an_epoch_that_is_over_breaks_nothing() {
    let scene = Scene::new();
    drop(scene.begun());
    let run = scene.run();
    let late = fs::read_to_string(run.journal_path()).unwrap();
    let late = late.lines().last().unwrap();
    let (mut store, mut state, _) = RunStore::open_to_run(&run, ForcePolicy::No).unwrap();
    for event in &scene.events[BEGUN..] {
        store.append(std::slice::from_ref(event)).unwrap();
        state.apply(event).unwrap();
        let mut file = OpenOptions::new().append(true).open(run.journal_path()).unwrap();
        writeln!(file, "{late}").unwrap();
    }
    OpenOptions::new()
        .append(true)
        .open(run.journal_path())
        .unwrap()
        .set_modified(SystemTime::UNIX_EPOCH)
        .unwrap();
    assert_eq!(store.check_integrity().unwrap(), None, "all lines are read again and accepted");
    drop(store);
    assert_eq!(replay_journal(&run).unwrap().state, state);
    let (mut store, ..) = RunStore::open_to_run(&run, ForcePolicy::No).unwrap();
    store.write_checkpoint(&state, CheckpointKind::End).unwrap();
    let tip = store.last_line().unwrap();
    let survey = survey_chain(&run, Some(tip.seq)).unwrap();
    assert_eq!((survey.last, survey.digest), (tip.seq, Some(tip.digest)));
    assert_eq!((survey.chained_from, &survey.unchained[..]), (Some(1), &[][..]));
}

/// Returns a journal as an older treebeam wrote it, without digests of previous lines.
fn unchained(text: &str) -> String {
    let line = |line: &str| {
        let at = line.find("\"prev\":\"").unwrap();
        let line = format!("{}{}", &line[..at], &line[at + "\"prev\":\"\",".len() + 64..]);
        let body = &line[..line.rfind(",\"sum\":\"").unwrap()];
        let sum = Sha256::hash_bytes(body.as_bytes()).to_string();
        format!("{body},\"sum\":\"{}\"}}\n", &sum[..16])
    };
    text.lines().map(line).collect()
}

#[test]
fn each_line_names_the_line_before_it_and_older_lines_name_none() {
    let scene = Scene::new();
    drop(scene.begun());
    let run = scene.run();
    let text = fs::read_to_string(run.journal_path()).unwrap();
    let mut before = Sha256::hash_bytes(b"");
    for line in text.lines() {
        assert!(line.contains(&format!("\"prev\":\"{before}\"")), "{line}");
        before = Sha256::hash_bytes(line.as_bytes());
    }
    fs::write(run.journal_path(), unchained(&text)).unwrap();
    let older = survey_chain(&run, None).unwrap();
    assert_eq!((older.first, older.last, older.chained_from), (1, 10, None));
    let (mut store, ..) = RunStore::open_to_run(&run, ForcePolicy::No).unwrap();
    store.append(&scene.events[BEGUN..]).unwrap();
    drop(store);
    assert_eq!(survey_chain(&run, None).unwrap().chained_from, Some(11));
    let whole = scene.state(scene.events.len());
    assert_eq!(replay_journal(&run).unwrap().state, whole);
}

#[test]
fn a_line_that_names_another_one_is_refused() {
    let scene = Scene::new();
    drop(scene.begun());
    let run = scene.run();
    let text = fs::read_to_string(run.journal_path()).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let changed = lines[4].replacen("2026-", "2025-", 1);
    assert_ne!(changed, lines[4]);
    let body = &changed[..changed.rfind(",\"sum\":\"").unwrap()];
    let sum = Sha256::hash_bytes(body.as_bytes()).to_string();
    lines[4] = format!("{body},\"sum\":\"{}\"}}", &sum[..16]);
    fs::write(run.journal_path(), lines.join("\n") + "\n").unwrap();
    let error = replay_journal(&run).unwrap_err();
    assert!(error.to_string().contains("line 6: event 5 is not the line that event 6 names"));
}
