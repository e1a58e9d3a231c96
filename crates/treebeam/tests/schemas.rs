//! The schemas against the program's real files and output: everything fits, and every field is
//! described.

#![cfg(test)]

use serde_json::Value;
use std::fs;
use treebeam_testkit::program::{SITE_RUN_ID, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");

/// A schema, as the program prints it.
fn schema(site: &Site, name: &str) -> Value {
    let text = site.call(&["schema", name]).exits(0).stdout;
    serde_json::from_str(&text).expect("a schema in JSON")
}

/// Makes the schema refuse fields that it does not describe, which a reader would ignore.
fn close(schema: &mut Value) {
    if let Value::Array(parts) = schema {
        parts.iter_mut().for_each(close);
    }
    let Value::Object(parts) = schema else { return };
    parts.values_mut().for_each(close);
    // Conditions repeat a part of the properties only.
    if parts.get("type") == Some(&"object".into()) && parts.contains_key("properties") {
        parts.insert("additionalProperties".to_owned(), false.into());
    }
}

/// Returns the first few misfits of a document.
fn misfits(schema: &Value, document: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(schema).expect("a schema");
    let say = |error: jsonschema::ValidationError<'_>| {
        let what: String = error.to_string().chars().take(300).collect();
        format!("{}: {what}", error.instance_path())
    };
    validator.iter_errors(document).take(3).map(say).collect()
}

#[track_caller]
fn fits(site: &Site, name: &str, documents: &[Value]) {
    let mut schema = schema(site, name);
    assert!(jsonschema::meta::is_valid(&schema), "{name} is no schema");
    close(&mut schema);
    for document in documents {
        let found = misfits(&schema, document);
        assert!(found.is_empty(), "{name}: {found:#?}\n{document}");
    }
    for field in schema["required"].as_array().into_iter().flatten() {
        let mut document = documents[0].clone();
        document.as_object_mut().expect("an object").remove(field.as_str().expect("a name"));
        assert!(!misfits(&schema, &document).is_empty(), "{name} does without {field}");
    }
}

fn printed(site: &Site, arguments: &[&str]) -> Vec<Value> {
    site.call(&[arguments, &["--json"]].concat()).json_lines()
}

fn lines(journal: &str) -> Vec<Value> {
    journal.lines().map(|line| serde_json::from_str(line).expect("a line")).collect()
}

fn status<'a>(manifest: &'a Value, eval: &str) -> &'a str {
    manifest["evaluations"][eval]["status"].as_str().unwrap_or_default()
}

/// Checks all files and outputs of a run.
fn all_fits(site: &Site) {
    let manifest = site.manifest();
    fits(site, "manifest", std::slice::from_ref(&manifest));
    fits(site, "journal", &lines(&site.text("journal.jsonl")));
    let keys = |name: &str| manifest[name].as_object().expect("an object").keys().cloned();
    let evals = keys("evaluations").map(|id| format!("e{id}"));
    let items: Vec<_> = evals.chain(keys("nodes").map(|id| format!("n{id}"))).collect();
    let items: Vec<_> = items.into_iter().chain(keys("conversations")).collect();
    let shown: Vec<_> =
        items.iter().flat_map(|id| printed(site, &["show", SITE_RUN_ID, id])).collect();
    fits(site, "show", &shown);
    let ended = |id: &String| ["completed", "failed"].contains(&status(&manifest, id));
    let summary = |id: String| {
        let text = site.text(&format!("eval/{id}/experiment/summary.json"));
        serde_json::from_str(&text).expect("a summary in JSON")
    };
    let summaries: Vec<Value> = keys("evaluations").filter(ended).map(summary).collect();
    fits(site, "summary", &summaries);
    fits(site, "diff", &printed(site, &["diff", SITE_RUN_ID, "n0001"]));
    fits(site, "status", &printed(site, &["status"]));
    fits(site, "best", &printed(site, &["best"]));
    fits(site, "validate", &printed(site, &["validate"]));
    fits(site, "list", &printed(site, &["list"]));
}

