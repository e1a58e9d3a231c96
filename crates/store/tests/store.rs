//! A run on disk from its creation on: opened for reading and running, cut off, forced, moved.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod story;

use std::fs::{self, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;
use tempfile::TempDir;
use treebeam_core::event::Event;
use treebeam_core::id::{EvalId, RunPath};
use treebeam_core::state::State;
use treebeam_run::port::{CheckpointKind, FileStore as _, Journal as _};
use treebeam_store::journal::JournalReader;
use treebeam_store::{
    ForcePolicy, OpenNote, RunDir, RunFiles, RunStore, StoreError, lease, list_runs,
    make_runs_root, open_to_read, replay_journal,
};

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
    fn create(&self) -> RunStore {
        RunStore::create(self.root.path(), &story::started()).unwrap().0
    }
    fn state(&self, end: usize) -> State {
        State::from_events(&self.events[..end]).unwrap()
    }
    /// Creates a run with all events, and a manifest after each of these counts.
    fn told(&self, checkpoints: &[usize]) -> RunDir {
        let mut store = self.create();
        let mut done = 1;
        for end in checkpoints.iter().copied().chain([self.events.len()]) {
            store.append(&self.events[done..end]).unwrap();
            done = end;
            if checkpoints.contains(&end) {
                store.write_checkpoint(&self.state(end), CheckpointKind::End).unwrap();
            }
        }
        self.run()
    }
    fn whole(&self) -> State {
        self.state(self.events.len())
    }
}

fn append(path: &Path, bytes: &[u8]) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

#[test]
fn manifest_and_tail_give_what_the_whole_journal_gives() {
    let all = story::events().len();
    for end in 2..=all {
        let scene = Scene::new();
        let run = scene.told(&[end]);
        let opened = open_to_read(&run).unwrap();
        assert_eq!(opened.state, scene.whole(), "manifest at event {end}");
        assert_eq!(opened.seq, u64::try_from(all).unwrap());
        assert_eq!(opened.stats.events_replayed, u64::try_from(all - end).unwrap());
        assert_eq!(replay_journal(&run).unwrap().state, opened.state);
        assert!(opened.notes.is_empty());
    }
}

#[test]
fn a_new_run_has_its_place_and_its_name_only_once() {
    let scene = Scene::new();
    let repo = scene.root.path();
    let root = make_runs_root(repo).unwrap();
    assert_eq!(fs::read_to_string(repo.join(".treebeam/.gitignore")).unwrap(), "*\n");
    assert!(
        list_runs(&root).unwrap().is_empty()
            && list_runs(&repo.join("nowhere")).unwrap().is_empty()
    );
    let mut names = Vec::new();
    for name in ["zebra", "ape"] {
        let mut started = story::started();
        started.run = name.parse().unwrap();
        let (store, state) = RunStore::create(&root, &started).unwrap();
        assert_eq!(state, State::from_run_started(&started));
        assert!(store.run_dir().root().is_absolute() && store.run_dir().artifacts_path().is_dir());
        let again = RunStore::create(&root, &started).unwrap_err();
        assert!(matches!(again, StoreError::Exists { .. }), "{again}");
        names.push(started.run);
    }
    fs::create_dir(root.join("no-run")).unwrap();
    assert_eq!(list_runs(&root).unwrap(), names, "oldest first, and nothing else");
    assert_eq!(fs::read_dir(&root).unwrap().count(), 3, "no temporary folder is left");
}

#[test]
fn a_second_runner_is_locked_out_and_told_by_whom() {
    let scene = Scene::new();
    let store = scene.create();
    let run = scene.run();
    let error = RunStore::open_to_run(&run, ForcePolicy::Yes).unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }));
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    assert_eq!(lease::find_holder(&run).unwrap().pid, std::process::id());
    assert_eq!(open_to_read(&run).unwrap().state, scene.state(1), "reading needs no lock");
    drop(store);
    assert_eq!(lease::find_holder(&run), None);
    assert!(run.lock_path().is_file() && fs::read(run.lock_path()).unwrap().is_empty());
    RunStore::open_to_run(&run, ForcePolicy::No).unwrap();
}

