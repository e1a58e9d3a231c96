//! The real `codex`, `claude`, `gemini` and `opencode` against a server that plays their models.
//! Tests an edit, forked sessions, a refused edit, errors, usage, no other server in reach, and
//! that nothing is left behind. Ignored by default; `cargo xtask test` installs the agents and runs
//! these tests.

use crate::workplace::{Nobody, Workplace, candidate, question};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use treebeam_agent::AgentDoor;
use treebeam_agent::question::AgentQuestion;
use treebeam_agent::settings::{AgentHome, AgentKind, ApiKey, CliAgent, CliTool, EditMode};
use treebeam_core::id::{CodePlace, NodeId};
use treebeam_run::port::{AgentError, AgentReply, AgentRole, Repo as _, TokenUsage};
use treebeam_store::env_file::Secret;
use treebeam_testkit::apart::{Namespace, is_inside, remark, system};
use treebeam_testkit::counterpart::{CounterpartServer, folder, node};
use treebeam_testkit::hostile;

/// The longest time of one call on a slow machine.
const PATIENCE: Duration = Duration::from_mins(3);

/// Returns the model's scripted answers, by a word in the prompt.
fn fixtures(tool: CliTool, worktree: &Path, outside: &Path) -> Value {
    let write = |file: &Path, text: &str| match tool {
        CliTool::Codex => {
            let cmd = format!("printf '{text}\\n' > '{}'", file.display());
            json!([{ "name": "exec_command", "arguments": { "cmd": cmd } }])
        }
        CliTool::Opencode => {
            json!([{ "name": "write", "arguments": { "filePath": file, "content": format!("{text}\n") } }])
        }
        CliTool::Claude => {
            json!([{ "name": "Write", "arguments": { "file_path": file, "content": format!("{text}\n") } }])
        }
        _ => {
            json!([{ "name": "write_file", "arguments": { "file_path": file, "content": format!("{text}\n") } }])
        }
    };
    let usage = |input: u32, output: u32| match tool {
        CliTool::Gemini => json!({ "promptTokenCount": input, "candidatesTokenCount": output }),
        CliTool::Opencode => json!({ "prompt_tokens": input, "completion_tokens": output }),
        _ => json!({ "input_tokens": input, "output_tokens": output }),
    };
    let does = |word: &str, file: &Path| {
        let first =
            json!({ "toolCalls": write(file, "hello from the agent"), "usage": usage(100, 20) });
        let then = json!({ "content": "EDIT DONE", "usage": usage(150, 5) });
        [
            json!({ "match": { "userMessage": word, "hasToolResult": false }, "response": first }),
            json!({ "match": { "userMessage": word, "hasToolResult": true }, "response": then }),
        ]
    };
    let says = |word: &str, response: Value| json!({ "match": { "userMessage": word }, "response": response });
    let error = |status: u16, kind: &str| json!({ "error": { "message": kind, "type": kind }, "status": status });
    let second = json!({ "content": "SECOND ANSWER", "usage": usage(200, 6) });
    let mut slow = says("SLOW-ONE", json!({ "content": "too late, much too late" }));
    slow["latency"] = json!(100_000);
    let mut all = vec![says("SECOND-ONE", second), slow];
    all.push(says("KEY-ONE", error(401, "authentication_error")));
    all.push(says("BUSY-ONE", error(529, "overloaded_error")));
    all.extend(does("EDIT-ONE", &worktree.join("edited.txt")));
    all.extend(does("OUTSIDE-ONE", outside));
    json!({ "fixtures": all })
}

/// Returns the command of an agent as it was installed.
fn command(tool: CliTool) -> Vec<String> {
    let (name, script) = match tool {
        CliTool::Opencode => return vec![opencode_program().display().to_string()],
        CliTool::Codex => ("codex", "@openai/codex/bin/codex.js"),
        CliTool::Claude => ("claude", "@anthropic-ai/claude-code/cli-wrapper.cjs"),
        _ => ("gemini", "@google/gemini-cli/bundle/gemini.js"),
    };
    let script = folder(name).join("node_modules").join(script);
    let node: &Command = &node();
    vec![node.get_program().to_string_lossy().into_owned(), script.display().to_string()]
}

