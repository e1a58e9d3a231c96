//! The layers one by one, each around a scripted one.

mod budget;

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

fn too_many(wait: Option<u64>) -> Result<Reply, Trouble> {
    Err(Trouble::TooMany { why: "slow down".into(), wait: wait.map(Duration::from_secs) })
}

/// Counts the further tries that cost something.
#[derive(Default)]
struct Counter(AtomicU32);

impl Meter for Counter {
    fn another_try(&self) -> Result<(), Trouble> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

const PATIENCE: Patience = Patience {
    tries: 4,
    pause: Duration::from_secs(1),
    longest_pause: Duration::from_secs(2),
    wait: Duration::from_hours(1),
    rate_limit: Duration::ZERO,
    outage: Duration::from_mins(2),
    first_answer: Duration::ZERO,
};

/// Agents, and no calls of theirs.
fn nothing_recorded() -> (Crew, Calls) {
    (crew(), Calls::Folder("no-calls".into()))
}

/// What became of a question: the answer in words, how often it was asked, how long was waited, how many tries were paid for.
fn retried(script: Vec<Result<Reply, Trouble>>) -> (String, u32, Vec<Duration>, u32) {
    let (script, naps, counter) = (Script::of(script), Naps::default(), Counter::default());
    let (crew, calls) = nothing_recorded();
    let layer = Retrying::new(&script, &naps, PATIENCE, ServerBook::new(&crew, &calls), 7);
    let said = match layer.answer(&question("k", "p"), &counter) {
        Ok(reply) => reply.text,
        Err(Trouble::Unanswered { why, .. }) => format!("unanswered: {why}"),
        Err(Trouble::Unavailable(error)) => format!("unavailable: {}", error.what),
        Err(other) => format!("{other:?}"),
    };
    let naps = naps.0.into_inner().unwrap();
    (said, script.asked(), naps, counter.0.into_inner())
}

#[test]
fn what_may_go_away_is_tried_again_with_pauses_that_grow() {
    use Spent::{Nothing, Perhaps};
    let (said, asked, naps, paid) = retried(vec![
        passing(None, Nothing),
        passing(None, Perhaps),
        passing(None, Nothing),
        Ok(reply("yes")),
    ]);
    assert_eq!((said.as_str(), asked, paid), ("yes", 4, 1));
    for (nap, most) in naps.iter().zip([1, 2, 2]) {
        let most = Duration::from_secs(most);
        assert!(*nap >= most / 2 && *nap <= most, "{naps:?}");
    }
    // A stated wait is kept, and never cut short by jitter.
    let (_, _, naps, _) = retried(vec![passing(Some(30), Nothing), Ok(reply("yes"))]);
    assert!(naps[0] >= Duration::from_secs(30) && naps[0] <= Duration::from_secs(31), "{naps:?}");
    let (said, asked, ..) = retried((0..4).map(|_| passing(None, Nothing)).collect());
    assert_eq!((said.as_str(), asked), ("unanswered: oops, 4 times", 4));
    // Who has never answered may be set wrong, and is not waited for.
    for fault in [Fault::Unreachable, Fault::Overloaded] {
        let (said, asked, ..) = retried((0..4).map(|_| gone(fault)).collect());
        assert!(said.starts_with("unavailable: refused, 4 times in "), "{said}");
        assert_eq!(asked, 4);
    }
}

fn gone(fault: Fault) -> Result<Reply, Trouble> {
    passing_as(fault, None)
}

fn gone_for(seconds: u64) -> Result<Reply, Trouble> {
    passing_as(Fault::Overloaded, Some(seconds))
}

fn passing_as(fault: Fault, seconds: Option<u64>) -> Result<Reply, Trouble> {
    let (why, wait) = ("refused".into(), seconds.map(Duration::from_secs));
    Err(Trouble::Passing { why, fault, wait, spent: Spent::Nothing })
}

#[test]
fn who_has_answered_before_is_waited_for_while_it_is_gone() {
    use Fault::{Answering, Overloaded, Unreachable};
    let after_an_answer = |faults: Vec<Fault>| {
        let script = std::iter::once(Ok(reply("first"))).chain(faults.into_iter().map(gone));
        let script = Script::of(script.chain([Ok(reply("back"))]).collect::<Vec<_>>());
        let naps = Naps::default();
        let (crew, calls) = nothing_recorded();
        let layer = Retrying::new(&script, &naps, PATIENCE, ServerBook::new(&crew, &calls), 7);
        assert_eq!(layer.answer(&question("a", "p"), &Within::default()).unwrap().text, "first");
        let second = layer.answer(&question("b", "p"), &Within::default()).map(|reply| reply.text);
        (second, naps.0.into_inner().unwrap())
    };
    for fault in [Unreachable, Overloaded] {
        let (said, naps) = after_an_answer(vec![fault; 50]);
        assert_eq!(said.expect("an answer"), "back");
        assert_eq!(naps.len(), 50);
        // Not for ever.
        let (said, naps) = after_an_answer(vec![fault; 500]);
        assert!(matches!(&said, Err(Trouble::Unavailable(_))), "{said:?}");
        let waited: Duration = naps.iter().sum();
        let slack = PATIENCE.longest_pause;
        assert!(waited >= PATIENCE.outage && waited <= PATIENCE.outage + slack, "{waited:?}");
    }
    let (said, naps) = after_an_answer(vec![Answering; 50]);
    assert!(matches!(&said, Err(Trouble::Unanswered { .. })), "{said:?}");
    assert_eq!(naps.len(), 3);
}

#[test]
fn a_pause_of_nothing_is_no_pause_and_ends_by_the_clock() {
    for trouble in [too_many, |wait: Option<u64>| passing_as(Fault::Overloaded, wait)] {
        // More than a server could answer in the time that there is.
        let (said, asked, naps, _) = retried((0..500).map(|_| trouble(Some(0))).collect());
        assert!(said.starts_with("unavailable: "), "{said}");
        assert!(asked < 8, "{asked}");
        for (nap, least) in naps.iter().zip([500, 1000, 1000, 1000]) {
            assert!(*nap >= Duration::from_millis(least), "{naps:?}");
        }
    }
}

#[test]
fn a_stated_wait_is_honoured_beyond_the_patience_for_an_outage() {
    let minutes = |n: u64| gone_for(n * 60);
    // Patience for outages is 2 minutes at most here, and an hour is all that is waited.
    let script = vec![minutes(20), minutes(20), Ok(reply("yes"))];
    assert_eq!(retried(script).0, "yes");
    let (said, asked, naps, _) = retried((0..9).map(|_| minutes(25)).collect());
    assert!(said.starts_with("unavailable: "), "{said}");
    let waited: Duration = naps.iter().sum();
    assert_eq!((asked, waited.as_secs()), (4, 3600), "{naps:?}");
}

#[test]
fn what_a_server_answered_one_role_counts_for_the_other_and_after_a_resume() {
    let line = |role: Role| crew().settings(role).cloned();
    let coder = line(Role::Coder).unwrap();
    let crew = Crew::new(BTreeMap::from([
        (Role::Coder, coder.clone()),
        (Role::Coordinator, coder.clone()),
        (Role::Ideas, {
            let Line::Model(model) = coder.line.clone() else { panic!("a model") };
            let base_url = "http://127.0.0.1:8/v1".to_owned();
            Settings { line: Line::Model(Model { base_url, ..model }), ..coder }
        }),
    ]));
    let folder = tempfile::tempdir().unwrap();
    let calls = Calls::Run(RunDir::new(folder.path()));
    let of = |role: Role, key: &str| Question { role, ..question(key, "p") };
    // After a first answer to the coder 60 s of an outage are nothing to the coordinator; the other server has none.
    let ask = |lines: Vec<Result<Reply, Trouble>>, questions: [Question; 2]| {
        let (script, naps) = (Script::of(lines), Naps::default());
        let layer = Retrying::new(&script, &naps, PATIENCE, ServerBook::new(&crew, &calls), 7);
        questions.map(|question| layer.answer(&question, &Within::default()).is_ok())
    };
    let outage = |n: usize| (0..n).map(|_| gone(Fault::Overloaded));
    let first = || std::iter::once(Ok(reply("first")));
    let script = || first().chain(outage(20)).chain(first()).collect::<Vec<_>>();
    assert_eq!(ask(script(), [of(Role::Coder, "a"), of(Role::Coordinator, "b")]), [true, true]);
    assert_eq!(ask(script(), [of(Role::Coder, "a"), of(Role::Ideas, "b")]), [true, false]);
    // Nothing is recorded: another process of the run does not know of the answer. With its record it does.
    let script = || outage(20).chain([Ok(reply("one")), Ok(reply("two"))]).collect::<Vec<_>>();
    let twice = || [of(Role::Coordinator, "b"), of(Role::Coder, "c")];
    assert!(!ask(script(), twice())[0]);
    let settings = crew.settings(Role::Coder).unwrap();
    let kept = calls.keep(&of(Role::Coder, "a"), settings, &reply("first"), Timestamp::UNIX_EPOCH);
    kept.unwrap();
    assert_eq!(ask(script(), twice()), [true, true]);
}

#[test]
fn an_outage_at_the_first_question_of_a_run_does_not_end_it() {
    let (crew, calls) = nothing_recorded();
    let ask = |patience: Patience, failures: usize| {
        let lines = (0..failures).map(|_| gone(Fault::Overloaded)).chain([Ok(reply("yes"))]);
        let (script, naps) = (Script::of(lines), Naps::default());
        let layer = Retrying::new(&script, &naps, patience, ServerBook::new(&crew, &calls), 7);
        let answer = layer.answer(&question("k", "p"), &Within::default()).is_ok();
        (answer, (&naps).now().as_secs())
    };
    let (answer, waited) = ask(Patience::OVERNIGHT, 20);
    assert!(answer && waited > 60, "{waited}");
    let (answer, waited) = ask(Patience::OVERNIGHT, 500);
    assert!(!answer && (1800..1860).contains(&waited), "{waited}");
    let (answer, waited) = ask(Patience::OVERNIGHT.with_outage(Duration::from_mins(3)), 500);
    assert!(!answer && (180..240).contains(&waited), "{waited}");
    let (answer, waited) = ask(Patience::BRIEF, 500);
    assert!(!answer && waited < 5, "{waited}");
}

#[test]
fn a_server_that_is_given_up_is_given_up_for_all() {
    let (crew, calls) = nothing_recorded();
    let script = Script::of((0..5).map(|_| gone(Fault::Unreachable)).collect::<Vec<_>>());
    let naps = Naps::default();
    let layer = Retrying::new(&script, &naps, PATIENCE, ServerBook::new(&crew, &calls), 7);
    for (key, asked) in [("a", 4), ("b", 5)] {
        assert!(layer.answer(&question(key, "p"), &Within::default()).is_err());
        assert_eq!(script.asked(), asked);
    }
}

#[test]
fn a_rate_limit_is_waited_for_and_does_not_fail_the_question() {
    let mut script: Vec<_> = (0..20).map(|_| too_many(Some(60))).collect();
    script.push(Ok(reply("yes")));
    let (said, asked, naps, _) = retried(script);
    assert_eq!((said.as_str(), asked), ("yes", 21));
    assert!(naps.iter().all(|nap| *nap >= Duration::from_mins(1)), "{naps:?}");
    // An absurd value is cut, and after that nobody waits any longer.
    let (said, asked, naps, _) = retried(vec![too_many(Some(u64::MAX / 2)), too_many(Some(1))]);
    assert!(said.starts_with("unavailable: the agent still takes no questions after 36"), "{said}");
    assert_eq!((asked, naps.len()), (2, 1));
    assert!(naps[0] <= PATIENCE.wait + Duration::from_secs(1), "{naps:?}");
}

#[test]
fn what_is_permanent_is_not_tried_again() {
    let unavailable = || Err(PortError::new("no key").into());
    for trouble in [
        Err(Trouble::unanswered("too long")),
        Err(Trouble::Unreadable { why: "?".into(), raw: vec![255], spent: Spent::Nothing }),
        Err(Trouble::Forgotten("who".into())),
        Err(Trouble::OverBudget { budget: BudgetKind::Cost, why: "much".into() }),
        Err(Trouble::OutOfTime { why: "late".into(), spent: Spent::Nothing }),
        Err(Trouble::Interrupted),
        unavailable(),
    ] {
        let (said, asked, naps, paid) = retried(vec![trouble]);
        assert_eq!((asked, naps.len(), paid), (1, 0, 0), "{said}");
    }
}

/// Takes so many seconds for each try, and answers the last.
struct Slow {
    seconds: Mutex<VecDeque<u64>>,
    left: Mutex<Vec<Option<Duration>>>,
}

impl Answer for &Slow {
    fn answer(&self, _: &Question, meter: &dyn Meter) -> Result<Reply, Trouble> {
        self.left.lock().unwrap().push(meter.left());
        let mut seconds = self.seconds.lock().unwrap();
        meter.tried(Duration::from_secs(seconds.pop_front().unwrap()));
        if seconds.is_empty() { Ok(reply("yes")) } else { passing(None, Spent::Nothing) }
    }
}

#[test]
fn an_answer_took_what_its_tries_took_and_none_has_more_than_is_left() {
    let slow = Slow { seconds: Mutex::new([3, 4, 5].into()), left: Mutex::default() };
    let naps = Naps::default();
    let folder = tempfile::tempdir().unwrap();
    let (calls, crew, watcher) =
        (Calls::Folder(folder.path().join("c")), crew(), Watcher::default());
    let layer = Retrying::new(&slow, &naps, PATIENCE, ServerBook::new(&crew, &calls), 7);
    let layer = Recorded { inner: layer, calls: &calls, crew: &crew, observer: &watcher };
    let within = Within { tries: Some(Duration::from_secs(10)), end: None };
    let first = layer.answer(&question("k", "p"), &within).unwrap();
    assert_eq!(first.millis, Some(12_000), "pauses do not count");
    let left = slow.left.lock().unwrap().clone();
    assert_eq!(left, [10, 7, 3].map(|seconds| Some(Duration::from_secs(seconds))));
    let bill = first.bill();
    assert_eq!((bill.calls, bill.calls_without_price, bill.usage.total()), (1, 1, 15));
    // From disk it took as long, however little is left.
    let again = layer
        .answer(&question("k", "p"), &Within { tries: Some(Duration::ZERO), end: None })
        .unwrap();
    assert_eq!(again, first);
}

#[test]
fn a_question_that_waits_is_not_asked_after_the_end() {
    let (crew, calls) = nothing_recorded();
    let servers = || ServerBook::new(&crew, &calls);
    for trouble in [too_many(Some(60)), passing(Some(60), Spent::Nothing)] {
        let (script, naps) = (Script::of(vec![trouble, Ok(reply("too late"))]), Naps::default());
        let layer = Retrying::new(&script, &naps, PATIENCE, servers(), 7);
        let end = Instant::now().checked_add(Duration::from_secs(20));
        let answer = layer.answer(&question("k", "p"), &Within { tries: None, end });
        let spent = Spent::Nothing;
        assert!(
            matches!(answer, Err(Trouble::OutOfTime { spent: found, .. }) if found == spent),
            "{answer:?}"
        );
        let [nap] = naps.0.lock().unwrap()[..] else { panic!("one nap") };
        assert!((15..=20).contains(&nap.as_secs()), "until the end, not longer: {nap:?}");
    }
    // Where the pause is over before, it is asked again.
    let (script, naps) = (Script::of(vec![too_many(Some(5)), Ok(reply("yes"))]), Naps::default());
    let layer = Retrying::new(&script, &naps, PATIENCE, servers(), 7);
    let end = Instant::now().checked_add(Duration::from_mins(1));
    assert_eq!(
        layer.answer(&question("k", "p"), &Within { tries: None, end }).unwrap().text,
        "yes"
    );
}

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
