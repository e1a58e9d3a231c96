//! All layers against a server with some thirty faults, each in five roles with a wire format each.
//! Nothing hangs, nothing panics, no answer is lost, and no permanent error is tried again.

#![cfg(test)]

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use treebeam_agent::bucket::AgentLimits;
use treebeam_agent::budget_layer::Budget;
use treebeam_agent::call_store::CallStore;
use treebeam_agent::command::AgentWorkspace;
use treebeam_agent::price::ModelPrices;
use treebeam_agent::question::AgentQuestion;
use treebeam_agent::retry_layer::RetryPolicy;
use treebeam_agent::retry_timer::{DoorObserver, QuestionWait};
use treebeam_agent::role_agents::RoleAgents;
use treebeam_agent::settings::{AgentKind, AgentSettings, ApiKey, ModelAgent, WireFormat};
use treebeam_agent::{AgentDoor, DoorPlan};
use treebeam_core::id::{CodePlace, EvalId, NodeId};
use treebeam_core::policy::RunLimits;
use treebeam_run::port::{Agent as _, AgentError, AgentRequest, AgentRole};
use treebeam_store::env_file::Secret;
use treebeam_testkit::server::{Act, Hit, Server, closed_port};

const CANARY: &str = "sk-canary-4711";
const ROLES: [(AgentRole, WireFormat); 5] = [
    (AgentRole::Coordinator, WireFormat::Responses),
    (AgentRole::Planner, WireFormat::Chat),
    (AgentRole::Coder, WireFormat::Messages),
    (AgentRole::Reviewer, WireFormat::Gemini),
    (AgentRole::Ideas, WireFormat::Ollama),
];

struct Nobody;

