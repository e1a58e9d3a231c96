//! Native conversations with llama-stack, the real server that `native` imitates: two forks of one
//! response, and one that it does not know. It is too large to be installed for every change, so
//! this test is run by hand:
//!
//! ```text
//! cargo xtask counterparts
//! python3.12 -m venv venv && venv/bin/pip install llama-stack==0.7.3 'mcp<2'
//! TREEBEAM_COUNTERPARTS=$PWD/target/counterparts TREEBEAM_LLAMA_STACK=$PWD/venv/bin/llama \\
//!     cargo test -p treebeam --test conversations -- --ignored llama_stack
//! ```

use super::native::{configure, real, run};
use super::{MEMORY, prompts};
use serde_json::{Value, json};
use treebeam_testkit::counterpart::CounterpartServer;
use treebeam_testkit::program::{SITE_RUN_ID, Site};

/// Text in every question for ideas.
const QUESTION: &str = "new ideas that could improve the results";

/// The model's answers: one to the root, others to its children, and others to all after them.
fn script() -> Value {
    let idea = |title: String| format!("IDEA: {title}\nRATIONALE: r\nREQUIRED_CHANGES: c\n");
    let says = |matched: Value, word: &str| {
        let content = ["one", "two"].map(|n| idea(format!("{word} {n}"))).concat();
        json!({ "match": matched, "response": { "content": content } })
    };
    let nth = |n: u32| json!({ "userMessage": QUESTION, "sequenceIndex": n });
    let last = json!({ "userMessage": QUESTION });
    json!({ "fixtures": [says(nth(0), "FIRST"), says(nth(1), "SECOND"), says(nth(2), "THIRD"), says(last, "LATER")] })
}

/// Returns the questions that the model received, each with all that came before it.
fn shown(model: &CounterpartServer) -> Vec<String> {
    let journal = model.get("/__aimock/journal");
    let bodies =
        journal.as_array().expect("a journal").iter().map(|entry| entry["body"].to_string());
    bodies.filter(|body| body.contains(QUESTION)).collect()
}

fn modes(site: &Site) -> Vec<String> {
    let manifest = site.manifest();
    let all = manifest["conversations"].as_object().expect("conversations").values();
    let had = all.filter(|conversation| !conversation["latest_turn_id"].is_null());
    had.map(|conversation| conversation["mode"].as_str().expect("a mode").to_owned()).collect()
}

#[test]
#[ignore = "needs llama-stack: its first lines say how to call it"]
fn llama_stack_keeps_branches_apart_and_what_it_does_not_know_is_told_again() {
    let model = CounterpartServer::aimock(&script());
    let stack = CounterpartServer::llama_stack(&model);
    let more = "beam_width = 2\nidea_conversation_mode = 'native'";
    let site = real(&format!("{}/v1", stack.url()), more);
    run(&site, &["--max-depth=2"]);
    assert_eq!(modes(&site), ["native"; 3], "{}", site.call(&["log", SITE_RUN_ID]).stdout);
    assert_eq!(prompts(&site).values().filter(|prompt| prompt.contains(MEMORY)).count(), 0);
    for body in shown(&model).split_off(1) {
        assert_eq!(body.matches(QUESTION).count(), 2, "the root's question and its own: {body}");
        assert!(body.contains("FIRST one"), "{body}");
        assert!(!body.contains("SECOND") && !body.contains("THIRD"), "a sibling's: {body}");
    }
    // A fresh server, with the same names and an empty memory.
    drop(stack);
    let stack = CounterpartServer::llama_stack(&model);
    configure(&site, &format!("{}/v1", stack.url()), more);
    let _ = site.call(&["resume", SITE_RUN_ID, "--max-depth=3", "--quiet"]).exits(0);
    assert_eq!(modes(&site), ["native", "native", "native", "replay", "replay"]);
    let told = site.call(&["show", SITE_RUN_ID, "conv", "3"]).exits(0).stdout;
    assert!(
        told.contains("note: the provider has forgotten what was said, it is told again"),
        "{told}"
    );
    site.must_be_sound();
}
