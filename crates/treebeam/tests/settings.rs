//! Settings from file, environment and flags in the real program: the output of `config`, and their
//! effect on a resume.

#![cfg(test)]

use serde_json::{Value, json};
use std::ffi::OsString;
use treebeam_testkit::program::{SITE_RUN_ID, Said, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const SMALL: [&str; 2] = ["--ideas-per-node=2", "--max-depth=1"];

/// Calls the program with some more variables.
fn call_with(site: &Site, variables: &[(&str, &str)], arguments: &[&str]) -> Said {
    let more = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let variables = site.repo.variables().into_iter().chain(more).collect();
    site.call_with(site.repo.path(), variables, arguments)
}

fn write(site: &Site, name: &str, text: &str) {
    site.repo.write(name, text).expect("a file");
}

macro_rules! snapshot {
    ($name:literal, $text:expr) => {
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!($name, $text);
        })
    };
}

#[test]
fn config_shows_values_and_origins() {
    let site = Site::new(BINARY);
    snapshot!("config_defaults", site.call(&["config"]).exits(0).stdout);
    write(
        &site,
        "treebeam.toml",
        "ideas_per_node = 4\nbeam_width = 2\nprotect = ['eval/**']\n\n[score]\nprimary = 'loss:lower'\n",
    );
    write(&site, ".env", "API_KEY=sk-12345\nHOME=elsewhere\nTREEBEAM_BEAM_WIDTH=9\n");
    let variables = [("TREEBEAM_BEAM_WIDTH", "3"), ("TREEBEAM_MAX_TOTAL_IDEA_EVALS", "none")];
    let said = call_with(&site, &variables, &["config"]).exits(0);
    snapshot!("config_origins", said.stdout);
    let said = call_with(&site, &variables, &["config", "--json"]).exits(0);
    assert!(!said.stdout.contains("sk-12345"));
    let document = said.json_lines().remove(0);
    assert_eq!(
        (&document["schema"], &document["file"]),
        (&json!("treebeam.config/1"), &json!("treebeam.toml"))
    );
    let find = |key: &str| {
        let values = document["values"].as_array().expect("values");
        values.iter().find(|value| value["key"] == key).cloned().unwrap_or(Value::Null)
    };
    let expect = |key: &str, value: Value, origin: Value| {
        assert_eq!(find(key), json!({ "key": key, "value": value, "origin": origin }));
    };
    expect(
        "ideas_per_node",
        json!(4),
        json!({ "kind": "file", "file": "treebeam.toml", "line": 1 }),
    );
    expect("beam_width", json!(3), json!({ "kind": "variable", "name": "TREEBEAM_BEAM_WIDTH" }));
    expect("max_depth", json!(3), json!({ "kind": "default" }));
    expect(
        "score.primary",
        json!("loss:lower"),
        json!({ "kind": "file", "file": "treebeam.toml", "line": 6 }),
    );
    let used = |name: &str, used: bool| json!({ "name": name, "file": ".env", "used": used });
    assert_eq!(
        document["variables"],
        json!([used("API_KEY", true), used("HOME", false), used("TREEBEAM_BEAM_WIDTH", false)])
    );
}

#[test]
fn a_run_takes_its_size_from_file_environment_and_flags() {
    let site = Site::new(BINARY);
    write(&site, "treebeam.toml", "ideas_per_node = 4\nmax_depth = 1\nbeam_width = 2\n");
    let arguments = ["run", "--dry-run", "--run-id", SITE_RUN_ID, "--beam-width=3"];
    let variables = [("TREEBEAM_IDEAS_PER_NODE", "5"), ("TREEBEAM_BEAM_WIDTH", "1")];
    let _ = call_with(&site, &variables, &arguments).exits(0);
    let config = site.manifest()["run_config"].clone();
    assert_eq!(
        (&config["ideas_per_node"], &config["max_depth"], &config["beam_width"]),
        (&json!(5), &json!(1), &json!(3))
    );
}