#[test]
fn a_torn_last_line_is_cut_and_the_run_goes_on() {
    let scene = Scene::new();
    let run = scene.told(&[]);
    let whole = fs::read(run.journal_path()).unwrap();
    let before = scene.events.len() - 1;
    let last_line = whole[..whole.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
    for cut in [last_line + 1, last_line + 30, whole.len() - 2] {
        fs::write(run.journal_path(), &whole[..cut]).unwrap();
        let opened = open_to_read(&run).unwrap();
        assert_eq!(opened.state, scene.state(before));
        assert!(matches!(opened.notes[..], [OpenNote::Torn { .. }]), "{:?}", opened.notes);
        assert_eq!(fs::read(run.journal_path()).unwrap(), &whole[..cut], "reading writes nothing");
        let (mut store, state, notes) = RunStore::open_to_run(&run, ForcePolicy::No).unwrap();
        assert_eq!((state, notes), (scene.state(before), opened.notes));
        store.append(&scene.events[before..]).unwrap();
        assert_eq!(open_to_read(&run).unwrap().state, scene.whole());
    }
}

#[test]
fn a_last_line_that_lacks_only_its_end_counts() {
    let scene = Scene::new();
    let run = scene.told(&[]);
    let whole = fs::read(run.journal_path()).unwrap();
    fs::write(run.journal_path(), &whole[..whole.len() - 1]).unwrap();
    let (store, state, notes) = RunStore::open_to_run(&run, ForcePolicy::No).unwrap();
    drop(store);
    assert_eq!((state, notes), (scene.whole(), vec![]));
    assert_eq!(fs::read(run.journal_path()).unwrap(), whole);
}

#[test]
fn damage_is_refused_with_file_and_line() {
    let scene = Scene::new();
    let run = scene.told(&[]);
    let whole = fs::read_to_string(run.journal_path()).unwrap();
    let lines: Vec<_> = whole.lines().collect();
    let check = |text: String, expected: &str| {
        fs::write(run.journal_path(), text).unwrap();
        let error = RunStore::open_to_run(&run, ForcePolicy::Yes).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.to_string().contains("journal.jsonl") && error.hint().is_some());
    };
    let changed = whole.replacen("\"attempt\":1", "\"attempt\":2", 1);
    check(changed, "line 6: the checksum does not fit");
    let last = lines.len();
    let bad_end = format!("{}{}\n", &whole[..whole.len() - 3], "0}");
    check(bad_end, &format!("line {last}: the checksum"));
    check(format!("{whole}{{}}\n"), &format!("line {}: the checksum", last + 1));
    check(format!("{}X", &whole[..whole.len() - 1]), "something follows the line's end");
    let gap = [&lines[..3], &lines[4..]].concat().join("\n") + "\n";
    check(gap, "line 4: event 5 follows event 3");
    check(lines[1..].join("\n") + "\n", "line 1: the journal begins with event 2");
}

#[test]
fn a_line_of_an_epoch_that_is_over_is_inert() {
    let scene = Scene::new();
    let mut store = scene.create();
    store.append(&scene.events[1..10]).unwrap();
    drop(store);
    let run = scene.run();
    let (mut store, ..) = RunStore::open_to_run(&run, ForcePolicy::No).unwrap();
    let late = {
        let text = fs::read_to_string(run.journal_path()).unwrap();
        text.lines().last().unwrap().to_owned() + "\n"
    };
    store.append(&scene.events[10..12]).unwrap();
    store.write_checkpoint(&scene.state(12), CheckpointKind::End).unwrap();
    append(&run.journal_path(), late.as_bytes());
    store.append(&scene.events[12..20]).unwrap();
    append(&run.journal_path(), late.as_bytes());
    assert_eq!(open_to_read(&run).unwrap().state, scene.state(20));
    assert_eq!(replay_journal(&run).unwrap().state, scene.state(20));
    drop(store);
    let (mut store, state, _) = RunStore::open_to_run(&run, ForcePolicy::No).unwrap();
    assert_eq!(state, scene.state(20));
    store.append(&scene.events[20..]).unwrap();
    assert_eq!(open_to_read(&run).unwrap().state, scene.whole());
    let mut reader = JournalReader::open(&run.journal_path()).unwrap();
    let mut epochs = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        epochs.push(record.epoch);
    }
    assert_eq!((epochs[0], epochs[10], epochs[20]), (1, 2, 3));
}

