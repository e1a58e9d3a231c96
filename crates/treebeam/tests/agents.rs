//! `treebeam agents` with the real program: its output, its calls, its state after a kill, and that
//! no key is shown.

#![cfg(test)]

use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Duration;
use treebeam_testkit::program::{Said, Site};
use treebeam_testkit::server::{Act, Hit, Server, closed_port};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const CANARY: &str = "sk-canary-0815-4711";

/// Creates a site whose coder is an `openai-chat` model at this address.
fn site(url: &str) -> Site {
    let site = Site::new(BINARY);
    configure(&site, &coder(url));
    site
}

fn coder(url: &str) -> String {
    format!(
        "[agents.coder]\nprovider = 'openai-chat'\nmodel = 'gpt-4o'\nbase_url = '{url}/v1'\napi_key_env = 'CANARY_KEY'\nmax_tokens = 50\ntimeout_sec = 20\n"
    )
}

fn configure(site: &Site, text: &str) {
    site.repo.write("treebeam.toml", text).expect("a file");
    site.repo.write(".env", &format!("CANARY_KEY={CANARY}\n")).expect("a file");
}

/// Answers with the question, after a pause.
fn echo(pause: Duration) -> impl Fn(&Hit) -> Vec<Act> {
    move |hit: &Hit| {
        let body: Value = serde_json::from_str(&hit.body).expect("a request in JSON");
        let said = format!("You said: {}", body["messages"][0]["content"].as_str().unwrap_or("?"));
        let answer = json!({
            "id": "chat-1", "model": "gpt-4o-2024-08-06",
            "choices": [{"message": {"content": said}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 7},
        });
        [vec![Act::Pause(pause)], Act::answer(200, &[], &answer.to_string())].concat()
    }
}

fn ask(site: &Site, key: &str, prompt: &str) -> Said {
    site.call_reading(&["agents", "ask", "--role", "coder", "--key", key], prompt)
}

#[test]
fn who_answers() {
    let site = Site::new(BINARY);
    let _ = site.call(&["agents"]).exits(0).says(["no agent is set"]);
    let _ = site.call(&["agents", "check"]).exits(2).says(["no agent is set"]);
    let more = "[agents.ideas]\nprovider = 'anthropic'\nmodel = 'my-model'\n[agents.reviewer]\nprovider = 'command'\ncommand = ['./review.sh', '-v']\n[prices.my-model]\ninput = 1\noutput = 2\n";
    configure(&site, &(coder("http://127.0.0.1:1") + more));
    let said = site.call(&["agents"]).exits(0);
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("agents", said.stdout);
    });
    let listed = site.call(&["agents", "--json"]).exits(0).json_lines().remove(0);
    assert_eq!(
        listed["agents"][0]["key"],
        json!({"variable": "CANARY_KEY", "found": true, "file": ".env"})
    );
    assert_eq!(
        listed["agents"][2]["price"],
        json!({"input": 1.0, "output": 2.0, "cached": 1.0, "built_in": false})
    );
    let doctor = site.call(&["doctor"]).exits(4).stdout;
    assert!(doctor.contains("problem  agents         the agent of the role `ideas` needs a key, and the variable `ANTHROPIC_API_KEY` is not set"), "{doctor}");
    let _ = site.call_reading(&["agents", "ask", "--role", "ideas"], "x").exits(4).says([
        "`ANTHROPIC_API_KEY` is not set",
        "hint: put `ANTHROPIC_API_KEY=…` into `.env`, or export it",
    ]);
    let _ = site
        .call_reading(&["agents", "ask", "--role", "planner"], "x")
        .exits(2)
        .says(["no agent is set for the role `planner`"]);
    let _ = site
        .call_reading(&["agents", "ask", "--role", "chef"], "x")
        .exits(2)
        .says(["the roles are `coordinator`"]);
    let _ = site.call_reading(&["agents", "ask", "--role", "coder", "--key", "../x"], "x").exits(2);
    let _ = site
        .call_reading(&["agents", "ask", "--role", "coder"], " \n")
        .exits(2)
        .says(["no question"]);
}

