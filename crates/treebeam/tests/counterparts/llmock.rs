//! llmock breaks its answers and then judges the client: whether it waited, backed off, gave up in
//! time and used no half answer. It speaks four of our five wire formats.

use crate::door::{Asker, Five};
use serde_json::{Map, Value, json};
use std::thread;
use std::time::Duration;
use treebeam_agent::settings::WireFormat;
use treebeam_run::port::{AgentError, AgentReply};
use treebeam_testkit::counterpart::CounterpartServer;

const WIRES: [WireFormat; 4] =
    [WireFormat::Responses, WireFormat::Chat, WireFormat::Messages, WireFormat::Gemini];
const FAULTS: [&str; 8] =
    ["429", "500", "529", "400", "truncate", "stall", "malformed", "disconnect"];

fn url(server: &CounterpartServer, wire: WireFormat) -> String {
    let end = match wire {
        WireFormat::Responses | WireFormat::Chat => "/v1",
        WireFormat::Messages => "/anthropic",
        WireFormat::Gemini => "/gemini",
        WireFormat::Ollama => "",
    };
    server.url() + end
}

/// Returns the part of the path that identifies a wire format.
const fn path(wire: WireFormat) -> &'static str {
    match wire {
        WireFormat::Responses => "*/responses",
        WireFormat::Chat => "*/chat/completions",
        WireFormat::Messages => "*/messages",
        WireFormat::Gemini => "*enerateContent",
        WireFormat::Ollama => "*/api/chat",
    }
}

/// Returns a fault for a wire format, at the model of that name.
fn behaviour(fault: &str, wire: WireFormat) -> Value {
    let mut behaviour = match fault {
        "429" => json!({ "type": "fail", "status": 429, "retry_after": 1, "times": 2 }),
        "500" => json!({ "type": "fail", "status": 500, "times": 2 }),
        "529" => json!({ "type": "fail", "status": 529, "times": 2 }),
        "400" => json!({ "type": "fail", "status": 400, "times": null }),
        "stall" => {
            json!({ "type": "stream_fault", "kind": "stall", "after_chunks": 2, "stall_seconds": 60 })
        }
        kind => json!({ "type": "stream_fault", "kind": kind, "after_chunks": 2 }),
    };
    behaviour["match"] = json!({ "model": format!("m-{fault}"), "path": path(wire) });
    behaviour
}

fn queue(server: &CounterpartServer, behaviours: &[Value]) {
    let (status, said) = server.post("/_llmock/scenario", &json!({ "behaviors": behaviours }));
    assert_eq!(status, 201, "{said}");
}

type Asked = (&'static str, WireFormat, Result<AgentReply, AgentError>);

fn ask_all(server: &CounterpartServer, fault: &'static str) -> Vec<Asked> {
    let (url, model) = (|wire| url(server, wire), format!("m-{fault}"));
    let (timeout, wait) = (Duration::from_secs(4), Duration::from_secs(10));
    let five = Five { url: &url, model: &model, extra: Map::new(), timeout, wait };
    let all = |asker: &Asker<'_>| {
        thread::scope(|scope| {
            let asked =
                WIRES.map(|wire| (wire, scope.spawn(move || asker.ask(wire, "Say something."))));
            asked.map(|(wire, thread)| (fault, wire, thread.join().expect("an answer"))).into()
        })
    };
    five.meet(all)
}

/// Returns the findings, without random ones: two random pauses may be alike.
fn findings(verdict: &Value) -> Vec<&str> {
    let found = verdict["findings"].as_array().expect("a list").iter();
    found
        .filter_map(|finding| finding["code"].as_str())
        .filter(|code| *code != "no_backoff")
        .collect()
}

#[test]
#[ignore = "needs real counterparts: run by `cargo xtask test`"]
fn the_verdict_is_passed() {
    let server = CounterpartServer::llmock();
    let faults: Vec<Value> =
        FAULTS.iter().flat_map(|fault| WIRES.map(|wire| behaviour(fault, wire))).collect();
    queue(&server, &faults);
    let asked: Vec<Asked> = thread::scope(|scope| {
        let threads = FAULTS.map(|fault| {
            let server = &server;
            scope.spawn(move || ask_all(server, fault))
        });
        threads.into_iter().flat_map(|thread| thread.join().expect("the answers")).collect()
    });
    for (fault, wire, result) in &asked {
        match (*fault, result) {
            ("400", Err(AgentError::Unanswered(why))) => {
                assert!(why.contains("answered 400"), "{wire:?}: {why}");
            }
            ("400", other) => panic!("{wire:?}: {other:?}"),
            (_, Ok(reply)) => assert!(reply.usage.is_some(), "{fault} {wire:?}: {reply:?}"),
            (_, Err(error)) => panic!("{fault} {wire:?}: {error}"),
        }
    }
    let verdict = server.get("/_llmock/verdict");
    assert_eq!(verdict["passed"], true, "{verdict}");
    // A stream is read to its end before it is examined, so that llmock counts a retry as another
    // question.
    let found = findings(&verdict);
    assert!(found.iter().all(|code| *code == "malformed_chunk_ignored"), "{verdict}");
    assert_eq!(found.len(), WIRES.len(), "{verdict}");
    // All have met their fault: one refused, three that failed twice, four that failed once.
    let calls = (FAULTS.len() + 1) * WIRES.len();
    let attempts = WIRES.len() * (1 + 3 * 3 + 4 * 2);
    let counts = (&verdict["calls"], &verdict["attempts"]);
    assert_eq!(counts, (&json!(calls), &json!(attempts)), "{verdict}");
}

/// The verdict means something: a bad client does not pass.
#[test]
#[ignore = "needs real counterparts: run by `cargo xtask test`"]
fn the_verdict_can_be_another() {
    let server = CounterpartServer::llmock();
    let body = |stream| {
        let messages = json!([{ "role": "user", "content": "Say something." }]);
        json!({ "model": "m", "messages": messages, "stream": stream })
    };
    let check = |behaviour: Value, stream: bool, times: usize, finding: &str| {
        let _ = server.post("/_llmock/reset", &json!({}));
        queue(&server, &[behaviour]);
        for _ in 0..times {
            let _ = server.post("/v1/chat/completions", &body(stream));
        }
        let verdict = server.get("/_llmock/verdict");
        assert_eq!(
            (&verdict["passed"], findings(&verdict)),
            (&json!(false), vec![finding]),
            "{verdict}"
        );
    };
    let hasty = json!({ "type": "fail", "status": 429, "retry_after": 5 });
    check(hasty, false, 2, "retry_after_ignored");
    check(json!({ "type": "fail", "status": 400 }), false, 2, "retried_non_retryable");
    let cut = json!({ "type": "stream_fault", "kind": "truncate", "after_chunks": 2 });
    check(cut, true, 1, "truncated_stream_accepted");
}
