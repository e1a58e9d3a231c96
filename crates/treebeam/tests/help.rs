//! Snapshots of help and of the most important errors.

#![cfg(test)]

use std::path::Path;
use treebeam_testkit::program::{SITE_RUN_ID, Said, Site};
use treebeam_testkit::repo::TempRepo;

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const COMMANDS: [&str; 30] = [
    "demo",
    "run",
    "resume",
    "eval",
    "baseline",
    "ideas",
    "score",
    "init",
    "doctor",
    "config",
    "agents",
    "pause",
    "unpause",
    "stop",
    "idea",
    "status",
    "watch",
    "best",
    "list",
    "show",
    "diff",
    "export",
    "log",
    "serve",
    "report",
    "validate",
    "clean",
    "completions",
    "man",
    "schema",
];

/// Returns the output, with the folders of this test replaced.
fn shown(site: &Site, said: &Said) -> String {
    let folder = site.repo.path().display().to_string();
    let exit = said.code.map_or("none".to_owned(), |code| code.to_string());
    // Cleanup runs in parallel to the evals: the time of its lines is not fixed.
    let kept = |line: &&str| !line.contains(" not removed yet: ");
    let stderr: String = said.stderr.split_inclusive('\n').filter(kept).collect();
    let text = format!("exit {exit}\n--- stdout\n{}--- stderr\n{stderr}", said.stdout);
    text.replace(&folder, "[REPO]").replace('\\', "/")
}

macro_rules! snapshot {
    ($name:literal, $text:expr) => {
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!($name, $text);
        })
    };
}

fn call(arguments: &[&str]) -> String {
    let site = Site::new(BINARY);
    shown(&site, &site.call(arguments))
}

#[test]
fn help() {
    snapshot!("help", call(&["--help"]));
    snapshot!("help_demo", call(&["demo", "--help"]));
    snapshot!("help_run", call(&["run", "--help"]));
    snapshot!("help_resume", call(&["resume", "--help"]));
    snapshot!("help_ideas", call(&["ideas", "--help"]));
    snapshot!("help_score", call(&["score", "--help"]));
    snapshot!("help_init", call(&["init", "--help"]));
    snapshot!("help_doctor", call(&["doctor", "--help"]));
    snapshot!("help_config", call(&["config", "--help"]));
    snapshot!("help_agents", call(&["agents", "--help"]));
    snapshot!("help_agents_check", call(&["agents", "check", "--help"]));
    snapshot!("help_agents_ask", call(&["agents", "ask", "--help"]));
    snapshot!("help_pause", call(&["pause", "--help"]));
    snapshot!("help_unpause", call(&["unpause", "--help"]));
    snapshot!("help_stop", call(&["stop", "--help"]));
    snapshot!("help_idea", call(&["idea", "--help"]));
    snapshot!("help_idea_add", call(&["idea", "add", "--help"]));
    snapshot!("help_status", call(&["status", "--help"]));
    snapshot!("help_watch", call(&["watch", "--help"]));
    snapshot!("help_best", call(&["best", "--help"]));
    snapshot!("help_list", call(&["list", "--help"]));
    snapshot!("help_show", call(&["show", "--help"]));
    snapshot!("help_diff", call(&["diff", "--help"]));
    snapshot!("help_log", call(&["log", "--help"]));
    snapshot!("help_serve", call(&["serve", "--help"]));
    snapshot!("help_report", call(&["report", "--help"]));
    snapshot!("help_validate", call(&["validate", "--help"]));
    snapshot!("help_clean", call(&["clean", "--help"]));
    snapshot!("help_completions", call(&["completions", "--help"]));
    snapshot!("help_man", call(&["man", "--help"]));
    snapshot!("help_schema", call(&["schema", "--help"]));
}

#[test]
fn every_command_has_an_example_and_help_by_name() {
    for command in COMMANDS {
        let help = call(&[command, "--help"]);
        assert!(help.contains(&format!("Example: treebeam {command}")), "{help}");
        assert_eq!(call(&["help", command]), help);
    }
}

/// `TREEBEAM_UPDATE_DOCS=1` writes the page anew.
#[test]
fn the_reference_is_what_the_program_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference.md");
    let mut text =
        "# Reference\n\nWhat the program says about itself; a test keeps this page so.\n"
            .to_owned();
    let site = Site::new(BINARY);
    let mut add = |title: &str, arguments: &[&str]| {
        let help = site.call(arguments).exits(0).stdout;
        text.push_str(&format!("\n## {title}\n\n```text\n{help}```\n"));
    };
    add("treebeam", &["--help"]);
    for command in COMMANDS {
        add(&format!("treebeam {command}"), &[command, "--help"]);
        if command == "idea" {
            add("treebeam idea add", &["idea", "add", "--help"]);
        }
    }
    if std::env::var_os("TREEBEAM_UPDATE_DOCS").is_some() {
        std::fs::write(&page, &text).expect("to write the page");
    }
    let found = std::fs::read_to_string(&page).expect("docs/reference.md");
    assert!(
        found == text,
        "docs/reference.md is out of date: TREEBEAM_UPDATE_DOCS=1 writes it anew"
    );
}

#[test]
fn wrong_usage() {
    snapshot!("usage_none", call(&[]));
    snapshot!("usage_unknown_command", call(&["runn"]));
    snapshot!("usage_wrong_number", call(&["run", "--dry-run", "--ideas-per-node=0"]));
    snapshot!("usage_wrong_scope", call(&["run", "--dry-run", "--dedupe-scope=some"]));
    snapshot!("usage_wrong_bool", call(&["run", "--stop-on-empty-frontier=maybe"]));
    snapshot!("usage_conflict", call(&["run", "--dry-run", "--report-only"]));
    snapshot!("usage_run_id", call(&["run", "--dry-run", "--run-id=../x"]));
    snapshot!("usage_not_dry", call(&["run"]));
    snapshot!("usage_no_run", call(&["status"]));
    snapshot!("usage_unknown_run", call(&["validate", "nope"]));
}

#[test]
fn no_usable_repository() {
    let dirty = Site::new(BINARY);
    dirty.repo.write("model.py", "x = 2\n").expect("a file");
    dirty.repo.write("new.txt", "new\n").expect("a file");
    snapshot!("environment_dirty", shown(&dirty, &dirty.call(&["run", "--dry-run"])));
    let plain = Site::from_repo(TempRepo::folder("plain").expect("a folder"), BINARY);
    snapshot!("environment_no_repository", shown(&plain, &plain.call(&["run", "--dry-run"])));
    let empty = Site::from_repo(TempRepo::empty().expect("a repository"), BINARY);
    snapshot!("environment_no_commit", shown(&empty, &empty.call(&["run", "--dry-run"])));
}

#[test]
fn a_whole_run() {
    let site = Site::new(BINARY);
    let said = site.run(&["--ideas-per-node=4", "--max-depth=2"]);
    snapshot!("run", shown(&site, &said));
    snapshot!("run_status", shown(&site, &site.call(&["status"])));
    snapshot!("run_report", shown(&site, &site.call(&["report"])));
    snapshot!("run_validate", shown(&site, &site.call(&["validate"])));
    let refused = ["run", "--dry-run", "--run-id", SITE_RUN_ID, "--ideas-per-node=5"];
    snapshot!("run_other_meaning", shown(&site, &site.call(&refused)));
    let refused = ["run", "--dry-run", "--run-id", SITE_RUN_ID, "--no-resume"];
    snapshot!("run_id_taken", shown(&site, &site.call(&refused)));
}