#[test]
fn a_question_is_answered_kept_and_counted() {
    let server = Server::start(echo(Duration::ZERO));
    let site = site(&server.url());
    assert_eq!(ask(&site, "k", "hello").exits(0).stdout, "You said: hello\n");
    assert_eq!(ask(&site, "k", "hello").exits(0).stdout, "You said: hello\n");
    assert_eq!(server.hits().len(), 1);
    assert_eq!(ask(&site, "k", "bye").exits(0).stdout, "You said: bye\n");
    assert_eq!(server.hits().len(), 2);
    let said = site
        .call_reading(&["agents", "ask", "--role", "coder", "--json"], "hello")
        .exits(0)
        .json_lines()
        .remove(0);
    assert_eq!(said["usage"], json!({"input": 11, "cached": 0, "output": 7}));
    assert!((said["cost_usd"].as_f64().expect("a cost") - 97.5e-6).abs() < 1e-12, "{said}");
    assert_eq!(said["model"], "gpt-4o-2024-08-06");
    // 3 × 18 tokens are spent; the next question could exceed the rest of 150.
    let budget = ["agents", "ask", "--role", "coder", "--max-tokens-total", "150"];
    let _ = site
        .call_reading(&budget, "hello")
        .exits(1)
        .says(["`max_tokens_total`: 54 of 150 tokens are spent"]);
    let _ = site
        .call_reading(&["agents", "ask", "--role", "coder", "--max-cost-usd", "0.0001"], "hello")
        .exits(1)
        .says(["`max_cost_usd`"]);
    assert_eq!(server.hits().len(), 3);
}

#[test]
fn check_asks_each_distinct_agent_once() {
    let server = Server::start(|hit: &Hit| {
        if hit.path == "/responses" {
            let body: Value = serde_json::from_str(&hit.body).expect("JSON");
            if !body["previous_response_id"].is_null() {
                let error = json!({"error": {"code": 400, "message": "'previous_response_id' is not supported"}});
                return Act::answer(400, &[], &error.to_string());
            }
            let output =
                json!([{"type": "message", "content": [{"type": "output_text", "text": "ok"}]}]);
            let answer = json!({"id": "resp-1", "status": "completed", "output": output});
            return Act::answer(200, &[], &answer.to_string());
        }
        if hit.path.contains("/v1/messages") {
            return Act::answer(
                401,
                &[],
                &format!("{{\"error\": {{\"message\": \"bad key {CANARY}\"}}}}"),
            );
        }
        echo(Duration::ZERO)(hit)
    });
    let site = site(&server.url());
    let url = server.url();
    let more = format!(
        "[agents.planner]\nprovider = 'openai'\nmodel = 'm'\nbase_url = '{url}'\n[agents.reviewer]\nprovider = 'anthropic'\nmodel = 'm'\nbase_url = '{url}'\napi_key_env = 'CANARY_KEY'\n[agents.ideas]\nprovider = 'openai'\nmodel = 'm'\nbase_url = '{url}'\n"
    );
    configure(&site, &(coder(&url) + &more));
    let said = site.call(&["agents", "check", "--json"]).exits(4);
    let document = said.json_lines().remove(0);
    let find = |role: &str| {
        let agents = document["agents"].as_array().expect("agents").iter();
        agents.clone().find(|agent| agent["role"] == role).expect("the role").clone()
    };
    assert_eq!(
        (&find("coder")["ok"], &find("coder")["continuation"]),
        (&json!(true), &json!("replay"))
    );
    let planner = find("planner");
    assert_eq!(
        (&planner["reply"], &planner["continuation"], &planner["usage"]),
        (&json!("ok"), &json!("replay"), &Value::Null)
    );
    assert!(
        planner["note"]
            .as_str()
            .is_some_and(|note| note.starts_with("`auto` falls back to replay")),
        "{planner}"
    );
    assert_eq!(find("ideas")["note"], planner["note"]);
    let reviewer = find("reviewer");
    assert_eq!(reviewer["ok"], false);
    assert!(
        reviewer["error"].as_str().is_some_and(|error| error.contains("bad key [hidden]")),
        "{reviewer}"
    );
    assert!(
        reviewer["hint"].as_str().is_some_and(|hint| hint.contains("`CANARY_KEY`")),
        "{reviewer}"
    );
    // One call for the coder, two for planner and ideas together, one refused.
    assert_eq!(server.hits().len(), 4, "{:?}", server.hits());
    let said =
        site.call(&["agents", "check"]).exits(4).says(["the key was refused", "hint: put a key"]);
    assert!(!(said.stdout + &said.stderr).contains(CANARY));
}

