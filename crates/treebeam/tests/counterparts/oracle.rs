//! Requests against the providers' own types: every provider with every option, as the program
//! writes it. The types are those of the providers' Python libraries.

use crate::door::{BINARY, Five, WIRES};
use serde_json::{Map, Value, json};
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use treebeam_agent::settings::WireFormat;
use treebeam_run::port::Continuation;
use treebeam_testkit::counterpart::python;
use treebeam_testkit::program::Site;
use treebeam_testkit::server::{Act, Server};

const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// A server that refuses every request permanently; only the requests matter.
fn refusing() -> Server {
    Server::start(|_| Act::answer(400, &[], "{\"error\": {\"message\": \"no\"}}"))
}

/// Returns the request of a role with this option; `None` if the configuration refuses the option.
fn sent(server: &Server, site: &Site, wire: WireFormat, option: &str) -> Option<Value> {
    let (provider, url) = (wire.provider_name(), server.url());
    let agent = format!(
        "[agents.coder]\nprovider = '{provider}'\nmodel = 'm-1'\nbase_url = '{url}'\n{option}\n"
    );
    site.repo.write("treebeam.toml", &agent).expect("a file");
    let before = server.hits().len();
    let said = site.call_reading(&["agents", "ask", "--role", "coder"], "Say \"é\".\nTwice.");
    if said.code == Some(2) {
        return None;
    }
    let _ = said.exits(1);
    let hits = server.hits().split_off(before);
    assert_eq!(hits.len(), 1, "{provider} {option}");
    Some(serde_json::from_str(&hits[0].body).expect("a request in JSON"))
}

/// Returns the types' complaint about each request, in order; empty where it fits.
fn complaints(requests: &[Value]) -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/counterparts/oracle.py");
    let mut command = python("sdks");
    command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut oracle = command.spawn().expect("python3");
    let lines: String = requests.iter().map(|request| format!("{request}\n")).collect();
    let mut input = oracle.stdin.take().expect("its input");
    input.write_all(lines.as_bytes()).expect("the requests");
    drop(input);
    let output = oracle.wait_with_output().expect("its answer");
    assert!(output.status.success(), "the oracle ended with {}", output.status);
    let said = String::from_utf8(output.stdout).expect("text");
    let said: Vec<String> = said.lines().map(str::to_owned).collect();
    assert_eq!(said.len(), requests.len(), "{said:?}");
    said
}

fn request(wire: WireFormat, body: &Value) -> Value {
    json!({ "provider": wire.provider_name(), "body": body })
}

#[test]
#[ignore = "needs real counterparts: run by `cargo xtask test`"]
fn every_request_fits() {
    let (server, site) = (refusing(), Site::new(BINARY));
    let mut requests = Vec::new();
    for wire in WIRES {
        let extra = match wire {
            WireFormat::Responses => {
                "extra = { store = false, metadata = { who = 'me' }, top_p = 0.5 }"
            }
            WireFormat::Chat => "extra = { seed = 7, stop = ['END'], top_p = 0.5 }",
            WireFormat::Messages => {
                "extra = { system = 'Be brief.', thinking = { type = 'adaptive' } }"
            }
            WireFormat::Gemini => {
                "extra = { generationConfig = { topK = 3, stopSequences = ['END'] } }"
            }
            WireFormat::Ollama => "extra = { keep_alive = '5m', options = { num_ctx = 2048 } }",
        };
        for option in
            ["", "extra = { stream = false }", "max_tokens = 50", "temperature = 0.2", extra]
        {
            let body = sent(&server, &site, wire, option);
            let refused = wire == WireFormat::Messages && option.starts_with("temperature");
            assert_eq!(body.is_none(), refused, "{wire:?} {option}");
            requests.extend(body.map(|body| request(wire, &body)));
        }
    }
    requests.push(going_on());
    let said = complaints(&requests);
    for (request, complaint) in requests.iter().zip(&said) {
        assert_eq!(complaint, "", "{request}");
    }
}

/// Returns the request of `openai` that continues from an answer.
fn going_on() -> Value {
    let server = refusing();
    let url = |_| server.url();
    let second = Duration::from_secs(10);
    let five = Five { url: &url, model: "m-1", extra: Map::new(), timeout: second, wait: second };
    let before = Continuation { id: "resp-1".to_owned(), tokens: 5, taken: None };
    five.meet(|asker| asker.go_on(WireFormat::Responses, "And?", Some(before)))
        .expect_err("a refusal");
    let body: Value = serde_json::from_str(&server.hits()[0].body).expect("a request in JSON");
    assert_eq!(body["previous_response_id"], "resp-1");
    request(WireFormat::Responses, &body)
}

/// The configuration accepts the levels that the types know, and no others. Ollama's types accept
/// any text.
#[test]
#[ignore = "needs real counterparts: run by `cargo xtask test`"]
fn efforts_are_those_of_the_types() {
    let (server, site) = (refusing(), Site::new(BINARY));
    let mut levels = Vec::new();
    for wire in WIRES {
        let basis = sent(&server, &site, wire, "reasoning_effort = 'low'").expect("a request");
        for effort in EFFORTS {
            let option = format!("reasoning_effort = '{effort}'");
            let body = sent(&server, &site, wire, &option);
            let other = basis.to_string().replace("\"low\"", &format!("\"{effort}\""));
            let other = other.replace("\"LOW\"", &format!("\"{}\"", effort.to_uppercase()));
            let other: Value = serde_json::from_str(&other).expect("JSON");
            levels.push((wire, effort, body.is_some(), request(wire, &body.unwrap_or(other))));
        }
    }
    let requests: Vec<Value> = levels.iter().map(|(.., request)| request.clone()).collect();
    let said = complaints(&requests);
    for ((wire, effort, taken, _), complaint) in levels.iter().zip(&said) {
        let known = complaint.is_empty();
        assert!(
            known == *taken || (*wire == WireFormat::Ollama && known),
            "{wire:?} {effort}: {complaint}"
        );
    }
}

/// The types do not accept everything.
#[test]
#[ignore = "needs real counterparts: run by `cargo xtask test`"]
fn what_is_wrong_is_found() {
    let (server, site) = (refusing(), Site::new(BINARY));
    let mut requests = Vec::new();
    for wire in WIRES {
        let body = sent(&server, &site, wire, "max_tokens = 50").expect("a request");
        let mut unknown = body.clone();
        unknown["no_such_key"] = json!(1);
        let long = body.to_string().replace(":50", ":\"fifty\"");
        let role = body
            .to_string()
            .replace("\"user\"", "7")
            .replace("\"input\":\"", "\"input\":7,\"x\":\"");
        for text in [unknown.to_string(), long, role] {
            assert_ne!(text, body.to_string(), "{wire:?}");
            requests.push(request(wire, &serde_json::from_str(&text).expect("JSON")));
        }
    }
    for (request, complaint) in requests.iter().zip(complaints(&requests)) {
        assert_ne!(complaint, "", "{request}");
    }
}
