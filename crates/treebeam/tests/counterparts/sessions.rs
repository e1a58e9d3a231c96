//! A whole search whose ideas come from a real coding agent: each child continues in a fork of its
//! parent's session, which stays unchanged, and has nothing of its sibling's fork.

use crate::door::{BINARY, VARIABLE};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use treebeam_testkit::counterpart::{CounterpartServer, folder, node};
use treebeam_testkit::program::{SITE_RUN_ID, Site};

/// Coder that adds a file of the eval's own, which is what is measured.
const CODER: &str =
    "printf -- '--- /dev/null\\n+++ b/g%s.txt\\n@@ -0,0 +1 @@\\n+1\\n' \"$TREEBEAM_EVAL\"\n";
const SWEEP: &str = "n=$(ls g*.txt 2>/dev/null | wc -l)\nprintf 'config_id,status,gain\\n0,ok,%s\\n' \"$((n + 1))\" > \"$AGENTIC_RESULTS_CSV\"\n";

/// Text that only the root's answer has; `QUESTION` is in every question for ideas.
const FIRST: &str = "FIRST-THOUGHT";
const QUESTION: &str = "new ideas that could improve the results";

/// Answers of the model: one to the root, others to all later questions.
fn script() -> Value {
    let idea = |title: &str| format!("IDEA: {title}\nRATIONALE: r\nREQUIRED_CHANGES: c\n");
    let usage = json!({ "input_tokens": 100, "output_tokens": 20 });
    let says = |matched: Value, titles: [&str; 2]| {
        let content = titles.map(idea).concat();
        json!({ "match": matched, "response": { "content": content, "usage": usage } })
    };
    let first = json!({ "userMessage": QUESTION, "sequenceIndex": 0 });
    json!({ "fixtures": [
        says(first, [&format!("{FIRST} one"), &format!("{FIRST} two")]),
        says(json!({ "userMessage": QUESTION }), ["LATER-THOUGHT one", "LATER-THOUGHT two"]),
    ]})
}

fn site(agent: &str) -> Site {
    let site = Site::new(BINARY);
    let config = format!(
        "sweep_command = ['sh', 'sweep.sh']\nscore.primary = 'gain:higher'\nideas_per_node = 2\nbeam_width = 2\n\
         idea_conversation_mode = 'native'\n[agents.coder]\nprovider = 'command'\ncommand = ['sh', 'coder.sh']\n{agent}"
    );
    site.repo.write("coder.sh", CODER).expect("a file");
    site.repo.write("sweep.sh", SWEEP).expect("a file");
    site.repo.commit("scripts").expect("a commit");
    site.repo.write("treebeam.toml", &config).expect("a file");
    site.repo.write(".env", &format!("{VARIABLE}=sk-for-tests\n")).expect("a file");
    site
}

fn agent(provider: &str, script: &str, url: &str, more: &str) -> String {
    let script = folder(provider).join("node_modules").join(script);
    format!(
        "[agents.ideas]\nprovider = '{provider}'\nhome = 'scratch'\nbase_url = '{url}'\napi_key_env = '{VARIABLE}'\n\
         command = ['{}', '{}']\n{more}",
        node().get_program().to_string_lossy(),
        script.display(),
    )
}

/// Returns the files of a session in the home of its agent.
fn session(site: &Site, id: &str) -> BTreeMap<String, Vec<u8>> {
    let mut files = site.files("home");
    files.retain(|path, _| path.rsplit('/').next().is_some_and(|name| name.contains(id)));
    files
}

/// Returns the questions after the first `before`, each with all that came before it.
fn shown(server: &CounterpartServer, before: usize) -> Vec<String> {
    let journal = server.get("/__aimock/journal");
    let bodies = journal.as_array().expect("a journal").iter().skip(before);
    bodies.map(|entry| entry["body"].to_string()).filter(|body| body.contains(QUESTION)).collect()
}

fn meet(server: &CounterpartServer, agent: &str) {
    let site = site(agent);
    let _ =
        site.call(&["run", "--run-id", SITE_RUN_ID, "--max-depth=1", "--quiet", "--yes"]).exits(0);
    let root = &site.manifest()["conversations"]["c0000"];
    let id = root["provider_ids"][0].as_str().expect("a session").to_owned();
    let (parent, before) = (session(&site, &id), shown(server, 0).len());
    assert!(!parent.is_empty(), "{:?}", site.files("home").keys());
    let _ = site.call(&["resume", SITE_RUN_ID, "--max-depth=2", "--quiet"]).exits(0);
    let after = session(&site, &id);
    assert!(after == parent, "{:?} became {:?}", parent.keys(), after.keys());
    let mut ids = BTreeSet::from([id.clone()]);
    for name in ["c0001", "c0002"] {
        let talk = site
            .call(&["show", SITE_RUN_ID, "conv", name, "--json"])
            .exits(0)
            .json_lines()
            .remove(0);
        let turn = &talk["turns"][0];
        assert_eq!((&turn["mode"], &turn["continued_id"]), (&json!("native"), &json!(id)));
        assert!(turn["note"].is_null(), "{turn}");
        assert!(ids.insert(turn["provider_id"].as_str().expect("a session").to_owned()), "{turn}");
    }
    let shown = shown(server, 0).split_off(before);
    assert!(shown.len() >= 2, "{shown:#?}");
    for body in &shown {
        assert_eq!(body.matches(QUESTION).count(), 2, "the root's question and its own: {body}");
        assert!(body.contains(FIRST) && !body.contains("LATER-THOUGHT"), "{body}");
    }
    site.must_be_sound();
    fs::remove_dir_all(site.path("home")).expect("its home");
}

#[test]
#[ignore = "needs real counterparts: run by `cargo xtask test`"]
fn claude_forks_a_session_for_each_child() {
    let server = CounterpartServer::aimock(&script());
    // The server keeps no request that is longer than 64 KB, as the description of all tools is.
    let more = "model = 'claude-sonnet-4-5'\nargs = ['--tools', 'Write']\n";
    let script = "@anthropic-ai/claude-code/cli-wrapper.cjs";
    meet(&server, &agent("claude", script, &server.url(), more));
}

#[test]
#[ignore = "needs real counterparts: run by `cargo xtask test`"]
fn codex_forks_a_session_for_each_child() {
    let server = CounterpartServer::aimock(&script());
    let url = format!("{}/v1", server.url());
    meet(&server, &agent("codex", "@openai/codex/bin/codex.js", &url, "model = 'gpt-5'\n"));
}
