//! Providers that keep conversations: each child continues from its parent's answer, independently
//! of the others; a forgotten conversation is replayed, with a note.

use super::{MEMORY, lineage};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex};
use treebeam_testkit::fault::Fault;
use treebeam_testkit::program::{SITE_RUN_ID, Site};
use treebeam_testkit::server::{Act, Hit, Server};

/// Creates a repository whose ideas come from a server of responses, and whose coder and sweep are
/// scripts.
pub(super) fn real(url: &str, more: &str) -> Site {
    let site = Site::new(super::BINARY);
    let coder = "#!/bin/sh\nprintf -- '--- /dev/null\\n+++ b/g%s.txt\\n@@ -0,0 +1 @@\\n+1\\n' \"$TREEBEAM_EVAL\"\n";
    let sweep = "#!/bin/sh\nn=$(ls g*.txt 2>/dev/null | wc -l)\nprintf 'config_id,status,gain\\n0,ok,%s\\n' \"$((n + 1))\" > \"$AGENTIC_RESULTS_CSV\"\n";
    site.repo.write("coder.sh", coder).expect("a file");
    site.repo.write("sweep.sh", sweep).expect("a file");
    site.repo.commit("scripts").expect("a commit");
    configure(&site, url, more);
    site
}

/// Writes the configuration with the idea generator at `url`, and more settings.
pub(super) fn configure(site: &Site, url: &str, more: &str) {
    let config = format!(
        "sweep_command = ['sh', 'sweep.sh']\nideas_per_node = 2\n{more}\n\
         [score]\nprimary = 'gain'\nmetrics = [{{ column = 'gain', direction = 'higher', weight = 1.0 }}]\n\
         [agents.ideas]\nprovider = 'openai'\nmodel = 'played/m-1'\nbase_url = '{url}'\n\
         [agents.coder]\nprovider = 'command'\ncommand = ['sh', 'coder.sh']\n"
    );
    site.repo.write("treebeam.toml", &config).expect("a file");
}

pub(super) fn run(site: &Site, flags: &[&str]) {
    let words = ["run", "--run-id", SITE_RUN_ID, "--quiet", "--yes"];
    let _ = site.call(&[&words, flags].concat()).exits(0);
}

/// A server that keeps responses: by the name of an answer, all answers up to it.
struct Provider {
    server: Server,
    known: Arc<Mutex<BTreeMap<String, Vec<String>>>>,
}

/// Answer of a provider to an unknown name.
type Unknown = fn(&str) -> Vec<Act>;

/// Answers as llama-stack 0.7.3 does to a streaming request.
fn not_found(id: &str) -> Vec<Act> {
    let list = "Use 'client.responses.list()' to list available Responses.";
    let message = format!("Response '{id}' not found. {list}");
    let error = json!({ "error": { "message": message, "code": "404" } });
    Act::open(200, "text/event-stream", &format!("data: {error}\n\n"))
}

/// Answers as llama.cpp does.
fn not_supported(_: &str) -> Vec<Act> {
    let error = json!({"error": {"message": "no 'previous_response_id' of that name"}});
    Act::answer(400, &[], &error.to_string())
}

impl Provider {
    fn start(unknown: Unknown) -> Self {
        let known = Arc::<Mutex<BTreeMap<String, Vec<String>>>>::default();
        let memory = Arc::clone(&known);
        let server = Server::start(move |hit: &Hit| {
            let body: Value = serde_json::from_str(&hit.body).expect("JSON");
            let mut known = memory.lock().expect("what was said");
            let mut said = match body["previous_response_id"].as_str() {
                None => Vec::new(),
                Some(id) => {
                    let Some(said) = known.get(id) else { return unknown(id) };
                    said.clone()
                }
            };
            let (id, text) = (format!("resp-{}", hit.number), ideas(hit.number));
            said.push(text.clone());
            known.insert(id.clone(), said);
            Act::answer(200, &[], &answer(&id, &text).to_string())
        });
        Self { server, known }
    }

    /// Drops all responses.
    fn forget(&self) {
        self.known.lock().expect("what was said").clear();
    }

    /// Returns all responses up to an answer.
    fn said(&self, id: &Value) -> Vec<String> {
        let known = self.known.lock().expect("what was said");
        known.get(id.as_str().expect("a name")).cloned().expect("an answer of that name")
    }

    fn bodies(&self) -> Vec<Value> {
        let hits = self.server.hits();
        hits.iter().map(|hit| serde_json::from_str(&hit.body).expect("JSON")).collect()
    }

    /// Returns the answers that questions continued from, one for each such question.
    fn gone_on_from(&self) -> Vec<String> {
        let bodies = self.bodies();
        let names = bodies.iter().filter_map(|body| body["previous_response_id"].as_str());
        names.map(str::to_owned).collect()
    }

    /// Returns the number of questions that contained earlier turns.
    fn told(&self) -> usize {
        self.bodies().iter().filter(|body| body.to_string().contains(MEMORY)).count()
    }
}

/// Two ideas.
fn ideas(number: usize) -> String {
    let idea = |n: usize| format!("IDEA: try {number}-{n}\nRATIONALE: r\nREQUIRED_CHANGES: c\n");
    idea(1) + &idea(2)
}

fn answer(id: &str, text: &str) -> Value {
    let output = json!([{"type": "message", "content": [{"type": "output_text", "text": text}]}]);
    let usage = json!({"input_tokens": 5, "output_tokens": 5});
    json!({"id": id, "status": "completed", "output": output, "usage": usage})
}

