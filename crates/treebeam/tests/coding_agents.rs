//! Coding agents with the real program, as scripts that imitate the real ones: their versions in
//! `doctor`, their sessions and usage in `agents check`, and that they get no more variables than
//! they need.

#![cfg(test)]
#![cfg(unix)]

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use treebeam_testkit::program::Site;

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const CANARY: &str = "sk-canary-0815-4711";

/// Imitates codex: its reported usage is that of the whole thread, and a fork starts with that of
/// its parent.
const CODEX: &str = r#"
case "$*" in *--version*) echo codex-cli 0.166.0; exit;; esac
env > "$OUT.env"; pwd > "$OUT.pwd"; echo "$*" >> "$OUT.args"; cat > "$OUT.prompt"
case "$*" in *fork*) id=t-2; taken=140;; *) id=t-1; taken=100;; esac
echo '{"type":"thread.started","thread_id":"'$id'"}'
echo 'a warning'
echo '{"type":"item.completed","item":{"type":"agent_message","text":"ok"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":'$taken',"cached_input_tokens":0,"output_tokens":10}}'
"#;

/// Writes a script beside the repository.
fn program(site: &Site, name: &str, text: &str) -> PathBuf {
    let folder = site.repo.path().parent().expect("a folder").join("bin");
    fs::create_dir_all(&folder).expect("a folder");
    let (file, out) = (folder.join(name), folder.join("out"));
    let head = format!("#!/bin/sh\nOUT='{}'\n", out.display());
    fs::write(&file, head + text).expect("a script");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a program");
    file
}

/// Returns what a script recorded.
fn noted(site: &Site, what: &str) -> String {
    let file = site.repo.path().parent().expect("a folder").join(format!("bin/out.{what}"));
    fs::read_to_string(file).unwrap_or_default()
}

fn configure(site: &Site, text: &str) {
    site.repo.write("treebeam.toml", text).expect("a file");
    site.repo.write(".env", &format!("CANARY_KEY={CANARY}\nOTHER_KEY=sk-other\n")).expect("a file");
}

fn coder(site: &Site, provider: &str, script: &str, more: &str) -> String {
    let command = program(site, provider, script);
    format!("[agents.coder]\nprovider = '{provider}'\ncommand = ['{}']\n{more}", command.display())
}

fn checked(site: &Site, code: i32) -> Value {
    site.call(&["agents", "check", "--json"]).exits(code).json_lines().remove(0)["agents"][0]
        .clone()
}

#[test]
fn a_session_is_forked_and_a_turn_takes_what_it_took() {
    let site = Site::new(BINARY);
    let more = "model = 'gpt-5'\napi_key_env = 'CANARY_KEY'\nhome = 'scratch'\nargs = ['--mine']\n";
    configure(&site, &coder(&site, "codex", CODEX, more));
    let found = checked(&site, 0);
    assert_eq!(found["continuation"], "native", "{found}");
    assert_eq!(found["usage"], json!({ "input": 100, "cached": 0, "output": 10 }));
    // The second turn counts the difference, in the ledger too.
    let calls = site.repo.path().join(".treebeam/calls");
    let mut taken: Vec<u64> = fs::read_dir(calls)
        .expect("calls")
        .map(|file| fs::read(file.expect("a file").path()).expect("a call"))
        .map(|bytes| serde_json::from_slice::<Value>(&bytes).expect("JSON"))
        .map(|call| call["amount"]["tokens"].as_u64().expect("tokens"))
        .collect();
    taken.sort_unstable();
    assert_eq!(taken, [40, 110]);
    let arguments = noted(&site, "args");
    assert!(arguments.contains("exec fork ") && arguments.contains("--mine t-1 -"), "{arguments}");
    assert!(!arguments.contains("workspace-write"), "outside of a run nobody edits: {arguments}");
    assert_eq!(noted(&site, "prompt"), "Reply with the single word: ok");
    // The agent works in a folder of its own, with its own key, in a home of its own.
    let (folder, variables) = (noted(&site, "pwd"), noted(&site, "env"));
    assert!(folder.trim_end().ends_with(".treebeam/desk/empty"), "{folder}");
    assert!(variables.contains(&format!("CODEX_API_KEY={CANARY}\n")), "{variables}");
    assert!(!variables.contains("sk-other") && !variables.contains("CANARY_KEY"), "{variables}");
    assert!(variables.contains("/.treebeam/home\n"), "{variables}");
    assert_eq!(site.repo.git(["status", "--porcelain"]).expect("git"), "?? .env\n?? treebeam.toml");
}

