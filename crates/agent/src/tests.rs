//! Tests of each layer around a scripted inner one.

mod budget;
mod waiting;

use super::bucket::AgentLimits;
use super::call_store::{CallAmount, CallStore};
use super::limit_layer::LimitLayer;
use super::question::{
    AgentLayer, AgentQuestion, DeadlineMeter, ServerFault, TryCost, TryError, TryMeter,
};
use super::record_layer::RecordLayer;
use super::retry_layer::{RetryLayer, RetryPolicy};
use super::retry_timer::{DoorObserver, QuestionWait, RetryPause, RetryTimer};
use super::role_agents::RoleAgents;
use super::servers::ServerBook;
use super::settings::{AgentKind, AgentSettings, ApiKey, ModelAgent, WireFormat};
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
use treebeam_core::id::{CodePlace, EvalId, Sha256};
use treebeam_process::CapturedOutput;
use treebeam_run::port::{AgentReply, AgentRole, Continuation, PortError, TokenUsage};
use treebeam_store::RunDir;
use treebeam_store::env_file::Secret;

/// Observer that records notes, and may stop the waiting.
#[derive(Default)]
struct Watcher {
    notes: Mutex<Vec<String>>,
    stop: AtomicBool,
}

impl DoorObserver for Watcher {
    fn on_wait(&self, _: &QuestionWait<'_>) {}
    fn on_note(&self, text: &str) {
        self.notes.lock().unwrap().push(text.to_owned());
    }
    fn wants_to_stop(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}

/// Layer that gives scripted answers, and counts them.
#[derive(Default)]
struct Script {
    lines: Mutex<VecDeque<Result<AgentReply, TryError>>>,
    asked: AtomicU32,
}

impl Script {
    fn of(lines: impl IntoIterator<Item = Result<AgentReply, TryError>>) -> Self {
        Self { lines: Mutex::new(lines.into_iter().collect()), asked: AtomicU32::new(0) }
    }
    fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }
}

impl AgentLayer for &Script {
    fn answer_question(&self, _: &AgentQuestion, _: &dyn TryMeter) -> Result<AgentReply, TryError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.lines.lock().unwrap().pop_front().expect("a further line")
    }
}

fn question(key: &str, prompt: &str) -> AgentQuestion {
    let (key, prompt) = (key.to_owned(), prompt.into());
    AgentQuestion {
        key,
        role: AgentRole::Coder,
        round: 0,
        prompt,
        continues: None,
        place: None,
        node: None,
    }
}

fn reply(text: &str) -> AgentReply {
    let usage = Some(TokenUsage { input: 10, cached: 0, output: 5 });
    let id = Some("resp-1".to_owned());
    AgentReply { usage, id, ..AgentReply::from_text(text.to_owned()) }
}

fn role_agents() -> RoleAgents {
    let value = Secret::new("sk-canary-0123".to_owned());
    let model = ModelAgent {
        wire: WireFormat::Chat,
        name: "gpt-4o".to_owned(),
        base_url: "http://127.0.0.1:9/v1".to_owned(),
        key: Some(ApiKey { variable: "CANARY_KEY".to_owned(), value }),
        temperature: None,
        max_tokens: 100,
        effort: None,
        extra: serde_json::Map::new(),
    };
    let settings = AgentSettings { line: AgentKind::Model(model), timeout: Duration::from_secs(5) };
    RoleAgents::new(BTreeMap::from([(AgentRole::Coder, settings)]))
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
    let (calls, role_agents, watcher) = (CallStore::Run(run), role_agents(), Watcher::default());
    let script = Script::of([Ok(reply("one"))]);
    let layer = RecordLayer {
        inner: &script,
        calls: &calls,
        role_agents: &role_agents,
        observer: &watcher,
    };
    let place = Some(CodePlace::Candidate(EvalId::new(3)));
    let question = AgentQuestion { place, ..question("coder-e0003-a1-r0", "p") };
    for _ in ["asked", "read again"] {
        let reply = layer.answer_question(&question, &DeadlineMeter::default()).unwrap();
        let kept = reply.kept_as.expect("a file");
        assert_eq!(kept.path.as_str(), "eval/0003/calls/coder-e0003-a1-r0.json");
        let bytes = fs::read(folder.path().join(kept.path.as_str())).unwrap();
        assert_eq!(kept.sha256, Sha256::hash_bytes(&bytes));
    }
    assert_eq!(script.asked(), 1);
}

