//! A process asks a model a hundred questions, several at once, and is killed at random moments. No
//! stored answer is asked for again, and a kill costs no more than the calls in flight. The process
//! is this test binary, which asks if a variable names the server.

#![cfg(unix)]
#![cfg(test)]

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng as _;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use treebeam_agent::bucket::AgentLimits;
use treebeam_agent::budget_layer::Budget;
use treebeam_agent::call_store::CallStore;
use treebeam_agent::command::AgentWorkspace;
use treebeam_agent::price::ModelPrices;
use treebeam_agent::question::AgentQuestion;
use treebeam_agent::retry_layer::RetryPolicy;
use treebeam_agent::retry_timer::{DoorObserver, QuestionWait};
use treebeam_agent::role_agents::RoleAgents;
use treebeam_agent::settings::{AgentKind, AgentSettings, ModelAgent, WireFormat};
use treebeam_agent::{AgentDoor, DoorPlan};
use treebeam_run::port::AgentRole;
use treebeam_testkit::program::{Signal, Site};
use treebeam_testkit::repo::TempRepo;
use treebeam_testkit::server::{Act, Hit, Server};

const CALLS: u32 = 100;
const AT_ONCE: u32 = 8;
const PATIENCE: Duration = Duration::from_mins(2);

fn kills() -> usize {
    if std::env::var_os("TREEBEAM_CAMPAIGN").is_some() { 2_000 } else { 40 }
}

struct Nobody;

impl DoorObserver for Nobody {
    fn on_wait(&self, _: &QuestionWait<'_>) {}
    fn on_note(&self, _: &str) {}
    fn wants_to_stop(&self) -> bool {
        false
    }
}

/// Returns a plan whose requests name the start of the process.
fn plan(url: &str, folder: &Path, start: &str) -> DoorPlan {
    let model = ModelAgent {
        wire: WireFormat::Chat,
        name: "m-1".to_owned(),
        base_url: url.to_owned(),
        key: None,
        temperature: None,
        max_tokens: 50,
        effort: None,
        extra: Map::from_iter([("start".to_owned(), json!(start))]),
    };
    let settings = AgentSettings { line: AgentKind::Model(model), timeout: PATIENCE };
    let in_flight = NonZeroU32::new(AT_ONCE).expect("not zero");
    DoorPlan {
        role_agents: RoleAgents::new(BTreeMap::from([(AgentRole::Coder, settings)])),
        prices: ModelPrices::default(),
        budget: Budget { tokens: Some(10_000_000), cost: None },
        limits: AgentLimits { in_flight, requests: None, tokens: None },
        patience: RetryPolicy::ATTENDED_COMMAND,
        calls: CallStore::Folder(folder.join("calls")),
        replays: None,
        surroundings: AgentWorkspace::Folder(folder.to_owned()),
    }
}

fn question(number: u32) -> AgentQuestion {
    let (key, prompt) = (format!("q-{number}"), format!("q-{number}"));
    AgentQuestion {
        key,
        role: AgentRole::Coder,
        round: 0,
        prompt: prompt.into(),
        continues: None,
        place: None,
        node: None,
    }
}

/// The process that is killed.
#[test]
#[ignore = "started by the other test, with somewhere to ask"]
fn asks_a_hundred_questions() {
    let variable = |name| std::env::var(name).ok();
    let (Some(url), Some(folder)) = (variable("URL"), variable("FOLDER")) else { return };
    let plan = plan(&url, Path::new(&folder), &variable("START").expect("a number"));
    let door = AgentDoor::open(&plan, &Nobody).expect("a door");
    let next = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= CALLS {
                        return;
                    }
                    let reply = door.answer_question(&question(number)).expect("an answer");
                    assert_eq!(reply.text, format!("You said: q-{number}"));
                }
            });
        }
    });
}

/// Answers after a pause of varying length.
fn answer(hit: &Hit) -> Vec<Act> {
    let said = format!("You said: {}", asked(hit).1);
    let answer = json!({
        "id": "r", "choices": [{"message": {"content": said}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    });
    let pause = Duration::from_millis(u64::try_from(hit.number * 7 % 12).unwrap_or(0));
    [vec![Act::Pause(pause)], Act::answer(200, &[], &answer.to_string())].concat()
}

/// Returns the start of the process and the question of a request.
fn asked(hit: &Hit) -> (usize, String) {
    let body: Value = serde_json::from_str(&hit.body).expect("a request in JSON");
    let start = body["start"].as_str().and_then(|start| start.parse().ok()).expect("a start");
    (start, body["messages"][0]["content"].as_str().expect("a question").to_owned())
}

fn recorded(folder: &Path) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(folder.join("calls")) else { return BTreeSet::new() };
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string());
    let names = names.map(|name| name.expect("a plain name"));
    names.filter_map(|name| name.strip_suffix(".json").map(str::to_owned)).collect()
}

/// Kills the process at each start until all calls are answered. Returns the files after each kill.
fn killed_again_and_again(
    luck: &mut Pcg64Mcg,
    server: &Server,
    folder: &Path,
) -> Vec<BTreeSet<String>> {
    let program = std::env::current_exe().expect("this program");
    let site = Site::from_repo(TempRepo::empty().expect("a folder"), &program.to_string_lossy());
    let mut after = Vec::new();
    loop {
        let start = after.len();
        let values = [server.url(), folder.to_string_lossy().into_owned(), start.to_string()];
        let names = ["URL", "FOLDER", "START"].map(OsString::from);
        let variables = names.into_iter().zip(values.map(OsString::from)).collect();
        let words = ["--exact", "asks_a_hundred_questions", "--ignored", "--nocapture"];
        let mut call = site.begin_with(variables, &words);
        let enough = usize::try_from(1 + luck.next_u32() % 20).unwrap_or(1);
        let begun = Instant::now();
        let hits = |hit: &Hit| asked(hit).0 == start;
        while server.hits().iter().filter(|hit| hits(hit)).count() < enough && call.goes_on() {
            assert!(begun.elapsed() < PATIENCE, "it hangs");
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(u64::from(luck.next_u32() % 10)));
        if !call.goes_on() {
            let _ = call.wait().exits(0);
            return after;
        }
        call.signal(Signal::Kill);
        drop(call.wait());
        after.push(recorded(folder));
    }
}

#[test]
fn killed_amid_a_hundred_calls_nothing_on_disk_is_asked_for_again() {
    let mut luck = Pcg64Mcg::new(17);
    let (mut killed, mut lost, mut most) = (0, 0, 0);
    while killed < kills() {
        let folder = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("a folder");
        let server = Server::start(answer);
        let after = killed_again_and_again(&mut luck, &server, folder.path());
        let hits: Vec<(usize, String)> = server.hits().iter().map(asked).collect();
        assert_eq!(recorded(folder.path()).len(), usize::try_from(CALLS).unwrap_or(0));
        for (start, on_disk) in after.iter().enumerate() {
            let again = hits.iter().find(|(later, key)| *later > start && on_disk.contains(key));
            assert_eq!(again, None, "its answer was on disk after kill {start}");
            let unheard = hits.iter().filter(|(of, key)| *of == start && !on_disk.contains(key));
            let unheard = unheard.count();
            assert!(unheard <= usize::try_from(AT_ONCE).unwrap_or(0), "{unheard} at kill {start}");
            most = most.max(unheard);
        }
        killed += after.len();
        lost += hits.len() - usize::try_from(CALLS).unwrap_or(0);
    }
    println!(
        "{killed} kills: {lost} calls repeated, at most {most} lost at once, 0 of those on disk"
    );
    assert!(lost > 0, "no kill came while a call was under way");
}
