//! Conversations with the real program: the content of prompts, kills and resumes, and damaged
//! files. Providers with a memory are in `native`, a real one in `llama_stack`, summaries in
//! `summary`, the commands of the documentation in `commands`.

#![cfg(test)]
#![cfg(target_os = "linux")]

mod commands;
mod llama_stack;
mod native;
mod summary;

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use treebeam_testkit::fault::Fault;
use treebeam_testkit::program::{SITE_RUN_ID, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const SIZE: [&str; 5] = [
    "--ideas-per-node=5",
    "--beam-width=3",
    "--quiet",
    "--max-parallel-evals=2",
    "--stop-on-empty-frontier",
];
/// Heading of the earlier turns in a prompt.
const MEMORY: &str = "=== WHAT WAS SAID BEFORE IN THIS BRANCH ===";

fn words<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    [&["run", "--dry-run", "--run-id", SITE_RUN_ID], &SIZE[..], flags].concat()
}

fn run(flags: &[&str]) -> Site {
    let site = Site::new(BINARY);
    let _ = site.call(&words(flags)).exits(0);
    site
}

/// Makes a run of three depths.
fn whole() -> Site {
    run(&["--max-depth=3"])
}

/// The questions of a run, by path.
fn prompts(site: &Site) -> BTreeMap<String, String> {
    let files = site.files("node_ideas").into_iter();
    let prompts = files.filter(|(name, _)| name.ends_with("_prompt.txt"));
    prompts.map(|(name, bytes)| (name, String::from_utf8(bytes).expect("text"))).collect()
}

/// Returns the part of a prompt with the earlier turns.
fn memory(prompt: &str) -> &str {
    let Some((_, rest)) = prompt.split_once(MEMORY) else { return "" };
    let begun = rest.find("\n```\n").expect("a fence") + 5;
    let end = rest[begun..].find("\n```\n").expect("its end");
    &rest[..begun + end + 5]
}

/// Returns the turns that may occur in a conversation before this one: those of its lineage, up to
/// each fork, and its own.
fn lineage(manifest: &Value, node: &str) -> Vec<String> {
    let conversation = &manifest["conversations"][&format!("c{node}")];
    let Some(fork) = conversation["fork_from_turn_id"].as_str() else { return Vec::new() };
    let (parent, last) = fork[1..].split_once("-t").expect("a turn");
    let last: u32 = last.parse().expect("a number");
    let mut turns = lineage(manifest, parent);
    turns.extend((1..=last).map(|number| format!("c{parent}-t{number}")));
    turns
}

/// Returns the turns that a text mentions.
fn told(memory: &str) -> Vec<String> {
    let lines = memory.lines().filter_map(|line| {
        let line =
            line.strip_prefix("TURN ").or_else(|| line.strip_prefix("- c").map(|_| &line[2..]))?;
        let (turn, _) = line.split_once(": ")?;
        (turn.contains("-t")).then(|| turn.to_owned())
    });
    lines.collect()
}