#[test]
fn an_answer_is_kept_and_not_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let (calls, role_agents, watcher) =
        (CallStore::Folder(folder.path().join("c")), role_agents(), Watcher::default());
    let script =
        Script::of([Ok(reply("one")), Ok(reply("two")), Ok(reply("three")), Ok(reply("four"))]);
    let layer = || RecordLayer {
        inner: &script,
        calls: &calls,
        role_agents: &role_agents,
        observer: &watcher,
    };
    let ask = |prompt: &str| {
        layer().answer_question(&question("k", prompt), &DeadlineMeter::default()).unwrap().text
    };
    assert_eq!([ask("p"), ask("p"), ask("p")], ["one", "one", "one"]);
    assert_eq!(script.asked(), 1);
    // Another prompt under the same key is another question; the first answer is only set aside.
    assert_eq!([ask("q"), ask("q")], ["two", "two"]);
    assert_eq!(files(&folder.path().join("c")), ["k.json", "k.old-1"]);
    let path = folder.path().join("c/k.json");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"prompt\":\"q\"") && text.contains("resp-1"), "{text}");
    assert!(!text.contains("canary"), "{text}");
    // A changed letter of the answer is noticed, and so is half a file.
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
    let (calls, role_agents, watcher) =
        (CallStore::Folder(folder.path().join("c")), role_agents(), Watcher::default());
    let lost = || Err(TryError::Forgotten("who?".to_owned()));
    let script = Script::of([lost(), Ok(reply("one")), lost()]);
    let layer = || RecordLayer {
        inner: &script,
        calls: &calls,
        role_agents: &role_agents,
        observer: &watcher,
    };
    let ask = |from: &str| {
        let continues = Some(Continuation { id: from.to_owned(), tokens: 1, taken: None });
        match layer().answer_question(
            &AgentQuestion { continues, ..question("k", "p") },
            &DeadlineMeter::default(),
        ) {
            Ok(reply) => reply.text,
            Err(TryError::Forgotten(why)) => why,
            Err(other) => panic!("{other:?}"),
        }
    };
    assert_eq!([ask("r-1"), ask("r-1")], ["who?", "who?"]);
    assert_eq!(
        (script.asked(), files(&folder.path().join("c"))),
        (1, vec!["k.forgotten".to_owned()])
    );
    assert_eq!(calls.total_spent().unwrap(), CallAmount::default());
    // A question that continues another answer is another question.
    assert_eq!([ask("r-2"), ask("r-2")], ["one", "one"]);
    assert_eq!(script.asked(), 2);
    // Half a record counts as none.
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
    let (calls, role_agents, watcher) =
        (CallStore::Folder(file.join("below")), role_agents(), Watcher::default());
    let script = Script::of([Ok(reply("one"))]);
    let layer = RecordLayer {
        inner: &script,
        calls: &calls,
        role_agents: &role_agents,
        observer: &watcher,
    };
    let answer = layer.answer_question(&question("k", "p"), &DeadlineMeter::default());
    assert!(matches!(answer, Err(TryError::Unavailable(_))), "{answer:?}");
}

#[test]
fn what_came_in_place_of_an_answer_is_kept_and_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let (calls, role_agents, watcher) =
        (CallStore::Folder(folder.path().join("x/c")), role_agents(), Watcher::default());
    let unreadable = |raw: &[u8]| {
        let (why, raw) = ("no text".to_owned(), raw.to_vec());
        Err(TryError::Unreadable { why, raw, spent: TryCost::Unknown })
    };
    let script = Script::of([unreadable(b"\xff1"), unreadable(b"\xff2"), Ok(reply("one"))]);
    let layer = || RecordLayer {
        inner: &script,
        calls: &calls,
        role_agents: &role_agents,
        observer: &watcher,
    };
    let ask = || layer().answer_question(&question("k", "p"), &DeadlineMeter::default());
    for raw in [b"\xff1", b"\xff2"] {
        let Err(TryError::Unanswered { why, spent }) = ask() else { panic!("an answer") };
        assert_eq!((why.as_str(), spent), ("no text (kept as `x/c/k.raw`)", TryCost::Unknown));
        assert_eq!(fs::read(folder.path().join("x/c/k.raw")).unwrap(), raw);
    }
    assert_eq!(ask().unwrap().text, "one");
    assert_eq!(calls.total_spent().unwrap().tokens, ask().unwrap().usage.unwrap().total_tokens());
}

