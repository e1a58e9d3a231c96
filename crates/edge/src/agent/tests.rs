//! The layers one by one, each around a scripted one.

mod budget;
mod waiting;

use super::bucket::Limits;
use super::calls::{Amount, Calls};
use super::crew::Crew;
use super::limited::Limited;
use super::question::{Answer, Fault, Meter, Question, Spent, Trouble, Within};
use super::recorded::Recorded;
use super::retrying::{Patience, Retrying};
use super::servers::ServerBook;
use super::settings::{Key, Line, Model, Settings, Wire};
use super::wait::{Nap, Observer, RetryPause, Wait};
use crate::env_file::Secret;
use crate::process::Captured;
use crate::store::RunDir;
use jiff::Timestamp;
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use treebeam_core::event::BudgetKind;
use treebeam_core::id::{EvalId, Place, Sha256};
use treebeam_run::port::{Continuation, PortError, Reply, Role, Usage};

/// Sees all, and may want to stop.
#[derive(Default)]
struct Watcher {
    notes: Mutex<Vec<String>>,
    stop: AtomicBool,
}

impl Observer for Watcher {
    fn waits(&self, _: &Wait<'_>) {}
    fn note(&self, text: &str) {
        self.notes.lock().unwrap().push(text.to_owned());
    }
    fn wants_to_stop(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}

/// Answers what is written down for it, and counts.
#[derive(Default)]
struct Script {
    lines: Mutex<VecDeque<Result<Reply, Trouble>>>,
    asked: AtomicU32,
}

impl Script {
    fn of(lines: impl IntoIterator<Item = Result<Reply, Trouble>>) -> Self {
        Self { lines: Mutex::new(lines.into_iter().collect()), asked: AtomicU32::new(0) }
    }
    fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Answer for &Script {
    fn answer(&self, _: &Question, _: &dyn Meter) -> Result<Reply, Trouble> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.lines.lock().unwrap().pop_front().expect("a further line")
    }
}

fn question(key: &str, prompt: &str) -> Question {
    let (key, prompt) = (key.to_owned(), prompt.into());
    Question { key, role: Role::Coder, round: 0, prompt, continues: None, place: None, node: None }
}

fn reply(text: &str) -> Reply {
    let usage = Some(Usage { input: 10, cached: 0, output: 5 });
    let id = Some("resp-1".to_owned());
    Reply { usage, id, ..Reply::of(text.to_owned()) }
}

fn crew() -> Crew {
    let value = Secret::new("sk-canary-0123".to_owned());
    let model = Model {
        wire: Wire::Chat,
        name: "gpt-4o".to_owned(),
        base_url: "http://127.0.0.1:9/v1".to_owned(),
        key: Some(Key { variable: "CANARY_KEY".to_owned(), value }),
        temperature: None,
        max_tokens: 100,
        effort: None,
        extra: serde_json::Map::new(),
    };
    let settings = Settings { line: Line::Model(model), timeout: Duration::from_secs(5) };
    Crew::new(BTreeMap::from([(Role::Coder, settings)]))
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != "lock");
    names.sort();
    names
}

#[test]
fn an_answer_in_a_run_names_its_file_and_the_digest_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = RunDir::new(folder.path());
    let (calls, crew, watcher) = (Calls::Run(run), crew(), Watcher::default());
    let script = Script::of([Ok(reply("one"))]);
    let layer = Recorded { inner: &script, calls: &calls, crew: &crew, observer: &watcher };
    let place = Some(Place::Candidate(EvalId::new(3)));
    let question = Question { place, ..question("coder-e0003-a1-r0", "p") };
    for _ in ["asked", "read again"] {
        let reply = layer.answer(&question, &Within::default()).unwrap();
        let kept = reply.kept_as.expect("a file");
        assert_eq!(kept.path.as_str(), "eval/0003/calls/coder-e0003-a1-r0.json");
        let bytes = fs::read(folder.path().join(kept.path.as_str())).unwrap();
        assert_eq!(kept.sha256, Sha256::of(&bytes));
    }
    assert_eq!(script.asked(), 1);
}