/// Returns the numbers of the remaining events of a reader.
fn numbers(reader: &mut JournalReader) -> Vec<u64> {
    std::iter::from_fn(|| reader.next_record().unwrap()).map(|record| record.seq).collect()
}

#[test]
fn a_journal_that_grows_is_followed_whatever_the_pieces() {
    let scene = Scene::new();
    let run = scene.told(&[]);
    let whole = fs::read(run.journal_path()).unwrap();
    let last = u64::try_from(scene.events.len()).unwrap();
    let path = scene.root.path().join("growing.jsonl");
    for piece in [1, 2, 97, 1000, 4096, whole.len()] {
        fs::write(&path, "").unwrap();
        let mut reader = JournalReader::open(&path).unwrap();
        let mut seen = numbers(&mut reader);
        let begin = if piece == 1 { whole.len().saturating_sub(2000) } else { 0 };
        let (head, tail) = whole.split_at(begin);
        for bytes in std::iter::once(head).chain(tail.chunks(piece)) {
            append(&path, bytes);
            reader.resume_reading().unwrap();
            seen.extend(numbers(&mut reader));
        }
        assert_eq!(seen, (1..=last).collect::<Vec<_>>(), "in pieces of {piece}");
    }
}

#[test]
fn a_follower_survives_a_takeover_and_another_journal() {
    let scene = Scene::new();
    let mut store = scene.create();
    let run = scene.run();
    let mut reader = JournalReader::open(&run.journal_path()).unwrap();
    store.append(&scene.events[1..10]).unwrap();
    assert_eq!(numbers(&mut reader), (1..=10).collect::<Vec<_>>());
    drop(store);
    append(&run.journal_path(), b"{\"seq\":11,\"epoch\":1,\"t\"");
    reader.resume_reading().unwrap();
    assert!(numbers(&mut reader).is_empty());
    let (mut store, ..) = RunStore::open_to_run(&run, ForcePolicy::No).unwrap();
    store.append(&scene.events[10..12]).unwrap();
    store.write_checkpoint(&scene.state(12), CheckpointKind::End).unwrap();
    reader.resume_reading().unwrap();
    assert_eq!(numbers(&mut reader), [11, 12]);
    drop(store);
    fs::remove_file(run.journal_path()).unwrap();
    let (mut store, ..) = RunStore::open_to_run(&run, ForcePolicy::Yes).unwrap();
    store.append(&scene.events[12..14]).unwrap();
    reader.resume_reading().unwrap();
    assert_eq!(numbers(&mut reader), [13, 14]);
}

#[test]
fn without_its_journal_a_run_goes_on_only_by_force() {
    for journal in [None, Some(""), Some("first line")] {
        let scene = Scene::new();
        let run = scene.told(&[20, 30]);
        let text = fs::read_to_string(run.journal_path()).unwrap();
        match journal {
            None => fs::remove_file(run.journal_path()).unwrap(),
            Some("") => fs::write(run.journal_path(), "").unwrap(),
            Some(_) => {
                fs::write(run.journal_path(), text.lines().next().unwrap().to_owned() + "\n")
                    .unwrap();
            }
        }
        let error = RunStore::open_to_run(&run, ForcePolicy::No).unwrap_err();
        let expected =
            matches!(error, StoreError::JournalMissing { .. } | StoreError::JournalShort { .. });
        assert!(expected && error.hint().unwrap().contains("--force"), "{error}");
        let (mut store, state, notes) = RunStore::open_to_run(&run, ForcePolicy::Yes).unwrap();
        assert_eq!(state, scene.state(30));
        assert!(
            notes[0].to_string().contains("going on from the manifest of event 30"),
            "{notes:?}"
        );
        drop(store);
        assert_eq!(open_to_read(&run).unwrap().state, scene.state(30));
        (store, ..) = RunStore::open_to_run(&run, ForcePolicy::No).unwrap();
        store.append(&scene.events[30..]).unwrap();
        assert_eq!(open_to_read(&run).unwrap().state, scene.whole());
        fs::write(run.manifest_path(), "{").unwrap();
        assert_eq!(open_to_read(&run).unwrap().state, scene.whole(), "from the one before");
        drop(store);
        (store, ..) = RunStore::open_to_run(&run, ForcePolicy::No).unwrap();
        store.write_checkpoint(&scene.whole(), CheckpointKind::End).unwrap();
        assert_eq!(open_to_read(&run).unwrap().state, scene.whole());
        let manifest = fs::read_to_string(run.manifest_path()).unwrap();
        assert!(manifest.contains("\"journal_starts_at\":31,"));
    }
}