impl DoorObserver for Nobody {
    fn on_wait(&self, _: &QuestionWait<'_>) {}
    fn on_note(&self, _: &str) {}
    fn wants_to_stop(&self) -> bool {
        false
    }
}

const PATIENCE: RetryPolicy = RetryPolicy {
    tries: 3,
    pause: Duration::from_millis(5),
    longest_pause: Duration::from_millis(20),
    wait: Duration::from_secs(4),
    rate_limit: Duration::from_millis(300),
    outage: Duration::ZERO,
    first_answer: Duration::ZERO,
    first_byte: None,
};

fn plan(url: &str, timeout: Duration, folder: &std::path::Path) -> DoorPlan {
    let settings = |wire| {
        let value = Secret::new(CANARY.to_owned());
        let model = ModelAgent {
            wire,
            name: "m-1".to_owned(),
            base_url: url.to_owned(),
            key: Some(ApiKey { variable: "THE_KEY".to_owned(), value }),
            temperature: None,
            max_tokens: 50,
            effort: None,
            extra: Map::new(),
        };
        AgentSettings { line: AgentKind::Model(model), timeout }
    };
    let role_agents = ROLES.map(|(role, wire)| (role, settings(wire)));
    DoorPlan {
        role_agents: RoleAgents::new(BTreeMap::from(role_agents)),
        prices: ModelPrices::default(),
        budget: Budget::default(),
        limits: AgentLimits::from(&RunLimits::default()),
        patience: PATIENCE,
        calls: CallStore::Folder(folder.join("calls")),
        replays: None,
        surroundings: AgentWorkspace::Folder(folder.to_owned()),
    }
}

fn question(role: AgentRole) -> AgentQuestion {
    let (key, prompt) = (format!("q-{role}"), "What?".to_owned());
    AgentQuestion {
        key,
        role,
        round: 0,
        prompt: prompt.into(),
        continues: None,
        place: None,
        node: None,
    }
}

/// Returns the pieces of a streamed answer with this stop reason.
fn pieces(wire: WireFormat, stop: Stop) -> Vec<Value> {
    let text = if stop == Stop::Empty { "" } else { "All good." };
    let word = |words: [&'static str; 3]| match stop {
        Stop::Done | Stop::Empty => words[0],
        Stop::Length => words[1],
        Stop::Refused => words[2],
    };
    match wire {
        WireFormat::Chat => vec![
            json!({"id": "r", "choices": [{"delta": {"content": text}}]}),
            json!({"choices": [{"delta": {}, "finish_reason": word(["stop", "length", "content_filter"])}]}),
            json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}),
        ],
        WireFormat::Responses => {
            let status = word(["completed", "incomplete", "incomplete"]);
            let reason = word(["", "max_output_tokens", "content_filter"]);
            let kind = format!("response.{status}");
            let usage = json!({"input_tokens": 3, "output_tokens": 4});
            vec![
                json!({"type": "response.output_text.delta", "delta": text}),
                json!({"type": kind, "response": {"id": "r", "status": status, "incomplete_details": {"reason": reason}, "usage": usage}}),
            ]
        }
        WireFormat::Messages => vec![
            json!({"type": "message_start", "message": {"id": "r", "usage": {"input_tokens": 3}}}),
            json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}),
            json!({"type": "message_delta", "delta": {"stop_reason": word(["end_turn", "max_tokens", "refusal"])}, "usage": {"output_tokens": 4}}),
            json!({"type": "message_stop"}),
        ],
        WireFormat::Gemini => vec![
            json!({"candidates": [{"content": {"parts": [{"text": text}]}}]}),
            json!({"candidates": [{"finishReason": word(["STOP", "MAX_TOKENS", "SAFETY"])}], "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4}}),
        ],
        // Ollama has no name for a refusal.
        WireFormat::Ollama => vec![
            json!({"message": {"content": text}, "done": false}),
            json!({"message": {"content": ""}, "done": true, "done_reason": word(["stop", "length", "length"]), "prompt_eval_count": 3, "eval_count": 4}),
        ],
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    Done,
    Length,
    Refused,
    Empty,
}

fn written(wire: WireFormat, pieces: &[Value]) -> String {
    match wire {
        WireFormat::Ollama => pieces.iter().map(|piece| format!("{piece}\n")).collect(),
        WireFormat::Chat | WireFormat::Responses | WireFormat::Messages | WireFormat::Gemini => {
            pieces.iter().map(|piece| format!("data: {piece}\n\n")).collect()
        }
    }
}

fn stream(wire: WireFormat, stop: Stop) -> String {
    let end = if wire == WireFormat::Chat { "data: [DONE]\n\n" } else { "" };
    written(wire, &pieces(wire, stop)) + end
}

fn content_type(wire: WireFormat) -> &'static str {
    if wire == WireFormat::Ollama { "application/x-ndjson" } else { "text/event-stream" }
}

fn good(wire: WireFormat) -> Vec<Act> {
    Act::answer(200, &[("content-type", content_type(wire))], &stream(wire, Stop::Done))
}

/// Expected result of a fault in the first answer, if all later ones are good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// A second request brings the answer.
    Again,
    /// The question fails, at once.
    Fails,
    /// The agent is given up, at once.
    GivenUp,
}