/// Returns the program of `opencode`: the name of its package depends on the machine.
fn opencode_program() -> PathBuf {
    let packages = fs::read_dir(folder("opencode").join("node_modules")).expect("its packages");
    let mut programs = packages.flatten().map(|package| package.path().join("bin/opencode"));
    programs.find(|program| program.is_file()).expect("the program")
}

/// An agent with a repository and a server.
struct Scene {
    tool: CliTool,
    place: Workplace,
    server: CounterpartServer,
}

impl Scene {
    fn new(tool: CliTool) -> Self {
        let place = Workplace::new(&[("a.txt", "a\n")]);
        let outside = place.repo.path().join("outside.txt");
        let server = CounterpartServer::aimock(&fixtures(tool, &place.worktree(), &outside));
        Self { tool, place, server }
    }

    fn agent(&self) -> CliAgent {
        let (model, base_url) = match self.tool {
            CliTool::Codex => ("gpt-5", format!("{}/v1", self.server.url())),
            CliTool::Claude => ("claude-sonnet-4-5", self.server.url()),
            // Without a price for the models of another server, `opencode` reports none.
            CliTool::Opencode => ("m-1", format!("{}/v1", self.server.url())),
            _ => ("gemini-2.5-flash", self.server.url()),
        };
        // The server records no request above 64 KB, as the description of all tools would be.
        let args: &[&str] = if self.tool == CliTool::Claude { &["--tools", "Write"] } else { &[] };
        let value = Secret::new("sk-canary-4711".to_owned());
        CliAgent {
            tool: self.tool,
            command: command(self.tool),
            model: Some(model.to_owned()),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            base_url: Some(base_url),
            key: Some(ApiKey { variable: "THE_KEY".to_owned(), value }),
            max_tokens: 1000,
            home: AgentHome::Scratch,
            edits: EditMode::InPlace,
        }
    }

    fn ask(
        &self,
        agent: CliAgent,
        question: &AgentQuestion,
        timeout: Duration,
    ) -> Result<AgentReply, AgentError> {
        let plan = self.place.plan(AgentKind::Cli(agent), timeout);
        AgentDoor::open(&plan, &Nobody)?.answer_question(question)
    }

    /// Asks the coder, who may edit.
    fn code(&self, word: &str) -> Result<AgentReply, AgentError> {
        let mut question = question(&format!("k-{word}"), AgentRole::Coder, candidate());
        question.prompt = format!("{word} please").into();
        self.ask(self.agent(), &question, PATIENCE)
    }

    /// Returns all requests to the server, as texts.
    fn requests(&self) -> Vec<String> {
        let journal = self.server.get("/__aimock/journal");
        let entries = journal.as_array().expect("a journal").iter();
        entries.map(|entry| entry["body"].to_string()).collect()
    }

    /// Returns the files of a session in the agent's home, with their content.
    fn session(&self, reply: &AgentReply) -> Vec<(PathBuf, Vec<u8>)> {
        let id = reply.id.as_deref().expect("a session");
        let named = match self.tool {
            CliTool::Gemini => id.split('-').next().expect("a part"),
            _ => id,
        };
        let mut folders = vec![self.place.run().join("home")];
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder").flatten() {
                let path = entry.path();
                if entry.file_type().expect("a kind").is_dir() {
                    folders.push(path);
                } else if entry.file_name().to_string_lossy().contains(named) {
                    files.push((path.clone(), fs::read(path).expect("a file")));
                }
            }
        }
        files.sort();
        files
    }

    /// Continues an answer. The model must see the `turns` questions of this branch, and no others.
    fn branch(&self, from: &AgentReply, key: &str, turns: usize) -> AgentReply {
        let before = self.requests().len();
        let reply = self.go_on(from, key).unwrap_or_else(|error| panic!("{error}: {error:?}"));
        let shown: Vec<_> = self.requests().split_off(before);
        let of_it: Vec<_> = shown.iter().filter(|body| body.contains(SECOND)).collect();
        let whole = of_it.iter().filter(|body| body.contains(FIRST) && body.contains("EDIT DONE"));
        let most = whole.map(|body| body.matches(SECOND).count()).max();
        assert_eq!(most, Some(turns), "{key}: {shown:#?}");
        reply
    }

    /// Continues an answer.
    fn go_on(&self, from: &AgentReply, key: &str) -> Result<AgentReply, AgentError> {
        let mut question = question(key, AgentRole::Planner, candidate());
        question.prompt = SECOND.into();
        question.continues = from.continuation();
        assert!(question.continues.is_some(), "{from:?}");
        self.ask(self.agent(), &question, PATIENCE)
    }
}