#[test]
fn one_that_keeps_no_sessions_is_replayed() {
    let site = Site::new(BINARY);
    let aider =
        "echo 'ok'; echo 'Tokens: 1.2k sent, 16 received. Cost: $0.01 message, $0.01 session.'";
    configure(&site, &coder(&site, "aider", aider, ""));
    let found = checked(&site, 0);
    assert_eq!((&found["continuation"], &found["cost_usd"]), (&json!("replay"), &json!(0.01)));
    assert_eq!(found["usage"], json!({ "input": 1200, "cached": 0, "output": 16 }));
}

#[test]
fn what_goes_wrong_is_told() {
    let refused = r#"echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":401,"result":"Failed to authenticate. API Error: 401","usage":{"input_tokens":0}}'; exit 1"#;
    let site = Site::new(BINARY);
    configure(&site, &coder(&site, "claude", refused, ""));
    let found = checked(&site, 4);
    assert!(found["error"].as_str().is_some_and(|why| why.contains("the key was refused")));
    let hint = "log in with `claude`, or name the variable that has the key in `api_key_env`";
    assert_eq!(found["hint"], hint);
    // Success without output is no answer.
    configure(&site, &coder(&site, "aider", "exit 0", ""));
    let found = checked(&site, 1);
    assert_eq!(found["ok"], false);
    configure(&site, "[agents.coder]\nprovider = 'codex'\nhome = 'tent'\n");
    let _ = site
        .call(&["agents"])
        .exits(2)
        .says(["`treebeam.toml`, line 3", "it must be `user` or `scratch`, not `tent`"]);
}

#[test]
fn the_doctor_looks_at_versions() {
    let site = Site::new(BINARY);
    let check = |provider: &str, script: &str, code: i32, expect: &str| {
        configure(&site, &coder(&site, provider, script, ""));
        let said = site.call(&["doctor"]);
        assert!(said.stdout.contains(expect), "{expect}: {}", said.stdout);
        assert_eq!(said.code, Some(code), "{}", said.stdout);
    };
    check("codex", "echo codex-cli 0.166.0", 0, "ok       agents         coder");
    check(
        "claude",
        "echo '1.0.3 (Claude Code)'",
        0,
        "warning  agents         `claude` is 1.0.3 (Claude Code), older than what treebeam was tried with",
    );
    check("opencode", "echo what", 0, "the version of `opencode` is not known");
    configure(&site, "[agents.coder]\nprovider = 'gemini-cli'\ncommand = ['/no/such/gemini']\n");
    let said = site.call(&["doctor"]).exits(4).stdout;
    assert!(said.contains("problem  agents         `gemini-cli` is not there"), "{said}");
    assert!(said.contains("do: install `/no/such/gemini` 0.61 or newer"), "{said}");
}

#[test]
fn a_price_that_nobody_can_know_is_not_asked_for_by_name() {
    let site = Site::new(BINARY);
    let check = |more: &str, expect: &str| {
        let agent = coder(&site, "codex", "echo codex-cli 0.166.0", more);
        configure(&site, &format!("max_cost_usd = 5\n{agent}"));
        let said = site.call(&["doctor"]).stdout;
        assert!(said.contains(expect) && !said.contains("its own choice"), "{expect}: {said}");
    };
    check("", "`codex` chooses its model itself: `max_cost_usd` counts only what it says");
    check("", "do: set `model`, or `max_tokens_total`");
    check("model = 'm-1'\n", "the price of `m-1` is not known: `max_cost_usd` does not count it");
}

#[test]
fn one_can_have_any_role() {
    let site = Site::new(BINARY);
    for role in ["coordinator", "planner", "coder", "reviewer", "ideas"] {
        let agent =
            coder(&site, "codex", CODEX, "").replace("[agents.coder]", &format!("[agents.{role}]"));
        configure(&site, &agent);
        assert_eq!(checked(&site, 0)["role"], role);
        let said = site.call_reading(&["agents", "ask", "--role", role], "What?").exits(0);
        assert_eq!(said.stdout.trim(), "ok", "{role}");
        // Outside of a run no agent may edit.
        assert!(!noted(&site, "args").contains("workspace-write"), "{role}");
    }
}