type Fault = (&'static str, Then, Duration, fn(WireFormat) -> Vec<Act>);

const LONG: Duration = Duration::from_secs(20);
/// Timeout for servers that send nothing: long enough for a good answer on a slow machine.
const SHORT: Duration = Duration::from_millis(1500);

fn error(status: u16, headers: &[(&str, &str)], code: &str, message: &str) -> Vec<Act> {
    let body = json!({"error": {"message": message, "type": code, "code": code}}).to_string();
    Act::answer(status, headers, &body)
}

fn first_piece(wire: WireFormat) -> String {
    written(wire, &pieces(wire, Stop::Done)[..1])
}

const FAULTS: [Fault; 36] = {
    use Then::{Again, Fails, GivenUp};
    [
        ("408", Again, LONG, |_| Act::answer(408, &[], "")),
        ("409", Again, LONG, |_| Act::answer(409, &[], "{}")),
        ("429", Again, LONG, |_| error(429, &[], "rate_limit_exceeded", "slow down")),
        ("429 in seconds", Again, LONG, |_| Act::answer(429, &[("retry-after", "0")], "")),
        ("429 in milliseconds", Again, LONG, |_| Act::answer(429, &[("retry-after-ms", "20")], "")),
        ("429 at a date", Again, LONG, |_| {
            Act::answer(429, &[("retry-after", "Fri, 31 Jan 2020 22:00:00 GMT")], "")
        }),
        ("429 some day", Again, LONG, |_| Act::answer(429, &[("retry-after", "soon")], "")),
        ("429 far too long", Again, LONG, |_| {
            Act::answer(429, &[("retry-after", "99999999999")], "")
        }),
        ("500", Again, LONG, |_| error(500, &[], "server_error", "boom")),
        ("502 as HTML", Again, LONG, |_| {
            Act::answer(502, &[("content-type", "text/html")], "<html>bad gateway</html>")
        }),
        ("503", Again, LONG, |_| Act::answer(503, &[("retry-after", "0")], "")),
        ("504", Again, LONG, |_| Act::answer(504, &[], "")),
        ("529", Again, LONG, |_| error(529, &[], "overloaded_error", "Overloaded")),
        ("no answer at all", Again, LONG, |_| Vec::new()),
        ("rubbish", Again, LONG, |_| vec![Act::Send(b"SSH-2.0-OpenSSH\r\n\r\n".to_vec())]),
        ("half a head", Again, LONG, |_| vec![Act::Send(b"HTTP/1.1 200 OK\r\ncontent-".to_vec())]),
        ("half a stream", Again, LONG, |wire| {
            Act::half(200, content_type(wire), &first_piece(wire))
        }),
        ("a stream without its end", Again, LONG, |wire| {
            Act::open(200, content_type(wire), &first_piece(wire))
        }),
        ("half a piece", Again, LONG, |wire| {
            Act::open(200, content_type(wire), &stream(wire, Stop::Done)[..30])
        }),
        ("no JSON", Again, LONG, |_| Act::answer(200, &[], "{\"oops")),
        ("HTML", Again, LONG, |_| Act::answer(200, &[], "<html>log in first</html>")),
        ("nothing", Again, LONG, |_| Act::answer(200, &[], "")),
        ("an error in the middle", Again, LONG, |wire| {
            let mut pieces = pieces(wire, Stop::Done);
            pieces[1] = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
            Act::answer(200, &[], &written(wire, &pieces))
        }),
        ("silence", Again, SHORT, |_| vec![Act::Pause(Duration::from_mins(1))]),
        ("silence in the middle", Again, SHORT, |wire| {
            [
                Act::half(200, content_type(wire), &first_piece(wire)),
                vec![Act::Pause(Duration::from_mins(1))],
            ]
            .concat()
        }),
        ("400", Fails, LONG, |_| error(400, &[], "invalid_request_error", "bad")),
        ("400 too long", Fails, LONG, |_| {
            error(400, &[], "context_length_exceeded", "maximum context length")
        }),
        ("413", Fails, LONG, |_| Act::answer(413, &[], "")),
        ("422", Fails, LONG, |_| Act::answer(422, &[], "{\"detail\": \"no\"}")),
        ("cut at max_tokens", Fails, LONG, |wire| {
            Act::answer(200, &[], &stream(wire, Stop::Length))
        }),
        ("refused", Fails, LONG, |wire| Act::answer(200, &[], &stream(wire, Stop::Refused))),
        ("an empty answer", Fails, LONG, |wire| Act::answer(200, &[], &stream(wire, Stop::Empty))),
        ("401", GivenUp, LONG, |_| error(401, &[], "invalid_api_key", "wrong key sk-canary-4711")),
        ("403", GivenUp, LONG, |_| Act::answer(403, &[], "sk-canary-4711 may not")),
        ("404", GivenUp, LONG, |_| error(404, &[], "model_not_found", "no such model")),
        ("a spent quota", GivenUp, LONG, |_| {
            error(429, &[("retry-after", "1")], "insufficient_quota", "pay")
        }),
    ]
};

/// Runs one fault in all roles, one after another.
fn suffer((name, then, timeout, fault): Fault) {
    let folder = tempfile::tempdir().expect("a folder");
    for (role, wire) in ROLES {
        let server =
            Server::start(move |hit| if hit.number == 0 { fault(wire) } else { good(wire) });
        let plan = plan(&server.url(), timeout, folder.path());
        let begun = Instant::now();
        let answer =
            AgentDoor::open(&plan, &Nobody).expect("a door").answer_question(&question(role));
        let what = format!("{name}, {role}: {answer:?}");
        assert!(begun.elapsed() < timeout * 3 + Duration::from_secs(20), "{what}");
        assert!(!what.contains(CANARY), "{what}");
        let expect = match then {
            Then::Again => 2,
            Then::Fails | Then::GivenUp => 1,
        };
        assert_eq!(server.hits().len(), expect, "{what}");
        match (then, &answer) {
            (Then::Again, Ok(reply)) => assert_eq!(reply.text, "All good.", "{what}"),
            (Then::Fails, Err(AgentError::Unanswered(_))) => {}
            (Then::GivenUp, Err(AgentError::Unavailable(error))) => {
                let hint = error.hint.as_deref().unwrap_or_default();
                assert!(hint.contains("THE_KEY") || name == "404", "{what}");
            }
            _ => panic!("{what}"),
        }
        // The answer is on disk: a new door asks no agent.
        let again =
            AgentDoor::open(&plan, &Nobody).expect("a door").answer_question(&question(role));
        let more = usize::from(then != Then::Again);
        assert_eq!(server.hits().len(), expect + more, "{what}");
        assert_eq!(again.expect("an answer").text, "All good.", "{what}");
    }
    for entry in std::fs::read_dir(folder.path().join("calls")).expect("the calls") {
        let path = entry.expect("a call").path();
        let text = std::fs::read_to_string(&path).expect("a call");
        assert!(!text.contains(CANARY), "{}", path.display());
    }
}

#[test]
fn every_fault_in_every_role() {
    let faults = Mutex::new(FAULTS.into_iter());
    thread::scope(|scope| {
        let work = || {
            while let Some(fault) = { faults.lock().expect("the faults").next() } {
                suffer(fault);
            }
        };
        let workers: Vec<_> = (0..6).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            if let Err(panic) = worker.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}

#[test]
fn what_stays_broken_is_given_up_after_some_tries() {
    let folder = tempfile::tempdir().expect("a folder");
    for (role, wire) in ROLES {
        let server = Server::start(move |_| Act::half(200, content_type(wire), &first_piece(wire)));
        let plan = plan(&server.url(), LONG, folder.path());
        let answer =
            AgentDoor::open(&plan, &Nobody).expect("a door").answer_question(&question(role));
        assert!(
            matches!(&answer, Err(AgentError::Unanswered(why)) if why.ends_with(", 3 times")),
            "{answer:?}"
        );
        assert_eq!(server.hits().len(), 3);
    }
    let url = format!("http://127.0.0.1:{}", closed_port());
    let plan = plan(&url, LONG, folder.path());
    let answer = AgentDoor::open(&plan, &Nobody)
        .expect("a door")
        .answer_question(&question(AgentRole::Coder));
    assert!(matches!(&answer, Err(AgentError::Unavailable(_))), "{answer:?}");
}

#[test]
fn a_key_goes_to_the_server_that_was_named_and_to_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    for (role, wire) in ROLES {
        let other = Server::start(move |_| good(wire));
        let target = other.url();
        let leads_away = move |_: &Hit| Act::answer(307, &[("location", &target)], "");
        let server = Server::start(leads_away);
        let plan = plan(&server.url(), LONG, folder.path());
        let answer =
            AgentDoor::open(&plan, &Nobody).expect("a door").answer_question(&question(role));
        assert!(matches!(&answer, Err(AgentError::Unavailable(_))), "{answer:?}");
        assert_eq!((server.hits().len(), other.hits().len()), (1, 0));
        let name = match wire {
            WireFormat::Chat | WireFormat::Responses | WireFormat::Ollama => "authorization",
            WireFormat::Messages => "x-api-key",
            WireFormat::Gemini => "x-goog-api-key",
        };
        let hit = server.hits().remove(0);
        assert!(hit.header(name).is_some_and(|value| value.contains(CANARY)), "{hit:?}");
        assert!(!hit.path.contains(CANARY) && !hit.body.contains(CANARY), "{hit:?}");
    }
}

#[test]
fn what_a_server_repeats_of_the_key_is_hidden() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(|_| {
        let body = json!({"choices": [{"message": {"content": format!("your key is {CANARY}")}, "finish_reason": "stop"}]});
        Act::answer(200, &[], &body.to_string())
    });
    let plan = plan(&server.url(), LONG, folder.path());
    let reply = AgentDoor::open(&plan, &Nobody)
        .expect("a door")
        .answer_question(&question(AgentRole::Planner));
    assert_eq!(reply.expect("an answer").text, "your key is [hidden]");
    let record = std::fs::read_to_string(folder.path().join("calls/q-planner.json")).expect("it");
    assert!(!record.contains(CANARY), "{record}");
}

#[test]
fn an_answer_that_would_come_too_late_is_not_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(|hit| match hit.number {
        0 => vec![Act::Pause(Duration::from_mins(2))],
        _ => good(WireFormat::Chat),
    });
    let plan = plan(&server.url(), Duration::from_mins(1), folder.path());
    let door = AgentDoor::open(&plan, &Nobody).expect("a door");
    let ask = |within| AgentRequest {
        key: "late".to_owned(),
        role: AgentRole::Planner,
        round: 0,
        prompt: "What?".into(),
        place: CodePlace::Candidate(EvalId::FIRST),
        node: NodeId::ROOT,
        continues: None,
        within,
        until: None,
    };
    let late = door.ask(&ask(Some(Duration::from_millis(300))));
    assert!(matches!(&late, Err(AgentError::OutOfTime(why)) if why.contains("0.3 s")), "{late:?}");
    assert_eq!(server.hits().len(), 1, "what is out of time is not tried again");
    let reply = door.ask(&ask(Some(Duration::from_mins(1)))).expect("an answer");
    assert!(reply.millis.is_some() && reply.usage.is_some(), "{reply:?}");
    let bill = reply.bill();
    assert_eq!((bill.calls, bill.calls_without_price), (1, 1), "nobody knows the price of `m-1`");
}