#[test]
fn a_damaged_manifest_is_passed_over_and_never_becomes_the_previous_one() {
    let scene = Scene::new();
    let run = scene.told(&[20, 30]);
    let previous = fs::read(run.previous_manifest_path()).unwrap();
    let mut damaged = fs::read(run.manifest_path()).unwrap();
    damaged[500] ^= 1;
    fs::write(run.manifest_path(), &damaged).unwrap();
    let (mut store, state, notes) = RunStore::open_to_run(&run, ForcePolicy::No).unwrap();
    assert_eq!(state, scene.whole());
    assert!(notes[0].to_string().contains("manifest.json` is damaged"), "{notes:?}");
    store.write_checkpoint(&state, CheckpointKind::End).unwrap();
    assert_eq!(fs::read(run.previous_manifest_path()).unwrap(), previous);
    let written = fs::read(run.manifest_path()).unwrap();
    store.write_checkpoint(&state, CheckpointKind::End).unwrap();
    assert_eq!(
        fs::read(run.manifest_path()).unwrap(),
        written,
        "nothing changed, nothing is written"
    );
    drop(store);
    fs::rename(run.manifest_path(), run.previous_manifest_path()).unwrap();
    let (mut store, ..) = RunStore::open_to_run(&run, ForcePolicy::No).unwrap();
    store.write_checkpoint(&state, CheckpointKind::End).unwrap();
    assert!(run.manifest_path().is_file(), "a missing one is written even if nothing changed");
    fs::remove_file(run.manifest_path()).unwrap();
    fs::remove_file(run.previous_manifest_path()).unwrap();
    assert_eq!(open_to_read(&run).unwrap().state, scene.whole(), "rebuilt from the journal");
}

#[test]
fn a_newer_manifest_is_refused_and_left_alone() {
    let scene = Scene::new();
    let run = scene.told(&[20]);
    let newer = b"{\"manifest_version\": 7, \"all\": \"different\"}\n";
    fs::write(run.manifest_path(), newer).unwrap();
    for force in [ForcePolicy::No, ForcePolicy::Yes] {
        let error = RunStore::open_to_run(&run, force).unwrap_err();
        assert!(matches!(error, StoreError::Newer { version: 7, .. }), "{error}");
        assert_eq!(fs::read(run.manifest_path()).unwrap(), newer);
    }
}

#[test]
fn opening_reads_little_and_appending_writes_little() {
    let scene = Scene::new();
    let run = scene.told(&[30, 60]);
    let manifest = fs::metadata(run.manifest_path()).unwrap().len();
    let journal = fs::metadata(run.journal_path()).unwrap().len();
    let opened = open_to_read(&run).unwrap();
    assert_eq!(opened.stats.manifest_bytes, manifest);
    assert!(opened.stats.journal_bytes_read < journal / 2, "{:?} of {journal}", opened.stats);
    assert_eq!(opened.stats.events_replayed, u64::try_from(scene.events.len() - 60).unwrap());

    let (mut store, mut state, _) = RunStore::open_to_run(&run, ForcePolicy::No).unwrap();
    let mut length = journal;
    let change = scene.events.iter().find(|e| matches!(e, Event::SettingsChanged { .. })).unwrap();
    for _ in 0..400 {
        store.append(std::slice::from_ref(change)).unwrap();
        state.apply(change).unwrap();
        store.write_checkpoint(&state, CheckpointKind::DepthClosed).unwrap();
        let longer = fs::metadata(run.journal_path()).unwrap().len();
        assert!(longer - length < 800, "{} bytes for one event", longer - length);
        length = longer;
    }
    let opened = open_to_read(&run).unwrap();
    assert_eq!(opened.state, state);
    assert!(opened.stats.journal_bytes_read < 64 * 1024 + 800, "{:?}", opened.stats);
    assert!(length > 2 * 64 * 1024, "the journal itself is much longer");
}