#[test]
#[cfg(unix)]
fn check_asks_different_servers_at_the_same_time() {
    let site = Site::new(BINARY);
    // Each of these answers once the other one has been called.
    let program = |role: &str, own: &str, other: &str| {
        let look = format!("[ -e {other} ] && echo ok && exit; sleep 0.1");
        let script = format!("cat > /dev/null; touch {own}; for i in $(seq 200); do {look}; done");
        format!("[agents.{role}]\nprovider = 'command'\ncommand = \"\"\"{script}\"\"\"\n")
    };
    configure(&site, &(program("coder", "one", "two") + &program("planner", "two", "one")));
    let document = site.call(&["agents", "check", "--json"]).exits(0).json_lines().remove(0);
    let agents = document["agents"].as_array().expect("agents");
    let replies: Vec<_> = agents.iter().map(|agent| &agent["reply"]).collect();
    assert_eq!(replies, ["ok\n", "ok\n"], "{document}");
}

#[test]
#[cfg(unix)]
fn a_program_answers_and_knows_only_what_it_needs() {
    let site = Site::new(BINARY);
    let script = "cat; echo; env | sort; cat /proc/$PPID/environ 2>/dev/null | tr '\\0' '\\n'; pwd";
    let toml = |key: &str| {
        format!(
            "[agents.coder]\nprovider = 'command'\ncommand = \"\"\"{}\"\"\"\n{key}",
            script.replace('\\', "\\\\")
        )
    };
    configure(&site, &toml(""));
    let mut variables = site.repo.variables();
    variables.push((OsString::from("OTHER_KEY"), OsString::from(CANARY)));
    let arguments = ["agents", "ask", "--role", "coder"];
    let said = site
        .begin_reading(variables.clone(), &arguments, "the prompt")
        .end(Duration::from_mins(1))
        .exits(0);
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert_eq!(lines[0], "the prompt");
    for line in ["TREEBEAM_ROLE=coder", "TREEBEAM_ROUND=0"] {
        assert!(lines.contains(&line), "no {line} in {lines:?}");
    }
    let here = site.repo.path().canonicalize().expect("a path");
    assert_eq!(lines.last(), Some(&here.to_str().expect("a name")));
    // An administrator can read the arguments of every process.
    let root =
        fs::read_to_string("/proc/self/status").is_ok_and(|text| text.contains("\nUid:\t0\t"));
    if !root {
        assert!(!said.stdout.contains(CANARY), "{}", said.stdout);
    }
    configure(&site, &toml("").replace("; cat /proc/$PPID/environ", "; cat /dev/null"));
    let said =
        site.begin_reading(variables.clone(), &arguments, "x").end(Duration::from_mins(1)).exits(0);
    assert!(!said.stdout.contains(CANARY) && !said.stdout.contains("OTHER_KEY"), "{}", said.stdout);
    let named = toml("api_key_env = 'CANARY_KEY'\n")
        .replace("; cat /proc/$PPID/environ", "; cat /dev/null");
    configure(&site, &named);
    let said = site.begin_reading(variables, &arguments, "x").end(Duration::from_mins(1)).exits(0);
    assert!(said.stdout.contains("CANARY_KEY=[hidden]"), "{}", said.stdout);
}