/// A person who asks one question need not wait `timeout_sec` for a silent server.
#[test]
fn a_server_that_does_not_begin_to_answer_is_given_up_early_where_that_is_wanted() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(|_| vec![Act::Pause(Duration::from_mins(2))]);
    let first_byte = Some(Duration::from_millis(200));
    let patience = RetryPolicy { tries: 1, first_byte, ..PATIENCE };
    let plan = DoorPlan { patience, ..plan(&server.url(), Duration::from_mins(1), folder.path()) };
    let begun = Instant::now();
    let answer = AgentDoor::open(&plan, &Nobody)
        .expect("a door")
        .answer_question(&question(AgentRole::Coder));
    let told = matches!(&answer, Err(AgentError::Unanswered(why))
        if why.contains("no answer began within 0.2 s"));
    assert!(told && begun.elapsed() < LONG, "{answer:?}");
}

/// The proxy of a server that is gone accepts connections and closes them.
#[test]
fn a_server_that_hangs_up_before_it_answers_is_waited_for_like_one_that_is_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    let server =
        Server::start(|hit| if hit.number < 6 { Vec::new() } else { good(WireFormat::Chat) });
    let patience = RetryPolicy { tries: 2, first_answer: Duration::from_mins(1), ..PATIENCE };
    let plan = DoorPlan { patience, ..plan(&server.url(), LONG, folder.path()) };
    let answer = AgentDoor::open(&plan, &Nobody)
        .expect("a door")
        .answer_question(&question(AgentRole::Planner));
    assert!(answer.is_ok(), "{answer:?}");
    assert_eq!(server.hits().len(), 7);
}

