//! aimock imitates five providers: good answers are read, faults are retried or reported, and
//! permanent errors are not retried. Its Ollama always reports complete answers without tokens, so
//! that those cases are missing here.

use crate::door::{Asker, BINARY, Five, VARIABLE, WIRES};
use serde_json::{Map, Value, json};
use std::thread;
use std::time::Duration;
use treebeam_agent::settings::WireFormat;
use treebeam_run::port::{AgentError, AgentReply, TokenUsage};
use treebeam_testkit::counterpart::CounterpartServer;
use treebeam_testkit::program::Site;

const FIXTURES: &str = include_str!("errors.json");
/// aimock's answer where only streaming is faulty.
const WHOLE: &str = "one two three four five six seven eight";

/// Expected result of a question.
#[derive(Clone, Copy)]
enum Expect {
    Says(&'static str),
    /// An unanswered question, for this reason.
    Fails(&'static str),
    /// An unusable agent, for this reason.
    Stops(&'static str),
}
use Expect::{Fails, Says, Stops};

/// Delivery of an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Delivery {
    Streamed,
    Whole,
}
const DELIVERIES: [Delivery; 2] = [Delivery::Streamed, Delivery::Whole];

/// A fixture, its expected result, and the number of requests.
const TABLE: [(&str, Expect, usize); 13] = [
    ("hello", Says("Hi there from aimock"), 1),
    ("USAGE", Says("u"), 1),
    ("THINK", Says("answer"), 1),
    ("FLAKY", Says("recovered"), 3),
    ("TOOL", Fails("the model "), 1),
    ("LENGTH", Fails("cut at `max_tokens`, 500"), 1),
    ("FILTER", Fails("the model refused to answer"), 1),
    ("E400CTX", Fails("the prompt is too long for the model"), 1),
    ("E500", Fails("answered 500: boom, 3 times"), 3),
    ("MALFORMED", Fails("it is no JSON"), 3),
    ("E529", Stops("answered 529: Overloaded, 3 times"), 3),
    ("E401", Stops("the key was refused"), 1),
    ("E429", Stops("still takes no questions after 2"), 5),
];
/// Fixtures for faults that only a stream can have, with result and number of requests.
const STREAMS: [(&str, Expect, usize); 3] = [
    ("TRUNC", Fails("broke off"), 3),
    ("CUTMS", Fails("broke off"), 3),
    ("STALL", Fails("nothing more came"), 3),
];
const DISCONNECT: (&str, Expect, usize) = ("DISCONNECT", Stops("connection closed"), 3);
/// Fixtures of a server that is gone or overloaded. Without patience the whole server is given up
/// then, and nobody waits for it any longer: they are asked after all others, through another door.
const GIVEN_UP: [&str; 2] = ["E529", "DISCONNECT"];

/// One question of the table.
struct Case {
    prompt: String,
    wire: WireFormat,
    delivery: Delivery,
    expect: Expect,
    requests: usize,
}

impl Case {
    fn gives_the_server_up(&self) -> bool {
        GIVEN_UP.iter().any(|name| self.prompt.starts_with(name))
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for delivery in DELIVERIES {
        let streams = STREAMS.map(|(name, expect, requests)| match delivery {
            Delivery::Streamed => (name, expect, requests),
            Delivery::Whole => (name, Says(WHOLE), 1),
        });
        for (name, expect, requests) in TABLE.into_iter().chain(streams).chain([DISCONNECT]) {
            for wire in WIRES {
                let expect = match (name, wire) {
                    ("LENGTH", WireFormat::Ollama) => Says("cut here"),
                    ("FILTER", WireFormat::Ollama) => Says("."),
                    _ => expect,
                };
                let prompt = format!("{name} {} {delivery:?}", wire.provider_name());
                cases.push(Case { prompt, wire, delivery, expect, requests });
            }
        }
    }
    cases
}

/// Returns the fixtures, with temporary faults for each first request.
fn fixtures() -> Value {
    let mut document: Value = serde_json::from_str(FIXTURES).expect("the fixtures");
    let all = document["fixtures"].as_array_mut().expect("a list");
    let (flaky, mut others): (Vec<Value>, Vec<Value>) =
        all.drain(..).partition(|fixture| fixture["match"]["userMessage"] == "FLAKY");
    for case in cases().iter().filter(|case| case.prompt.starts_with("FLAKY")) {
        for mut fixture in flaky.clone() {
            fixture["match"]["userMessage"] = json!(case.prompt);
            others.push(fixture);
        }
    }
    json!({ "fixtures": others })
}

fn url(server: &CounterpartServer, wire: WireFormat) -> String {
    let versioned = matches!(wire, WireFormat::Responses | WireFormat::Chat);
    server.url() + if versioned { "/v1" } else { "" }
}

#[test]
#[ignore = "needs real counterparts: run by `cargo xtask test`"]
fn every_answer_and_every_error_in_five_formats() {
    let server = CounterpartServer::aimock(&fixtures());
    let cases = cases();
    let results: Vec<(&Case, Result<AgentReply, AgentError>)> = thread::scope(|scope| {
        let side = |delivery| {
            let (cases, server) = (&cases, &server);
            scope.spawn(move || ask_all(cases, server, delivery))
        };
        let sides = DELIVERIES.map(side);
        sides.into_iter().flat_map(|side| side.join().expect("the answers")).collect()
    });
    let journal = server.get("/__aimock/journal");
    let wrong: Vec<String> = results
        .iter()
        .filter_map(|(case, result)| {
            Some(format!("{}: {}", case.prompt, wrong(case, result, &journal)?))
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert_eq!(results.len(), cases.len());
}

fn ask_all<'a>(
    cases: &'a [Case],
    server: &CounterpartServer,
    delivery: Delivery,
) -> Vec<(&'a Case, Result<AgentReply, AgentError>)> {
    let mut extra = Map::new();
    if delivery == Delivery::Whole {
        extra.insert("stream".to_owned(), json!(false));
    }
    let (url, wait) = (|wire| url(server, wire), Duration::from_secs(7));
    let five = Five { url: &url, model: "m-1", extra, timeout: Duration::from_secs(4), wait };
    let ask = |asker: &Asker<'_>, given_up: bool| -> Vec<_> {
        thread::scope(|scope| {
            let ours = cases.iter().filter(|case| case.delivery == delivery);
            let ours = ours.filter(|case| case.gives_the_server_up() == given_up);
            let asked: Vec<_> = ours
                .map(|case| (case, scope.spawn(|| asker.ask(case.wire, &case.prompt))))
                .collect();
            let answer = |(case, thread): (_, thread::ScopedJoinHandle<'_, _>)| {
                (case, thread.join().expect("an answer"))
            };
            asked.into_iter().map(answer).collect()
        })
    };
    let mut results = five.meet(|asker| ask(asker, false));
    results.extend(five.meet(|asker| ask(asker, true)));
    results
}

/// Describes a deviation from the expected result.
fn wrong(case: &Case, result: &Result<AgentReply, AgentError>, journal: &Value) -> Option<String> {
    let as_expected = match (case.expect, result) {
        (Says(text), Ok(reply)) => reply.text == text && counted(case, reply),
        (Fails(part), Err(AgentError::Unanswered(why))) => why.contains(part),
        (Stops(part), Err(AgentError::Unavailable(error))) => {
            error.what.contains(part) && names_the_variable(&case.prompt, error.hint.as_deref())
        }
        _ => false,
    };
    let times = times(journal, &case.prompt);
    let pauses: Vec<u64> = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    let waited = match case.prompt.split(' ').next() {
        // The last pause is what is left of the longest wait.
        Some("E429") => pauses.iter().rev().skip(1).all(|pause| *pause >= 7000),
        Some("FLAKY") => pauses.last().is_some_and(|pause| *pause >= 1000),
        _ => true,
    };
    (!as_expected || times.len() != case.requests || !waited)
        .then(|| format!("{} requests, {pauses:?} ms apart: {result:?}", times.len()))
}

/// Checks the usage, which only `USAGE` reports.
fn counted(case: &Case, reply: &AgentReply) -> bool {
    let said = case.prompt.starts_with("USAGE") && case.wire != WireFormat::Ollama;
    !said || reply.usage == Some(TokenUsage { input: 11, cached: 0, output: 7 })
}

fn names_the_variable(prompt: &str, hint: Option<&str>) -> bool {
    !prompt.starts_with("E401") || hint.is_some_and(|hint| hint.contains(&format!("`{VARIABLE}`")))
}

/// Returns the times of a question's requests, in milliseconds.
fn times(journal: &Value, prompt: &str) -> Vec<u64> {
    let entries = journal.as_array().expect("a list").iter();
    let is_it = |entry: &&Value| entry["body"]["messages"][0]["content"] == *prompt;
    entries.filter(is_it).filter_map(|entry| entry["timestamp"].as_u64()).collect()
}

/// Five roles with five providers, as a user configures and checks them.
#[test]
#[ignore = "needs real counterparts: run by `cargo xtask test`"]
fn the_program_checks_and_asks_all_five() {
    let ok = json!({ "match": { "userMessage": "Reply with the single word" }, "response": { "content": "ok" } });
    let mut fixtures = fixtures();
    fixtures["fixtures"].as_array_mut().expect("a list").push(ok);
    let (server, site) = (CounterpartServer::aimock(&fixtures), Site::new(BINARY));
    let roles = ["coordinator", "planner", "coder", "reviewer", "ideas"];
    let agents: Vec<String> = roles
        .into_iter()
        .zip(WIRES)
        .map(|(role, wire)| {
            let (provider, url) = (wire.provider_name(), url(&server, wire));
            format!("[agents.{role}]\nprovider = '{provider}'\nmodel = 'm'\nbase_url = '{url}'\napi_key_env = '{VARIABLE}'\n")
        })
        .collect();
    site.repo.write("treebeam.toml", &agents.concat()).expect("a file");
    site.repo.write(".env", &format!("{VARIABLE}=sk-for-tests\n")).expect("a file");
    let checked = site.call(&["agents", "check", "--json"]).exits(0).json_lines().remove(0);
    for (place, role) in roles.into_iter().enumerate() {
        let agent = &checked["agents"][place];
        assert_eq!((&agent["role"], &agent["reply"]), (&json!(role), &json!("ok")), "{checked}");
        // aimock accepts every id, so that this tests our side alone.
        let mode = if role == "coordinator" { "native" } else { "replay" };
        assert_eq!(agent["continuation"], mode, "{checked}");
    }
    for role in roles {
        let ask = |prompt| site.call_reading(&["agents", "ask", "--role", role], prompt);
        assert_eq!(ask("hello").exits(0).stdout, "Hi there from aimock\n");
        let variable = format!("hint: put a key that is good there into the variable `{VARIABLE}`");
        let _ = ask("E401").exits(4).says(["error: the key was refused", &variable]);
        let _ = ask("E400CTX").exits(1).says(["error: the prompt is too long for the model"]);
    }
}