/// Collects the files below a folder that contain the canary.
fn betrayed(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        if entry.file_type().expect("a type").is_dir() {
            betrayed(&entry.path(), found);
        } else if entry.file_name() != ".env" {
            let bytes = fs::read(entry.path()).unwrap_or_default();
            if bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes()) {
                found.push(entry.path().display().to_string());
            }
        }
    }
}

#[test]
fn the_canary_is_nowhere() {
    let site = site(&format!("http://127.0.0.1:{}", closed_port()));
    let mut spoken = String::new();
    for arguments in [
        &["agents"][..],
        &["agents", "--json"],
        &["agents", "check"],
        &["agents", "check", "--json"],
        &["agents", "ask", "--role", "coder"],
        &["agents", "ask", "--role", "coder", "--json", "--key", "k"],
        &["doctor"],
        &["doctor", "--json"],
        &["config"],
        &["config", "--json"],
        &["init", "--force"],
    ] {
        let said = site.call_reading(arguments, "a question");
        assert!(said.code.is_some(), "{arguments:?}");
        spoken += &(said.stdout + &said.stderr);
    }
    assert!(spoken.contains("CANARY_KEY"), "{spoken}");
    assert!(!spoken.contains(CANARY), "{spoken}");
    let mut found = Vec::new();
    betrayed(site.repo.path(), &mut found);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn what_they_print_fits_the_schemas() {
    let server = Server::start(echo(Duration::ZERO));
    let site = site(&server.url());
    for (name, arguments) in [
        ("agents", &["agents", "--json"][..]),
        ("agents.check", &["agents", "check", "--json"]),
        ("agents.ask", &["agents", "ask", "--role", "coder", "--json"]),
    ] {
        let mut schema: Value =
            serde_json::from_str(&site.call(&["schema", name]).exits(0).stdout).expect("a schema");
        schema["additionalProperties"] = json!(false);
        if !schema["properties"]["agents"].is_null() {
            schema["properties"]["agents"]["items"]["additionalProperties"] = json!(false);
        }
        let document = site.call_reading(arguments, "x").exits(0).json_lines().remove(0);
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        let found: Vec<String> =
            validator.iter_errors(&document).map(|error| error.to_string()).collect();
        assert!(found.is_empty(), "{name}: {found:?}\n{document}");
    }
}

/// After a kill at any moment, a call whose record is on disk is not repeated, and no kill costs
/// more than one call.
#[test]
fn a_kill_repeats_nothing_that_is_on_disk() {
    let server = Server::start(echo(Duration::from_millis(20)));
    let site = site(&server.url());
    let rounds = if std::env::var_os("TREEBEAM_CAMPAIGN").is_some() { 400 } else { 40 };
    let (mut kept, mut asked_again) = (0, 0);
    for round in 0..rounds {
        let (key, prompt) = (format!("k-{round}"), format!("question {round}"));
        let arguments = ["agents", "ask", "--role", "coder", "--key", &key];
        let hits = || {
            server.hits().iter().filter(|hit| hit.body.contains(&format!("\"{prompt}\""))).count()
        };
        let call = site.begin_reading(site.repo.variables(), &arguments, &prompt);
        let killed = call.end(Duration::from_millis(round * 7 % 140));
        let record = site.repo.path().join(format!(".treebeam/calls/{key}.json"));
        let on_disk = record.exists();
        let said = site.call_reading(&arguments, &prompt).exits(0);
        assert_eq!(said.stdout, format!("You said: {prompt}\n"));
        // A call of a killed program may arrive late, but it is a single one.
        let most = if on_disk { 1 } else { 2 };
        assert!((1..=most).contains(&hits()), "round {round}: {} hits, {killed:?}", hits());
        kept += usize::from(on_disk);
        asked_again += hits() - 1;
    }
    // A call lost by a kill counts as spent, at its maximum.
    let spent = site
        .call_reading(&["agents", "ask", "--role", "coder", "--max-tokens-total", "1"], "x")
        .exits(1);
    assert!(spent.stderr.contains("tokens are spent"), "{}", spent.stderr);
    assert!(kept > 0 && asked_again > 0, "{kept} kept, {asked_again} asked again of {rounds}");
}