#[test]
fn reading_while_another_writes_sees_some_moment_of_the_run() {
    let scene = Scene::new();
    let mut store = scene.create();
    let run = scene.run();
    let states: Vec<_> = (1..=scene.events.len()).map(|end| scene.state(end)).collect();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for (state, event) in states.iter().skip(1).zip(&scene.events[1..]) {
                store.append(std::slice::from_ref(event)).unwrap();
                store.write_checkpoint(state, CheckpointKind::End).unwrap();
            }
        });
        let mut last = 0;
        while last < states.len() {
            let opened = open_to_read(&run).unwrap();
            let seq = usize::try_from(opened.seq).unwrap();
            assert!(seq >= last && opened.notes.len() < 2, "{:?}", opened.notes);
            assert_eq!(opened.state, states[seq - 1]);
            last = seq;
        }
    });
}

#[test]
fn a_directory_that_is_no_run_stays_as_it_is() {
    let root = TempDir::new().unwrap();
    let run = RunDir::new(root.path());
    let error = RunStore::open_to_run(&run, ForcePolicy::Yes).unwrap_err();
    assert!(matches!(error, StoreError::NotARun { .. }), "{error}");
    assert!(matches!(open_to_read(&run), Err(StoreError::NotARun { .. })));
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
}

fn path(text: &str) -> RunPath {
    text.parse().unwrap()
}

#[test]
fn files_are_whole_limited_and_digested() {
    let root = TempDir::new().unwrap();
    let files = RunFiles::new(RunDir::new(root.path()));
    let csv = path("eval/0001/s1/results.csv");
    files.write_file(&csv, b"a,b\n1,2\n").unwrap();
    files.write_file(&csv, b"a,b\n3,4\n").unwrap();
    assert_eq!(files.read_file(&csv, 8).unwrap(), b"a,b\n3,4\n");
    assert!(files.read_file(&csv, 7).unwrap_err().to_string().contains("longer than 7 bytes"));
    assert!(files.read_file(&path("eval/none"), 7).is_err());

    let artifact = files.import_artifact(&csv, "0001.csv").unwrap();
    assert_eq!(artifact, files.import_artifact(&csv, "0001.csv").unwrap(), "twice is the same");
    assert_eq!(artifact.path, path("artifacts/0001.csv"));
    assert_eq!(artifact.source, csv.as_str());
    let mut text = String::new();
    files.open_artifact(&artifact).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "a,b\n3,4\n");
    files.write_file(&artifact.path, b"a,b\n3,5\n").unwrap();
    let error = files.open_artifact(&artifact).err().unwrap();
    assert!(error.to_string().contains("recorded is") && error.hint.is_some(), "{error}");
    for name in ["", "../x", "a/b", ".hidden"] {
        assert!(files.import_artifact(&csv, name).is_err(), "{name}");
    }
    assert!(files.import_artifact(&path("eval/0001"), "folder").is_err());
    assert_eq!(fs::read_dir(root.path().join("artifacts")).unwrap().count(), 1);
}