#[test]
fn a_branch_knows_its_own_past_and_nothing_of_its_siblings() {
    let site = whole();
    let manifest = site.manifest();
    let nodes = manifest["nodes"].as_object().expect("nodes");
    let children = |of: &str| nodes.values().filter(|node| node["parent_node_id"] == of).count();
    assert_eq!(children("0000"), 3, "B, C and D fork from A");
    assert!(nodes.values().any(|node| node["depth"] == 2), "and go on");
    let (prompts, mut deepest) = (prompts(&site), 0);
    for (name, prompt) in &prompts {
        // `0001/calls/ideas-n0001-x1-a2_prompt.txt`
        let (node, turn) = name.split_once("-x1-a").expect("a first expansion");
        let (node, turn) = (&node[node.len() - 4..], &turn[..1]);
        let own = (1..turn.parse::<u32>().expect("a number")).map(|n| format!("c{node}-t{n}"));
        let may: Vec<String> = lineage(&manifest, node).into_iter().chain(own).collect();
        assert_eq!(told(memory(prompt)), may, "{name}: {}", memory(prompt));
        deepest = deepest.max(nodes[node]["depth"].as_u64().expect("a depth"));
        for sibling in nodes.keys().filter(|other| *other != node) {
            let known = may.iter().any(|turn| turn.starts_with(&format!("c{sibling}-")));
            let answer = format!("(n{sibling}-x1-");
            assert!(known || !memory(prompt).contains(&answer), "{name} knows of {sibling}");
        }
    }
    assert_eq!(deepest, 2, "{:?}", prompts.keys());
    for (id, conversation) in manifest["conversations"].as_object().expect("conversations") {
        if conversation["latest_turn_id"].is_null() {
            assert_eq!(
                (&conversation["mode"], &conversation["state_path"]),
                (&json!("off"), &Value::Null)
            );
            continue;
        }
        assert_eq!(conversation["mode"], "replay", "{id}");
        let state: Value = read(&site, &conversation["state_path"]);
        assert_eq!(state["latest_turn_id"], conversation["latest_turn_id"]);
        let log = site.text(conversation["turns_path"].as_str().expect("a path"));
        for line in log.lines() {
            let turn: Value = serde_json::from_str(line).expect("a turn");
            assert!(site.path(turn["reply_path"].as_str().expect("a path")).is_file(), "{turn}");
        }
        assert!(site.text(conversation["summary_path"].as_str().expect("a path")).contains(id));
    }
    shown(&site);
}

fn read(site: &Site, path: &Value) -> Value {
    serde_json::from_str(&site.text(path.as_str().expect("a path"))).expect("JSON")
}

fn shown(site: &Site) {
    let shown = site.call(&["show", SITE_RUN_ID, "n0004"]).exits(0).stdout;
    for text in [
        "conversation c0004, from c000",
        ", from c0000-t",
        "told node_ideas/0004/calls/ideas-n0004",
    ] {
        assert!(shown.contains(text), "{shown}");
    }
    let shown = site.call(&["show", SITE_RUN_ID, "c0001"]).exits(0).stdout;
    for text in
        ["c0001 of n0001", "c0001-t1: replay, 5 ideas asked for", "conversations/c0001.jsonl"]
    {
        assert!(shown.contains(text), "{shown}");
    }
    let _ = site.call(&["show", SITE_RUN_ID, "c0999"]).exits(2).says(["no `n0999`"]);
    assert!(site.call(&["log", SITE_RUN_ID]).exits(0).stdout.contains(", 1 turn, replay"));
}

#[test]
fn without_conversations_nothing_is_told_again_and_nothing_is_kept() {
    let (with, without) = (whole(), run(&["--max-depth=3", "--idea-conversation-mode=off"]));
    assert!(without.names("conversations").is_empty());
    let (with, without) = (prompts(&with), prompts(&without));
    assert_eq!(with.keys().collect::<Vec<_>>(), without.keys().collect::<Vec<_>>());
    for (name, prompt) in &without {
        assert!(!prompt.contains(MEMORY), "{name}");
        let told = memory(&with[name]);
        let section = if told.is_empty() { String::new() } else { format!("{MEMORY}{told}\n") };
        assert_eq!(&with[name].replacen(&section, "", 1), prompt, "{name}");
    }
}

#[test]
fn a_small_memory_keeps_to_its_limit() {
    let site =
        run(&["--max-depth=3", "--idea-history-window-turns=1", "--idea-history-max-chars=500"]);
    let mut cut = 0;
    for (name, prompt) in prompts(&site) {
        let told = memory(&prompt);
        assert!(told.chars().count() <= 500 + 60, "{name}: {told}");
        assert!(told.matches("\nTURN ").count() <= 1, "{name}: {told}");
        cut += told.matches("(cut)").count();
    }
    assert!(cut > 0);
}

/// Number of kills; in a campaign fifty.
fn kills() -> u64 {
    if std::env::var_os("TREEBEAM_CAMPAIGN").is_some() { 50 } else { 8 }
}