#[test]
fn a_meaning_from_any_origin_is_refused_on_resume() {
    let site = Site::new(BINARY);
    site.run(&SMALL);
    let journal = site.text("journal.jsonl");
    let would = "would change what the results of this run mean: it began with";
    write(&site, "treebeam.toml", "max_parallel_evals = 1\nideas_per_node = 5\n");
    let _ = site.call(&["resume", SITE_RUN_ID]).exits(2).says([
        &format!("error: `treebeam.toml`, line 2: `ideas_per_node`: 5 {would} 2"),
        "hint: set the key back or repeat `--ideas-per-node 2`, or start another run",
    ]);
    let _ = site.call(&["resume", SITE_RUN_ID, "--ideas-per-node=2"]).exits(0);
    write(&site, "treebeam.toml", "protect = ['eval/**']\n");
    let _ = site.call(&["resume", SITE_RUN_ID]).exits(2).says([
        &format!("`treebeam.toml`, line 1: `protect`: [treebeam.toml, .treebeam/**, eval/**] {would} [treebeam.toml"),
        "hint: set the key back, or start another run",
    ]);
    write(&site, "treebeam.toml", "");
    let _ = call_with(&site, &[("TREEBEAM_SWEEP_CONFIG_LIMIT", "3")], &["resume", SITE_RUN_ID])
        .exits(2)
        .says([
            &format!("error: `TREEBEAM_SWEEP_CONFIG_LIMIT=3` {would} all"),
            "hint: unset the variable or repeat `--sweep-config-limit none`, or start another run",
        ]);
    let _ = call_with(&site, &[("TREEBEAM_GATE_MIN_ROWS", "3")], &["resume", SITE_RUN_ID])
        .exits(2)
        .says([
            &format!("error: `TREEBEAM_GATE_MIN_ROWS=3` {would} as many as the root has"),
            "hint: unset the variable, or start another run",
        ]);
    let metrics = [("TREEBEAM_SCORE_METRICS", "[{column = 'loss'}]")];
    let _ = call_with(&site, &metrics, &["resume", SITE_RUN_ID]).exits(2).says([
        &format!(
            "error: `TREEBEAM_SCORE_METRICS`: the primary loss:higher {would} the primary mean_topN"
        ),
        "hint: unset the variable, or start another run",
    ]);
    let _ = call_with(&site, &[("TREEBEAM_MAX_DEPT", "3")], &["resume", SITE_RUN_ID]).exits(2).says([
        "error: `TREEBEAM_MAX_DEPT`: no configuration key has this variable; nearest: `TREEBEAM_MAX_DEPTH`",
    ]);
    assert_eq!(site.text("journal.jsonl"), journal);
}

#[test]
fn a_reach_from_any_origin_is_taken_and_recorded() {
    let site = Site::new(BINARY);
    site.run(&["--ideas-per-node=3", "--max-depth=1", "--max-total-idea-evals=2"]);
    let changed = |site: &Site| {
        let mut events =
            site.events().into_iter().filter(|event| event["type"] == "settings_changed");
        events.next_back().unwrap_or(Value::Null)
    };
    write(&site, "treebeam.toml", "max_total_idea_evals = \"none\"\n");
    let _ = site.resume(&[]).says([
        "note: `max_total_idea_evals` is none from now on, it was 2: treebeam.toml, line 1",
    ]);
    assert_eq!(changed(&site)["reach"]["max_total_idea_evals"], Value::Null);
    let said =
        call_with(&site, &[("TREEBEAM_MAX_REVIEW_ROUNDS", "4")], &["resume", SITE_RUN_ID]).exits(0);
    let _ =
        said.says(["`max_review_rounds` is 4 from now on, it was 2: TREEBEAM_MAX_REVIEW_ROUNDS"]);
    assert_eq!(changed(&site)["reach"]["max_review_rounds"], 4);
    let _ = site.resume(&["--max-total-idea-evals=9"]);
    let _ =
        site.resume(&["--max-total-idea-evals=none"]).says(["it was 9: --max-total-idea-evals"]);
    assert_eq!(changed(&site)["reach"]["max_total_idea_evals"], Value::Null);
}

#[test]
fn runs_lie_where_the_user_wants_them() {
    let site = Site::new(BINARY);
    write(&site, "treebeam.toml", "runs_root = 'out/runs'\n");
    let run = [&["run", "--dry-run", "--run-id", SITE_RUN_ID][..], &SMALL].concat();
    let _ = site.call(&run).exits(0);
    let folder = site.repo.path().join("out/runs");
    assert!(folder.join(SITE_RUN_ID).join("manifest.json").is_file());
    assert!(!site.repo.path().join(".treebeam").exists());
    assert_eq!(site.repo.git(["status", "--porcelain"]).expect("status"), "?? treebeam.toml");
    for arguments in
        [&["status"][..], &["validate"], &["resume", SITE_RUN_ID], &["validate", "out/runs/t"]]
    {
        let _ = site.call(arguments).exits(0);
    }
    let node = folder.join(SITE_RUN_ID).join("wt/0000");
    let _ = site.call_in(&node, &["status"]).exits(2).says(["is a worktree of a run"]);
    for wrong in ["src", ".", "..", ".git/runs"] {
        write(&site, "treebeam.toml", &format!("runs_root = '{wrong}'\n"));
        let _ =
            site.call(&run).exits(2).says(["is no folder for runs alone", "hint: name a folder"]);
    }
    let run = [&["run", "--dry-run", "--run-id", "other"][..], &SMALL].concat();
    let _ = call_with(&site, &[("TREEBEAM_RUNS_ROOT", "../runs")], &run).exits(0);
    assert!(site.repo.beside("runs").join("other/manifest.json").is_file());
}