/// Timer that does not wait, but records each pause.
#[derive(Default)]
struct Naps(Mutex<Vec<Duration>>);

impl RetryTimer for &Naps {
    fn now(&self) -> Duration {
        self.0.lock().unwrap().iter().sum()
    }
    fn wait_pause(&self, pause: &RetryPause<'_>) -> Result<(), TryError> {
        self.0.lock().unwrap().push(pause.length);
        Ok(())
    }
}

fn passing(wait: Option<u64>, spent: TryCost) -> Result<AgentReply, TryError> {
    let wait = wait.map(Duration::from_secs);
    Err(TryError::Temporary { why: "oops".into(), fault: ServerFault::Answering, wait, spent })
}

/// Returns agents and a store without recorded calls.
fn nothing_recorded() -> (RoleAgents, CallStore) {
    (role_agents(), CallStore::Folder("no-calls".into()))
}

const PATIENCE: RetryPolicy = RetryPolicy {
    tries: 4,
    pause: Duration::from_secs(1),
    longest_pause: Duration::from_secs(2),
    wait: Duration::from_hours(1),
    rate_limit: Duration::ZERO,
    outage: Duration::from_mins(2),
    first_answer: Duration::ZERO,
    first_byte: None,
};

/// Layer that holds questions until enough are inside, and records the most at once.
struct Crowd {
    inside: AtomicU32,
    most: AtomicU32,
    door: Barrier,
}

impl AgentLayer for &Crowd {
    fn answer_question(&self, _: &AgentQuestion, _: &dyn TryMeter) -> Result<AgentReply, TryError> {
        let now = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        self.door.wait();
        self.inside.fetch_sub(1, Ordering::SeqCst);
        Ok(reply("yes"))
    }
}

fn limits(in_flight: u32) -> AgentLimits {
    AgentLimits { in_flight: NonZeroU32::new(in_flight).unwrap(), requests: None, tokens: None }
}

#[test]
fn no_more_than_allowed_are_inside_and_all_get_in() {
    let crowd = Crowd { inside: AtomicU32::new(0), most: AtomicU32::new(0), door: Barrier::new(3) };
    let (role_agents, watcher) = (role_agents(), Watcher::default());
    let layer = LimitLayer::new(&crowd, limits(3), &role_agents, &watcher);
    thread::scope(|scope| {
        for n in 0..12 {
            let layer = &layer;
            scope.spawn(move || {
                layer
                    .answer_question(&question(&n.to_string(), "p"), &DeadlineMeter::default())
                    .unwrap()
            });
        }
    });
    assert_eq!(crowd.most.into_inner(), 3);
}

#[test]
fn one_that_waits_for_a_slot_can_be_stopped_and_holds_nothing() {
    let (role_agents, watcher) = (role_agents(), Watcher::default());
    let script = Script::of([Ok(reply("a"))]);
    let requests = NonZeroU32::new(1);
    let one = AgentLimits { requests, ..limits(1) };
    let layer = LimitLayer::new(&script, one, &role_agents, &watcher);
    assert!(layer.answer_question(&question("a", "p"), &DeadlineMeter::default()).is_ok());
    watcher.stop.store(true, Ordering::SeqCst);
    let second = layer.answer_question(&question("b", "p"), &DeadlineMeter::default());
    assert!(matches!(second, Err(TryError::Interrupted)), "{second:?}");
    assert_eq!(script.asked(), 1);
}

#[test]
fn a_slot_comes_back_whatever_happens_inside() {
    let (role_agents, watcher) = (role_agents(), Watcher::default());
    let script = Script::of([
        Err(TryError::unanswered("no")),
        passing(None, TryCost::Nothing),
        Ok(reply("a")),
    ]);
    let layer = LimitLayer::new(&script, limits(1), &role_agents, &watcher);
    let ask = || layer.answer_question(&question("a", "p"), &DeadlineMeter::default());
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
        super::command::stderr_tail(&CapturedOutput { bytes: text.as_bytes().to_vec(), dropped: 0 })
    };
    assert_eq!(said(" \n"), " it said nothing");
    assert_eq!(said("no key\n"), " no key");
    assert_eq!(said("looking\nno prices\n\n"), "\nlooking\nno prices");
}