#[test]
fn killed_amid_its_turns_a_run_has_the_same_lineage_and_no_turn_twice() {
    let (whole, fault, words) = (Site::new(BINARY), Fault::none(), words(&["--max-depth=3"]));
    let _ = whole.call_with_fault(&fault, &words).exits(0);
    whole.must_be_sound();
    let operations = fault.operations();
    let all = operations.iter().map(|operation| operation.number).max().expect("operations");
    for number in 1..=kills() {
        let site = Site::new(BINARY);
        let when = ["before", "amid", "after"][usize::try_from(number % 3).expect("small")];
        // Evenly spread over the whole, and each in another part of its stretch.
        let at = all * number / (kills() + 1) + number % 7;
        let said = site.call_with_fault(&Fault::plan(&format!("kill {when} {at}")), &words);
        assert_eq!(said.code, None, "kill {when} {at} of {all}: {}", said.stderr);
        let _ = site.call(&words).exits(0);
        site.must_be_sound();
        whole.must_equal(&site);
    }
}

#[test]
fn what_was_damaged_is_set_aside_and_made_anew() {
    let (whole, site) = (whole(), run(&["--max-depth=1"]));
    let state = site.text("conversations/c0000.json");
    fs::write(site.path("conversations/c0000.json"), &state[..state.len() / 2])
        .expect("half of it");
    fs::write(site.path("conversations/c0000.jsonl"), "no turn\n").expect("rubbish");
    fs::remove_file(site.path("conversations/c0000_summary.md")).expect("gone");
    let _ = site.call(&["resume", SITE_RUN_ID, "--max-depth=3", "--quiet"]).exits(0);
    for name in ["c0000.json", "c0000.jsonl", "c0000_summary.md"] {
        assert!(site.path(&format!("conversations/{name}")).is_file(), "{name}");
    }
    assert_eq!(site.text("conversations/c0000.jsonl"), whole.text("conversations/c0000.jsonl"));
    assert_eq!(site.names("conversations/damaged"), ["c0000.json", "c0000.jsonl"]);
    assert!(site.call(&["log", SITE_RUN_ID]).exits(0).stdout.contains("made anew from the record"));
    assert_eq!(prompts(&whole), prompts(&site), "nothing of the memory is lost");
    site.must_be_sound();
}

#[test]
fn an_answer_that_is_lost_is_told_in_short() {
    let site = run(&["--max-depth=1"]);
    fs::write(site.path("node_ideas/0000/calls/ideas-n0000-x1-a1.txt"), "another").expect("a file");
    let _ = site.call(&["resume", SITE_RUN_ID, "--max-depth=2", "--quiet"]).exits(0);
    let prompt = &prompts(&site)["node_ideas/0001/calls/ideas-n0001-x1-a1_prompt.txt"];
    assert!(memory(prompt).contains("(its text is not at hand)"), "{prompt}");
    let shown = site.call(&["show", SITE_RUN_ID, "c0001"]).exits(0).stdout;
    assert!(shown.contains("note: the text of turn c0000-t1 is lost"), "{shown}");
}

#[test]
fn an_older_record_goes_on_without_conversations() {
    let site = run(&["--max-depth=1", "--idea-conversation-mode=off"]);
    let mut manifest = site.manifest();
    let settings = manifest["run_config"].as_object_mut().expect("settings");
    for key in ["idea_conversation_mode", "idea_history_window_turns", "idea_history_max_chars"] {
        assert!(settings.remove(key).is_some(), "{key}");
    }
    // A manifest without a checksum is of a version that had none, and is accepted.
    let document = manifest.as_object_mut().expect("a document");
    for key in ["conversations", "conversation_config", "checksum"] {
        assert!(document.remove(key).is_some(), "{key}");
    }
    fs::write(site.path("manifest.json"), manifest.to_string()).expect("a manifest");
    let _ = site.call(&["resume", SITE_RUN_ID, "--max-depth=2", "--quiet"]).exits(0);
    assert_eq!(site.manifest()["conversation_config"]["mode"], "off");
    let _ = site
        .call(&["resume", SITE_RUN_ID, "--max-depth=3", "--idea-conversation-mode=auto", "--quiet"])
        .exits(0);
    let prompts = prompts(&site);
    let last = prompts.iter().rfind(|(_, prompt)| prompt.contains(MEMORY)).expect("a memory");
    assert!(told(memory(last.1)).contains(&"c0000-t1".to_owned()), "what was said is remembered");
    assert!(
        site.call(&["log", SITE_RUN_ID]).exits(0).stdout.contains("goes on with other settings")
    );
    site.must_be_sound();
}