#[test]
fn a_second_name_is_given_and_submissions_are_removed() {
    let root = TempDir::new().unwrap();
    let files = RunFiles::new(RunDir::new(root.path()));
    let (first, second) =
        (path("eval/0001/s1/eval_result.json"), path("eval/0001/s12/eval_result.json"));
    let stable = path("eval/0001/eval_result.json");
    files.write_file(&first, b"1").unwrap();
    files.write_file(&second, b"2").unwrap();
    files.write_file(&path("eval/0001/summary"), b"kept").unwrap();
    for (from, text) in [(&first, b"1"), (&first, b"1"), (&second, b"2")] {
        files.link_file(from, &stable).unwrap();
        assert_eq!(files.read_file(&stable, 9).unwrap(), text);
    }
    assert!(files.link_file(&path("eval/0001/s1"), &stable).is_err());
    for _ in 0..2 {
        files.remove_submissions(EvalId::FIRST).unwrap();
    }
    files.remove_submissions(EvalId::FIRST.next()).unwrap();
    let mut left: Vec<_> =
        fs::read_dir(root.path().join("eval/0001")).unwrap().collect::<Result<_, _>>().unwrap();
    left.sort_by_key(std::fs::DirEntry::file_name);
    let left: Vec<_> = left.iter().map(std::fs::DirEntry::file_name).collect();
    assert_eq!(left, ["eval_result.json", "summary"]);
    assert_eq!(files.read_file(&stable, 9).unwrap(), b"2");
}

#[cfg(unix)]
#[test]
fn a_link_is_not_imported() {
    let root = TempDir::new().unwrap();
    let files = RunFiles::new(RunDir::new(root.path()));
    files.write_file(&path("eval/0001/secret"), b"x").unwrap();
    std::os::unix::fs::symlink("secret", root.path().join("eval/0001/results.csv")).unwrap();
    std::os::unix::fs::symlink("0001", root.path().join("eval/0002")).unwrap();
    for link in ["eval/0001/results.csv", "eval/0002/secret"] {
        let error = files.import_artifact(&path(link), "x.csv").unwrap_err();
        assert!(error.to_string().contains("no regular file"), "{error}");
    }
}

#[test]
fn a_changed_artifact_is_restored_from_a_copy_that_is_what_was_recorded() {
    let root = TempDir::new().unwrap();
    let files = RunFiles::new(RunDir::new(root.path()));
    let submitted = path("eval/0007/s2/meta_config_sweep_results.csv");
    let stable = path("eval/0007/experiment/meta_config_sweep_results.csv");
    files.write_file(&submitted, b"a,b\n1,2\n").unwrap();
    let linked = files.link_file(&submitted, &stable).unwrap();
    let artifact = files.import_artifact(&stable, "e0007.csv").unwrap();
    assert_eq!(linked, artifact.sha256, "a link says what it leads to");
    let (full, all) = (root.path().join("artifacts/e0007.csv"), [artifact.clone()]);
    assert_eq!(files.find_changed_artifacts(&all).unwrap(), []);
    let is_whole = || {
        let mut text = String::new();
        files.open_artifact(&artifact).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "a,b\n1,2\n");
    };
    let must_be_found_and_restored = || {
        let before = fs::read(&full).ok();
        assert_eq!(files.find_changed_artifacts(&all).unwrap(), all);
        assert_eq!(fs::read(&full).ok(), before, "nothing is written before it is on record");
        let mut text = String::new();
        files.open_copy_of(&artifact).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "a,b\n1,2\n");
        files.restore_artifacts(&all).unwrap();
    };
    fs::write(&full, "a,b\n1,3\n").unwrap();
    must_be_found_and_restored();
    is_whole();
    fs::remove_file(&full).unwrap();
    must_be_found_and_restored();
    is_whole();
    // The stable name may be another file by now: that of a later attempt, or one that was changed
    // too.
    fs::remove_file(root.path().join(stable.as_str())).unwrap();
    files.write_file(&stable, b"a,b\n9,9\n").unwrap();
    fs::write(&full, "a,b\n1,3\n").unwrap();
    must_be_found_and_restored();
    is_whole();
    fs::write(root.path().join(submitted.as_str()), "").unwrap();
    fs::write(&full, "a,b\n1,3\n").unwrap();
    for error in [
        files.find_changed_artifacts(&all).unwrap_err(),
        files.restore_artifacts(&all).unwrap_err(),
    ] {
        assert!(error.to_string().contains("no copy in the run"), "{error}");
    }
    assert_eq!(fs::read(&full).unwrap(), b"a,b\n1,3\n", "what cannot be restored stays");
}