#[test]
fn what_a_run_writes_and_prints_fits_its_schemas() {
    let site = Site::new(BINARY);
    site.run(&["--quiet", "--ideas-per-node=7", "--beam-width=2", "--max-total-idea-evals=25"]);
    all_fits(&site);
    site.resume(&["--quiet", "--max-total-idea-evals=26", "--keep-rejected-worktrees"]);
    all_fits(&site);
    let csv = |name: &str| site.path(&format!("artifacts/{name}.csv")).display().to_string();
    let (root, eval) = (csv("root"), csv("e0002"));
    let both = [&["score", &root, &eval][..], &["score", &root, &eval, "--limit", "0"]];
    let scores: Vec<_> = both.iter().flat_map(|arguments| printed(&site, arguments)).collect();
    fits(&site, "score", &scores);
}

#[test]
fn a_run_with_a_control_group_fits_too() {
    let site = Site::new(BINARY);
    site.run(&["--quiet", "--ideas-per-node=4", "--max-depth=2", "--control=best-of-n=0.4"]);
    all_fits(&site);
    fits(&site, "end", &printed(&site, &["resume", SITE_RUN_ID]));
}

#[test]
fn what_is_done_again_fits_too() {
    let site = Site::new(BINARY);
    site.run(&["--quiet", "--ideas-per-node=5", "--max-depth=1", "--eval-retries=1"]);
    let whole = site.text("journal.jsonl");
    let mut lines: Vec<_> = whole.split_inclusive('\n').collect();
    let failed = |line: &&str| line.contains(r#""type":"eval_failed""#);
    lines.truncate(lines.iter().position(failed).expect("a failed eval") + 1);
    for name in ["manifest.json", "manifest.json.prev"] {
        drop(fs::remove_file(site.path(name)));
    }
    fs::write(site.path("journal.jsonl"), lines.concat()).expect("half a journal");
    site.resume(&["--quiet", "--retry-failed", "--rerun-evals", "--force-regenerate-ideas"]);
    let journal = site.text("journal.jsonl");
    assert!(journal.contains("attempt_failed") && journal.contains("sent_back"));
    all_fits(&site);
}

#[test]
fn an_open_run_and_a_damaged_one_fit_too() {
    let site = Site::new(BINARY);
    site.run(&["--quiet", "--ideas-per-node=5", "--max-depth=1"]);
    let whole = site.text("journal.jsonl");
    let cut: String = whole.split_inclusive('\n').take(13).collect();
    for name in ["manifest.json", "manifest.json.prev"] {
        drop(fs::remove_file(site.path(name)));
    }
    fs::write(site.path("journal.jsonl"), cut).expect("half a journal");
    fs::create_dir_all(site.path("../bad")).expect("a folder");
    fs::write(site.path("../bad/journal.jsonl"), "nothing\n").expect("a journal");
    fits(&site, "list", &printed(&site, &["list"]));
    fits(&site, "status", &printed(&site, &["status", SITE_RUN_ID]));
    fits(&site, "best", &printed(&site, &["best", SITE_RUN_ID]));
    let open = ["e0001", "e0002", "e0005", "n0000"];
    let shown: Vec<_> =
        open.iter().flat_map(|id| printed(&site, &["show", SITE_RUN_ID, id])).collect();
    fits(&site, "show", &shown);
    fs::remove_file(site.path("artifacts/root.csv")).expect("to remove");
    fits(&site, "validate", &printed(&site, &["validate", SITE_RUN_ID]));
}

#[cfg(unix)]
#[test]
fn a_run_that_is_steered_fits_too() {
    let site = Site::new(BINARY);
    let git = treebeam_testkit::held::HeldGit::new(&site);
    let start =
        ["run", "--dry-run", "--run-id", SITE_RUN_ID, "--ideas-per-node=2", "--max-depth=1"];
    let call = git.begin(&site, &start);
    let file = site.repo.beside("mine.md");
    fs::write(&file, "Mine\n\nREQUIRED_CHANGES: append `gain 200 by me`\n").expect("a file");
    let file = file.display().to_string();
    fits(&site, "idea", &printed(&site, &["idea", "add", SITE_RUN_ID, &file]));
    fits(&site, "steer", &printed(&site, &["pause"]));
    fits(&site, "status", &printed(&site, &["status"]));
    fits(&site, "list", &printed(&site, &["list"]));
    fits(&site, "steer", &printed(&site, &["unpause"]));
    git.let_go();
    let _ = call.wait().exits(0);
    all_fits(&site);
}

/// Commands that need a running process: see the test above.
const STEERING: [&str; 4] = ["pause", "unpause", "stop", "idea"];

/// Slow commands, which have tests of their own for their schemas.
const ELSEWHERE: [&str; 2] = ["demo", "serve"];

/// Commands that are for people alone, and refuse `--json`.
const FOR_PEOPLE: [&str; 1] = ["watch"];

/// A command, a way to call it, and the schema of what it prints then; `journal` stands for events
/// and an end.
const DOCUMENTS: [(&str, &[&str], &str); 23] = [
    (
        "run",
        &["run", "--dry-run", "--run-id", "u", "--ideas-per-node=1", "--max-depth=1"],
        "journal",
    ),
    ("resume", &["resume", SITE_RUN_ID, "--max-depth=2"], "journal"),
    ("log", &["log", SITE_RUN_ID], "journal"),
    ("eval", &["eval", "--config=eval.toml", "--idea=idea.txt"], "eval"),
    ("baseline", &["baseline", "--config=eval.toml"], "baseline"),
    ("ideas", &["ideas", "--config=eval.toml", "--count=2", "--ideas-dir=ideas"], "ideas"),
    ("score", &["score", "model.csv", "model.csv", "--primary", "a"], "score"),
    ("init", &["init", "--force"], "init"),
    ("doctor", &["doctor"], "doctor"),
    ("config", &["config"], "config"),
    ("agents", &["agents"], "agents"),
    ("status", &["status", SITE_RUN_ID], "status"),
    ("best", &["best", SITE_RUN_ID], "best"),
    ("list", &["list"], "list"),
    ("show", &["show", SITE_RUN_ID, "n0000"], "show"),
    ("diff", &["diff", SITE_RUN_ID, "e0001"], "diff"),
    ("export", &["export", SITE_RUN_ID, "--branch=best"], "export"),
    ("report", &["report", SITE_RUN_ID], "report"),
    ("validate", &["validate", SITE_RUN_ID], "validate"),
    ("clean", &["clean", SITE_RUN_ID, "--worktrees", "--dry-run"], "clean"),
    ("completions", &["completions", "bash"], "completions"),
    ("man", &["man"], "man"),
    ("schema", &["schema"], "schema"),
];

/// An idea, an agent that implements it, and how it is measured.
const EVAL: [(&str, &str); 3] = [
    (
        "eval.toml",
        "sweep_command = 'cp model.csv \"$AGENTIC_RESULTS_CSV\"'\nscore.primary = 'a'\n\
         [agents.coder]\nprovider = 'command'\ncommand = ['cat', 'new.diff']\n\
         [agents.ideas]\nprovider = 'command'\ncommand = ['echo', 'IDEA: it']\n",
    ),
    ("idea.txt", "Something new\n"),
    (
        "new.diff",
        "diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n",
    ),
];

/// Every command in the help, by name.
fn commands(site: &Site) -> Vec<String> {
    let help = site.call(&["--help"]).exits(0).stdout;
    let names = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = names.take_while(|line| !line.is_empty());
    // Continuation lines are indented further.
    let names = names.filter(|line| !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned);
    names.filter(|name| name != "help").collect()
}

#[test]
fn every_command_prints_what_a_schema_describes() {
    let site = Site::new(BINARY);
    site.repo.write("model.csv", "config_id,a\n0,1\n1,2\n").expect("a file");
    site.repo.write(".env", "A=b\n").expect("a file");
    site.repo.write(".gitignore", ".env\n").expect("a file");
    for (name, text) in EVAL {
        site.repo.write(name, text).expect("a file");
    }
    site.repo.commit("results").expect("a commit");
    site.run(&["--quiet", "--ideas-per-node=2", "--max-depth=1"]);
    let mut event = event_schema(&site);
    close(&mut event);
    for command in commands(&site) {
        let mut ways = DOCUMENTS.iter().filter(|(name, ..)| *name == command).peekable();
        let elsewhere =
            [&STEERING[..], &ELSEWHERE, &FOR_PEOPLE].concat().contains(&command.as_str());
        assert!(elsewhere || ways.peek().is_some(), "no schema for what `{command} --json` prints");
        for (_, arguments, schema) in ways {
            let mut lines = printed(&site, arguments);
            if *schema != "journal" {
                assert_eq!(lines.len(), 1, "{command} prints one document");
                assert_eq!(lines[0]["schema"], format!("treebeam.{command}/1"));
                fits(&site, schema, &lines);
                continue;
            }
            fits(&site, "end", &[lines.pop().expect("an end")]);
            assert!(!lines.is_empty(), "{command} prints events");
            for line in lines {
                let found = misfits(&event, &line);
                assert!(found.is_empty(), "{command}: {found:#?}\n{line}");
            }
        }
    }
    let folder = site.repo.beside("man").display().to_string();
    fits(&site, "man", &printed(&site, &["man", &folder]));
    fits(&site, "clean", &printed(&site, &["clean", SITE_RUN_ID, "--worktrees", "--yes"]));
    fits(&site, "manifest", &[site.manifest()]);
}

#[test]
fn a_run_with_real_agents_fits_too() {
    let site = Site::new(BINARY);
    site.repo.write("model.csv", "config_id,a\n0,1\n1,2\n").expect("a file");
    for (name, text) in EVAL {
        site.repo.write(name, text).expect("a file");
    }
    site.repo.commit("an agent").expect("a commit");
    let run = [
        "run",
        "--config=eval.toml",
        "--run-id",
        SITE_RUN_ID,
        "--ideas-per-node=1",
        "--max-depth=1",
    ];
    let _ = site.call(&run).exits(0);
    fits(&site, "manifest", &[site.manifest()]);
    fits(&site, "journal", &lines(&site.text("journal.jsonl")));
    for command in ["status", "best", "list"] {
        fits(&site, command, &printed(&site, &[command]));
    }
}

/// Returns the schema of an event.
fn event_schema(site: &Site) -> Value {
    let mut journal = schema(site, "journal");
    journal["$ref"] = "#/$defs/event".into();
    for name in ["type", "required", "properties"] {
        journal.as_object_mut().expect("an object").remove(name);
    }
    journal
}

/// Every kind of event, as the store's own snapshots have them.
#[test]
fn every_kind_of_event_fits() {
    let site = Site::new(BINARY);
    let mut journal = event_schema(&site);
    close(&mut journal);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../store/tests/snapshots");
    let mut seen = 0;
    for entry in fs::read_dir(folder).expect("the snapshots") {
        let path = entry.expect("a snapshot").path();
        if path.display().to_string().contains("__event_") {
            let text = fs::read_to_string(&path).expect("a snapshot");
            let event = text.rsplit("---\n").next().expect("an event");
            let event: Value = serde_json::from_str(event).expect("an event in JSON");
            let found = misfits(&journal, &event);
            assert!(found.is_empty(), "{}: {found:#?}", path.display());
            seen += 1;
        }
    }
    let described = journal["$defs"]["event"]["oneOf"].as_array().map_or(0, Vec::len);
    assert_eq!(seen, described, "kinds of events");
}

/// The manifest of the story in the store's tests: it contains paid calls.
#[test]
fn a_run_that_was_paid_for_fits() {
    let site = Site::new(BINARY);
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../store/tests/snapshots/manifest__manifest.snap");
    let text = fs::read_to_string(path).expect("a snapshot");
    let manifest = text.rsplit("---\n").next().expect("a manifest");
    let manifest: Value = serde_json::from_str(manifest).expect("a manifest in JSON");
    assert!(manifest["state"]["cost_usd"].as_f64() > Some(0.0), "{}", manifest["state"]);
    fits(&site, "manifest", &[manifest]);
}

#[test]
fn schemas_are_listed_and_a_wrong_name_is_refused() {
    let site = Site::new(BINARY);
    let list = site.call(&["schema"]).exits(0).stdout;
    let names: Vec<_> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let (names, others) = names.split_at(names.len() - 2);
    assert_eq!((names.len(), others), (30, &["transitions", "routes"][..]), "{list}");
    let document = printed(&site, &["schema"]).remove(0);
    assert_eq!(document["schema"], "treebeam.schema/1");
    for name in names {
        assert_eq!(document["schemas"][*name], schema(&site, name));
    }
    let _ = site.call(&["schema", "nope"]).exits(2).says(["no schema \"nope\"", "`manifest`"]);
}