/// Returns the answers of a node's branch, as they are on disk.
fn answers(site: &Site, manifest: &Value, node: &str) -> Vec<String> {
    let own = format!("c{node}-t1");
    let turns = lineage(manifest, node).into_iter().chain([own]);
    let file = |turn: String| {
        let (node, number) = turn[1..].split_once("-t").expect("a turn");
        site.text(&format!("node_ideas/{node}/calls/ideas-n{node}-x1-a{number}.txt"))
    };
    turns.map(file).collect()
}

/// Returns the conversations with a turn, by their nodes.
fn conversations(manifest: &Value) -> BTreeMap<String, Value> {
    let all = manifest["conversations"].as_object().expect("conversations").iter();
    let had = all.filter(|(_, conversation)| !conversation["latest_turn_id"].is_null());
    had.map(|(id, conversation)| (id[1..].to_owned(), conversation.clone())).collect()
}

#[test]
fn a_provider_that_remembers_knows_each_branch_apart() {
    let provider = Provider::start(not_found);
    let site = real(
        &provider.server.url(),
        "max_depth = 3\nbeam_width = 2\nidea_conversation_mode = 'native'",
    );
    run(&site, &[]);
    let manifest = site.manifest();
    let conversations = conversations(&manifest);
    assert_eq!(conversations.len(), 5, "the root, two children, two grandchildren");
    for (node, conversation) in &conversations {
        assert_eq!(conversation["mode"], "native", "{node}");
        let said = provider.said(&conversation["provider_ids"][0]);
        assert_eq!(said, answers(&site, &manifest, node), "{node}");
    }
    let from = provider.gone_on_from();
    assert_eq!((from.len(), provider.told()), (4, 0), "{from:?}");
    assert_eq!(&from[..2], ["resp-0", "resp-0"], "two forks of one answer");
    site.must_be_sound();
}

#[test]
fn what_a_provider_has_forgotten_is_told_again() {
    let provider = Provider::start(not_found);
    let site = real(&provider.server.url(), "beam_width = 2");
    run(&site, &["--max-depth=1"]);
    provider.forget();
    let _ = site.call(&["resume", SITE_RUN_ID, "--max-depth=3", "--quiet"]).exits(0);
    let manifest = site.manifest();
    let conversations = conversations(&manifest);
    let note = "the provider has forgotten what was said, it is told again: openai answered 404";
    for node in ["0001", "0002"] {
        assert_eq!(conversations[node]["mode"], "replay", "{node}");
        let shown = site.call(&["show", SITE_RUN_ID, "conv", node]).exits(0).stdout;
        assert!(shown.contains(&format!("note: {note}")), "{shown}");
    }
    // Later answers are remembered.
    for node in ["0003", "0004"] {
        assert_eq!(conversations[node]["mode"], "native", "{node}");
        let said = provider.said(&conversations[node]["provider_ids"][0]);
        assert_eq!(said, answers(&site, &manifest, node)[1..], "{node}");
    }
    assert_eq!((provider.bodies().len(), provider.told()), (7, 2));
    assert!(site.call(&["log", SITE_RUN_ID]).exits(0).stdout.contains(note));
    site.must_be_sound();
}

#[test]
fn a_provider_that_never_remembers_is_told_each_time() {
    let provider = Provider::start(not_supported);
    let site = real(&provider.server.url(), "beam_width = 2");
    run(&site, &["--max-depth=1"]);
    for depth in ["--max-depth=2", "--max-depth=3"] {
        provider.forget();
        let _ = site.call(&["resume", SITE_RUN_ID, depth, "--quiet"]).exits(0);
    }
    assert_eq!((provider.bodies().len(), provider.told()), (9, 4));
    site.must_be_sound();
}

/// Killed right after the provider's refusal, and after the answer to the replay: a resume does not
/// try the forgotten conversation again.
#[test]
fn what_is_known_to_be_forgotten_is_not_asked_again() {
    for plan in ["kill after 1 rename .forgotten", "kill before 1 journal.jsonl ideas_proposed"] {
        let provider = Provider::start(not_found);
        let site = real(&provider.server.url(), "");
        run(&site, &["--max-depth=1"]);
        provider.forget();
        let words = ["resume", SITE_RUN_ID, "--max-depth=2", "--quiet"];
        let said = site.call_with_fault(&Fault::plan(plan), &words);
        assert_eq!(said.code, None, "{plan}: {}", said.stderr);
        let _ = site.call(&words).exits(0);
        assert_eq!(provider.gone_on_from(), ["resp-0"], "{plan}: once");
        assert_eq!((provider.bodies().len(), provider.told()), (3, 1), "{plan}");
        let shown = site.call(&["show", SITE_RUN_ID, "c0001"]).exits(0).stdout;
        assert!(shown.contains("note: the provider has forgotten what was said"), "{shown}");
        site.must_be_sound();
    }
}

#[test]
fn native_needs_somebody_who_remembers() {
    let words = ["run", "--dry-run", "--idea-conversation-mode=native"];
    let site = Site::new(super::BINARY);
    let _ = site
        .call(&words)
        .exits(2)
        .says(["`native`, and the dry world keeps no", "hint: say `auto` or `replay`"]);
    let site = real("http://127.0.0.1:1", "");
    let config = site.repo.path().join("treebeam.toml");
    let text = fs::read_to_string(&config).expect("a file").replace("'openai'", "'openai-chat'");
    fs::write(&config, text).expect("a file");
    let _ = site
        .call(&["run", "--idea-conversation-mode=native"])
        .exits(2)
        .says(["`openai-chat` keeps no"]);
}