/// Prompts for the first and the second turn of a session.
const FIRST: &str = "EDIT-ONE please";
const SECOND: &str = "SECOND-ONE please";

const fn usage(input: u64, output: u64) -> TokenUsage {
    TokenUsage { input, cached: 0, output }
}

fn meet(tool: CliTool, test: &str) {
    if is_inside() {
        drop(system("ip", ["link", "set", "lo", "up"]));
    } else {
        let alone = [Namespace::Network, Namespace::UserNetwork];
        match alone.into_iter().find(|alone| alone.can("ip link set lo up").is_ok()) {
            Some(alone) => return alone.run(test),
            None => remark(&format!("`{test}` runs without a network of its own")),
        }
    }
    let scene = Scene::new(tool);
    edits(&scene);
    looks(&scene);
    is_refused(&scene);
    fails(&scene);
    is_ended(&scene);
}

fn edits(scene: &Scene) {
    let before = scene.place.files();
    let first = scene.code("EDIT-ONE").unwrap_or_else(|error| panic!("{error}: {error:?}"));
    let diff = first.edits.clone().expect("edits");
    assert!(diff.contains("b/edited.txt") && diff.contains("+hello from the agent"), "{diff}");
    assert_eq!(diff.matches("diff --git").count(), 1, "nothing else: {diff}");
    assert_eq!((first.text.as_str(), first.usage), ("EDIT DONE", Some(usage(250, 25))));
    assert_eq!(first.cost.is_some(), scene.tool != CliTool::Opencode, "it has a price");
    assert_eq!(scene.place.files(), before);
    // Two questions continue one answer, and one continues one of these; parents never change.
    let parent = scene.session(&first);
    assert_eq!(
        parent.is_empty(),
        scene.tool == CliTool::Opencode,
        "its sessions are in a database"
    );
    let [one, two] = ["one", "two"].map(|key| scene.branch(&first, key, 1));
    let three = scene.branch(&two, "three", 2);
    let files = |all: &[(PathBuf, Vec<u8>)]| {
        all.iter().map(|(path, bytes)| (path.clone(), bytes.len())).collect::<Vec<_>>()
    };
    let after = scene.session(&first);
    assert!(after == parent, "{:?} became {:?}", files(&parent), files(&after));
    let replies = [&first, &one, &two, &three];
    let ids: BTreeSet<_> = replies.iter().filter_map(|reply| reply.id.as_deref()).collect();
    assert_eq!(ids.len(), 4, "each has a session of its own: {replies:?}");
    for reply in [&one, &two, &three] {
        assert_eq!((reply.text.as_str(), reply.usage), ("SECOND ANSWER", Some(usage(200, 6))));
        assert_eq!(reply.edits, None);
    }
    let unknown = match scene.tool {
        CliTool::Opencode => "ses_e1c6b5852ffeduyL5jDoo9g7ZZ",
        _ => "019f6a00-0000-4000-8000-000000000000",
    };
    let lost = AgentReply { id: Some(unknown.to_owned()), ..first };
    let lost = scene.go_on(&lost, "lost");
    assert!(matches!(lost, Err(AgentError::Forgotten(_))), "{lost:?}");
}