#[test]
fn an_answer_that_trickles_in_for_ever_is_ended_and_told() {
    let folder = tempfile::tempdir().expect("a folder");
    for (role, wire) in ROLES {
        let server = Server::start(move |_| {
            let drop = [Act::Send(b" ".to_vec()), Act::Pause(Duration::from_millis(40))];
            let drops = std::iter::repeat_n(drop, 2000).flatten();
            let head = Act::open(200, content_type(wire), &first_piece(wire));
            head.into_iter().chain(drops).collect()
        });
        let patience = RetryPolicy { tries: 1, ..PATIENCE };
        let plan = DoorPlan { patience, ..plan(&server.url(), SHORT, folder.path()) };
        let begun = Instant::now();
        let answer =
            AgentDoor::open(&plan, &Nobody).expect("a door").answer_question(&question(role));
        let told = matches!(&answer, Err(AgentError::Unanswered(why))
            if why.contains("trickled in and had no end after 1.5 s (`timeout_sec`)"));
        assert!(told && begun.elapsed() < LONG, "{role}: {answer:?}");
    }
}

/// Observer that ends every wait once it is set.
#[derive(Default)]
struct Stopper(AtomicBool);

impl DoorObserver for Stopper {
    fn on_wait(&self, _: &QuestionWait<'_>) {}
    fn on_note(&self, _: &str) {}
    fn wants_to_stop(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

type RetryForm = (&'static str, fn() -> (Vec<(&'static str, &'static str)>, String));

/// All forms of a stated wait of zero, and nonsense that amounts to it.
const AT_ONCE: [RetryForm; 9] = [
    ("seconds", || (vec![("retry-after", "0")], String::new())),
    ("a fraction", || (vec![("retry-after", "0.000001")], String::new())),
    ("negative seconds", || (vec![("retry-after", "-5")], String::new())),
    ("a past date", || (vec![("retry-after", "Fri, 31 Jan 2020 22:00:00 GMT")], String::new())),
    ("milliseconds", || (vec![("retry-after-ms", "0")], String::new())),
    ("negative milliseconds", || (vec![("retry-after-ms", "-1")], String::new())),
    ("retryDelay", || {
        (vec![], json!({"error": {"message": "x", "details": [{"retryDelay": "0s"}]}}).to_string())
    }),
    ("resets_in_seconds", || {
        (vec![], json!({"error": {"message": "x", "resets_in_seconds": -3}}).to_string())
    }),
    ("resets_at", || (vec![], json!({"error": {"message": "x", "resets_at": 0}}).to_string())),
];

/// Returns the number of requests of one question, its time, and whether it was given up.
fn storm(role: AgentRole, status: u16, (_, form): RetryForm) -> (usize, Duration, bool) {
    let server = Server::start(move |_| {
        let (headers, body) = form();
        Act::answer(status, &headers, &body)
    });
    let folder = tempfile::tempdir().expect("a folder");
    let patience = RetryPolicy {
        pause: Duration::from_millis(50),
        longest_pause: Duration::from_millis(500),
        wait: Duration::from_secs(2),
        outage: Duration::from_secs(2),
        ..PATIENCE
    };
    let plan = DoorPlan { patience, ..plan(&server.url(), LONG, folder.path()) };
    let (stopper, begun) = (Stopper::default(), Instant::now());
    let answer = thread::scope(|scope| {
        let ask =
            || AgentDoor::open(&plan, &stopper).expect("a door").answer_question(&question(role));
        let asked = scope.spawn(ask);
        while !asked.is_finished() && begun.elapsed() < Duration::from_secs(6) {
            thread::sleep(Duration::from_millis(20));
        }
        stopper.0.store(true, Ordering::SeqCst);
        asked.join().expect("an answer")
    });
    let given_up = matches!(answer, Err(AgentError::Unavailable(_)));
    (server.hits().len(), begun.elapsed(), given_up)
}

#[test]
fn a_server_that_asks_for_no_pause_is_not_asked_at_once() {
    thread::scope(|scope| {
        for (role, _) in ROLES {
            for form in AT_ONCE {
                for status in [429, 503] {
                    scope.spawn(move || {
                        let (hits, took, given_up) = storm(role, status, form);
                        let what = format!("{role}, {status}, {}: {hits} in {took:?}", form.0);
                        assert!((2..=20).contains(&hits), "{what}");
                        assert!(given_up && took < Duration::from_secs(5), "{what}");
                    });
                }
            }
        }
    });
}