#[test]
fn a_damaged_env_file_is_named_by_line_without_its_value() {
    let site = Site::new(BINARY);
    write(&site, ".env", "A=1\nsk-12345\n");
    for arguments in [&["config"][..], &["run", "--dry-run", "--run-id", SITE_RUN_ID]] {
        let said =
            site.call(arguments).exits(2).says(["error: `.env`, line 2: it must be `NAME=value`"]);
        assert!(!said.stderr.contains("sk-12345"));
    }
    write(&site, ".env", "");
    write(&site, "conf/.env", "B=two words\n");
    write(&site, "conf/c.toml", "max_depth = 2\n");
    let _ = site.call(&["config"]).exits(0);
    let _ =
        site.call(&["config", "--config", "conf/c.toml"]).exits(2).says(["`conf/.env`, line 1: "]);
}

/// Returns the command after one of these texts, without the program's name.
#[track_caller]
fn command(text: &str, before: &str) -> Vec<String> {
    let line = text.lines().find_map(|line| Some(line.split_once(before)?.1));
    let line = line.unwrap_or_else(|| panic!("no {before:?} in {text}"));
    line.trim_end_matches('`').split(' ').map(str::to_owned).collect()
}

/// The command keeps the run's settings, whatever the file says: a bare `resume` would be refused,
/// or go further.
#[test]
fn the_command_that_goes_on_keeps_a_run_as_it_is() {
    let site = Site::new(BINARY);
    let file = "ideas_per_node = 5\nbeam_width = 2\nsweep_config_limit = 7\nmax_cost_usd = 100\nmax_depth = 1\ndeadline = '8h'\nllm_rate_limit = 9\n";
    write(&site, "treebeam.toml", file);
    let flags = [
        "--ideas-per-node=2",
        "--sweep-config-limit=none",
        "--max-cost-usd=5.5",
        "--max-depth=2",
        "--deadline=none",
        "--llm-rate-limit=none",
    ];
    let _ = site.run(&flags);
    let whole = site.text("journal.jsonl");
    for manifest in ["manifest.json", "manifest.json.prev"] {
        drop(std::fs::remove_file(site.path(manifest)));
    }
    let half: String = whole.split_inclusive('\n').take(12).collect();
    std::fs::write(site.path("journal.jsonl"), &half).expect("half a journal");
    let status = site.call(&["status"]).exits(0).stdout;
    let said = command(&status, "go on       treebeam ");
    assert_eq!(said[..2], ["resume", SITE_RUN_ID]);
    let mut found: Vec<&str> = said[2..].iter().map(String::as_str).collect();
    let mut expected = flags.to_vec();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    let list = site.call(&["list"]).exits(0).stdout;
    assert_eq!(command(&list, "can go on: `treebeam "), said);
    let refused = site.call(&["stop", SITE_RUN_ID]).exits(1).stderr;
    assert_eq!(command(&refused.replace("` goes on with it", ""), "hint: `treebeam "), said);
    // Where the configuration cannot be read, there is nothing to compare with.
    write(&site, "treebeam.toml", "max_dept = 1\n");
    let run = site.path("").display().to_string();
    let status = site.call(&["status", &run]).exits(0).stdout;
    assert_eq!(command(&status, "go on       treebeam "), ["resume", SITE_RUN_ID]);
    write(&site, "treebeam.toml", file);
    // From another folder, the command names the folder, too.
    let (top, name) = (site.repo.path(), site.repo.path().file_name().expect("a name"));
    let name = name.to_str().expect("UTF-8");
    let above = site.call_in(top.parent().expect("a folder"), &["-C", name, "status"]).exits(0);
    assert_eq!(command(&above.stdout, "go on       treebeam ")[..2], ["-C", name]);
    let words: Vec<&str> = said.iter().map(String::as_str).collect();
    let resumed = site.call(&words).exits(0);
    assert!(!resumed.stderr.contains("from now on"), "{}", resumed.stderr);
    let changed = |event: &Value| event["type"] == "settings_changed";
    assert!(!site.events().iter().any(changed), "no setting is another one");
    site.must_be_sound();
}