/// Checks that a read-only agent that tries to edit answers, and changes nothing anywhere.
fn looks(scene: &Scene) {
    let node = CodePlace::Node(NodeId::ROOT);
    let (role, at) = match scene.tool {
        CliTool::Codex => (AgentRole::Ideas, node),
        CliTool::Claude => (AgentRole::Reviewer, candidate()),
        CliTool::Gemini => (AgentRole::Coordinator, candidate()),
        _ => (AgentRole::Planner, candidate()),
    };
    scene.place.git.checkout_worktree(node, &scene.place.head()).expect("a worktree");
    scene.place.git.set_place_ref(node, &scene.place.head()).expect("a ref");
    let before = scene.place.files();
    let mut question = question("k-look", role, at);
    question.prompt = FIRST.into();
    let reply = scene.ask(scene.agent(), &question, PATIENCE).expect("an answer");
    assert_eq!(reply.edits, None, "{role}: {reply:?}");
    assert_eq!(scene.place.files(), before, "{role}");
    let left = fs::read_dir(scene.place.run().join("wt/0000")).expect("a worktree").flatten();
    let left: BTreeSet<_> = left.map(|entry| entry.file_name()).collect();
    assert_eq!(left, BTreeSet::from(["a.txt".into(), ".git".into()]), "{role}");
}

/// Checks that an agent whose edit is refused ends well, and has changed nothing.
fn is_refused(scene: &Scene) {
    let reply = if scene.tool == CliTool::Codex {
        let args = ["-c", "sandbox_mode=\"read-only\""].map(str::to_owned).to_vec();
        let mut question = question("k-refused", AgentRole::Coder, candidate());
        question.prompt = FIRST.into();
        scene.ask(CliAgent { args, ..scene.agent() }, &question, PATIENCE)
    } else {
        scene.code("OUTSIDE-ONE")
    };
    let reply = reply.expect("an answer");
    assert_eq!(reply.edits.as_deref(), Some(""), "{reply:?}");
    assert!(!scene.place.repo.path().join("outside.txt").exists());
    let told = reply.text.contains("not allowed to use: ");
    assert_eq!(told, scene.tool != CliTool::Codex, "{}", reply.text);
}

fn fails(scene: &Scene) {
    // `opencode` repeats its requests to a busy server by itself, until its time is over.
    let waits = scene.tool == CliTool::Opencode;
    for (word, why, advice) in [
        ("KEY-ONE", "the key was refused", "the variable `THE_KEY`"),
        ("BUSY-ONE", "529", "go on later"),
    ] {
        if waits && word == "BUSY-ONE" {
            continue;
        }
        let error = scene.code(word);
        let Err(AgentError::Unavailable(error)) = error else { panic!("{word}: {error:?}") };
        assert!(error.what.contains(why), "{word}: {}", error.what);
        assert!(error.hint.is_some_and(|hint| hint.contains(advice)), "{word}: {}", error.what);
        assert!(!error.what.contains("canary"), "{}", error.what);
    }
}

fn is_ended(scene: &Scene) {
    // All four agents may run in one process.
    let word = format!("m-{:?}-{}", scene.tool, std::process::id());
    let agent = CliAgent { model: Some(word.clone()), ..scene.agent() };
    let mut question = question("k-slow", AgentRole::Coder, candidate());
    question.prompt = "SLOW-ONE please".into();
    let late = scene.ask(agent, &question, Duration::from_secs(10));
    assert_eq!(hostile::survivors(&word), Vec::<u32>::new());
    let Err(AgentError::Unanswered(why)) = late else { panic!("{late:?}") };
    assert!(why.contains("was killed after 10 s"), "{why}");
}

#[test]
#[ignore = "needs counterparts: `cargo xtask test` runs it"]
fn codex() {
    meet(CliTool::Codex, "real::codex");
}

#[test]
#[ignore = "needs counterparts: `cargo xtask test` runs it"]
fn claude() {
    meet(CliTool::Claude, "real::claude");
}

#[test]
#[ignore = "needs counterparts: `cargo xtask test` runs it"]
fn gemini() {
    meet(CliTool::Gemini, "real::gemini");
}

#[test]
#[ignore = "needs counterparts: `cargo xtask test` runs it"]
fn opencode() {
    meet(CliTool::Opencode, "real::opencode");
}