#[test]
fn an_answer_is_kept_and_not_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let (calls, crew, watcher) =
        (Calls::Folder(folder.path().join("c")), crew(), Watcher::default());
    let script =
        Script::of([Ok(reply("one")), Ok(reply("two")), Ok(reply("three")), Ok(reply("four"))]);
    let layer = || Recorded { inner: &script, calls: &calls, crew: &crew, observer: &watcher };
    let ask =
        |prompt: &str| layer().answer(&question("k", prompt), &Within::default()).unwrap().text;
    assert_eq!([ask("p"), ask("p"), ask("p")], ["one", "one", "one"]);
    assert_eq!(script.asked(), 1);
    // Another prompt under the same key is another question; the first answer is only put aside.
    assert_eq!([ask("q"), ask("q")], ["two", "two"]);
    assert_eq!(files(&folder.path().join("c")), ["k.json", "k.old-1"]);
    let path = folder.path().join("c/k.json");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"prompt\":\"q\"") && text.contains("resp-1"), "{text}");
    assert!(!text.contains("canary"), "{text}");
    // A flipped letter of the answer is seen, and so is half a file.
    fs::write(&path, text.replace("two", "twu")).unwrap();
    assert_eq!(ask("q"), "three");
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert_eq!([ask("q"), ask("q")], ["four", "four"]);
    assert_eq!((script.asked(), watcher.notes.lock().unwrap().len()), (4, 2));
    assert_eq!(files(&folder.path().join("c")), ["k.json", "k.old-1", "k.old-2", "k.old-3"]);
}

#[test]
fn what_is_known_to_be_forgotten_is_not_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let (calls, crew, watcher) =
        (Calls::Folder(folder.path().join("c")), crew(), Watcher::default());
    let lost = || Err(Trouble::Forgotten("who?".to_owned()));
    let script = Script::of([lost(), Ok(reply("one")), lost()]);
    let layer = || Recorded { inner: &script, calls: &calls, crew: &crew, observer: &watcher };
    let ask = |from: &str| {
        let continues = Some(Continuation { id: from.to_owned(), tokens: 1, taken: None });
        match layer().answer(&Question { continues, ..question("k", "p") }, &Within::default()) {
            Ok(reply) => reply.text,
            Err(Trouble::Forgotten(why)) => why,
            Err(other) => panic!("{other:?}"),
        }
    };
    assert_eq!([ask("r-1"), ask("r-1")], ["who?", "who?"]);
    assert_eq!(
        (script.asked(), files(&folder.path().join("c"))),
        (1, vec!["k.forgotten".to_owned()])
    );
    assert_eq!(calls.spent().unwrap(), Amount::default());
    // What goes on from something else is another question.
    assert_eq!([ask("r-2"), ask("r-2")], ["one", "one"]);
    assert_eq!(script.asked(), 2);
    // Half a note is none.
    fs::remove_file(folder.path().join("c/k.json")).unwrap();
    fs::write(folder.path().join("c/k.forgotten"), "{\"why\"").unwrap();
    assert_eq!([ask("r-1"), ask("r-1")], ["who?", "who?"]);
    assert_eq!(script.asked(), 3);
}

#[test]
fn an_answer_that_cannot_be_kept_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let (calls, crew, watcher) = (Calls::Folder(file.join("below")), crew(), Watcher::default());
    let script = Script::of([Ok(reply("one"))]);
    let layer = Recorded { inner: &script, calls: &calls, crew: &crew, observer: &watcher };
    let answer = layer.answer(&question("k", "p"), &Within::default());
    assert!(matches!(answer, Err(Trouble::Unavailable(_))), "{answer:?}");
}

#[test]
fn what_came_in_place_of_an_answer_is_kept_and_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let (calls, crew, watcher) =
        (Calls::Folder(folder.path().join("x/c")), crew(), Watcher::default());
    let unreadable = |raw: &[u8]| {
        let (why, raw) = ("no text".to_owned(), raw.to_vec());
        Err(Trouble::Unreadable { why, raw, spent: Spent::Perhaps })
    };
    let script = Script::of([unreadable(b"\xff1"), unreadable(b"\xff2"), Ok(reply("one"))]);
    let layer = || Recorded { inner: &script, calls: &calls, crew: &crew, observer: &watcher };
    let ask = || layer().answer(&question("k", "p"), &Within::default());
    for raw in [b"\xff1", b"\xff2"] {
        let Err(Trouble::Unanswered { why, spent }) = ask() else { panic!("an answer") };
        assert_eq!((why.as_str(), spent), ("no text (kept as `x/c/k.raw`)", Spent::Perhaps));
        assert_eq!(fs::read(folder.path().join("x/c/k.raw")).unwrap(), raw);
    }
    assert_eq!(ask().unwrap().text, "one");
    assert_eq!(calls.spent().unwrap().tokens, ask().unwrap().usage.unwrap().total());
}

/// Does not wait, and writes down for how long it would have.
#[derive(Default)]
struct Naps(Mutex<Vec<Duration>>);

impl Nap for &Naps {
    fn now(&self) -> Duration {
        self.0.lock().unwrap().iter().sum()
    }
    fn nap(&self, pause: &RetryPause<'_>) -> Result<(), Trouble> {
        self.0.lock().unwrap().push(pause.length);
        Ok(())
    }
}

fn passing(wait: Option<u64>, spent: Spent) -> Result<Reply, Trouble> {
    let wait = wait.map(Duration::from_secs);
    Err(Trouble::Passing { why: "oops".into(), fault: Fault::Answering, wait, spent })
}

/// Agents, and a ledger without calls of theirs.
fn nothing_recorded() -> (Crew, Calls) {
    (crew(), Calls::Folder("no-calls".into()))
}

const PATIENCE: Patience = Patience {
    tries: 4,
    pause: Duration::from_secs(1),
    longest_pause: Duration::from_secs(2),
    wait: Duration::from_hours(1),
    rate_limit: Duration::ZERO,
    outage: Duration::from_mins(2),
    first_answer: Duration::ZERO,
    first_byte: None,
};

/// Lets nobody out before enough are in, and remembers how many there were at once.
struct Crowd {
    inside: AtomicU32,
    most: AtomicU32,
    door: Barrier,
}

impl Answer for &Crowd {
    fn answer(&self, _: &Question, _: &dyn Meter) -> Result<Reply, Trouble> {
        let now = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        self.door.wait();
        self.inside.fetch_sub(1, Ordering::SeqCst);
        Ok(reply("yes"))
    }
}

fn limits(in_flight: u32) -> Limits {
    Limits { in_flight: NonZeroU32::new(in_flight).unwrap(), requests: None, tokens: None }
}

#[test]
fn no_more_than_allowed_are_inside_and_all_get_in() {
    let crowd = Crowd { inside: AtomicU32::new(0), most: AtomicU32::new(0), door: Barrier::new(3) };
    let (crew, watcher) = (crew(), Watcher::default());
    let layer = Limited::new(&crowd, limits(3), &crew, &watcher);
    thread::scope(|scope| {
        for n in 0..12 {
            let layer = &layer;
            scope.spawn(move || {
                layer.answer(&question(&n.to_string(), "p"), &Within::default()).unwrap()
            });
        }
    });
    assert_eq!(crowd.most.into_inner(), 3);
}

#[test]
fn one_that_waits_for_a_slot_can_be_stopped_and_holds_nothing() {
    let (crew, watcher) = (crew(), Watcher::default());
    let script = Script::of([Ok(reply("a"))]);
    let requests = NonZeroU32::new(1);
    let one = Limits { requests, ..limits(1) };
    let layer = Limited::new(&script, one, &crew, &watcher);
    assert!(layer.answer(&question("a", "p"), &Within::default()).is_ok());
    watcher.stop.store(true, Ordering::SeqCst);
    let second = layer.answer(&question("b", "p"), &Within::default());
    assert!(matches!(second, Err(Trouble::Interrupted)), "{second:?}");
    assert_eq!(script.asked(), 1);
}

#[test]
fn a_slot_comes_back_whatever_happens_inside() {
    let (crew, watcher) = (crew(), Watcher::default());
    let script =
        Script::of([Err(Trouble::unanswered("no")), passing(None, Spent::Nothing), Ok(reply("a"))]);
    let layer = Limited::new(&script, limits(1), &crew, &watcher);
    let ask = || layer.answer(&question("a", "p"), &Within::default());
    assert_eq!([ask().is_ok(), ask().is_ok(), ask().is_ok()], [false, false, true]);
    let broken = thread::scope(|scope| scope.spawn(ask).join().is_err());
    assert!(broken, "the script is over");
    script.lines.clear_poison();
    script.lines.lock().unwrap().push_back(Ok(reply("b")));
    assert!(ask().is_ok());
}

#[test]
fn the_end_of_several_lines_of_complaint_stands_on_lines_of_its_own() {
    let said = |text: &str| {
        super::command::tail(&Captured { bytes: text.as_bytes().to_vec(), dropped: 0 })
    };
    assert_eq!(said(" \n"), " it said nothing");
    assert_eq!(said("no key\n"), " no key");
    assert_eq!(said("looking\nno prices\n\n"), "\nlooking\nno prices");
}
