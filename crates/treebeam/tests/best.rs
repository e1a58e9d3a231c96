//! `treebeam best` with the real program: before anything was promoted, where everything failed,
//! and with a path.

#![cfg(test)]

use serde_json::Value;
use treebeam_testkit::program::{SITE_RUN_ID, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
/// The tuner changes `model.py`; a sweep of two configurations measures nothing, and always the
/// same.
const TUNED: &str = "sweep_command = ['python3', '-c', \"import os; open(os.environ['AGENTIC_RESULTS_CSV'], 'w').write('config_id,loss\\\\n0,1\\\\n1,2\\\\n')\"]\n\
    score.primary = 'loss:lower'\nagents.ideas.provider = 'tuner'\nagents.coder.provider = 'tuner'\n";

fn site(config: &str) -> Site {
    let site = Site::new(BINARY);
    site.repo.write("treebeam.toml", config).expect("a file");
    site
}

fn document(site: &Site) -> Value {
    let mut lines = site.call(&["best", "--json"]).exits(0).json_lines();
    assert_eq!(lines.len(), 1);
    lines.remove(0)
}

/// Asserts that the best node is the root, and that no diff or branch of it is suggested.
#[track_caller]
fn is_the_root(site: &Site, phase: &str) {
    let shown = site.call(&["best", SITE_RUN_ID]).exits(0).stdout;
    assert!(shown.contains(phase) && shown.contains("the root: no node ranks above it"), "{shown}");
    assert!(!shown.contains("treebeam diff") && !shown.contains("git branch"), "{shown}");
    let document = document(site);
    assert_eq!(document["best"], "n0000");
    assert_eq!(document["path"].as_array().map(Vec::len), Some(1), "{document}");
    assert_eq!(document["path"][0]["parent_relative"], Value::Null);
}

#[test]
fn a_root_that_was_never_measured() {
    let site = site(
        "sweep_command = ['python3', '-c', 'exit(1)']\nagents.ideas.provider = 'tuner'\nagents.coder.provider = 'tuner'\n",
    );
    let _ = site.call(&["run", "--run-id", SITE_RUN_ID]).exits(4);
    is_the_root(&site, "measuring the root's baseline");
    assert_eq!(document(&site)["path"][0]["results"], Value::Null);
}

#[test]
fn a_run_in_which_everything_failed() {
    let fails = "test_command = ['python3', '-B', '-c', 'import model; assert model.x == 1']\n";
    let site = site(&format!("{fails}{TUNED}"));
    let _ = site
        .call(&["run", "--run-id", SITE_RUN_ID, "--ideas-per-node=2", "--max-depth=1"])
        .exits(1);
    is_the_root(&site, "stopped");
    let shown = site.call(&["best"]).exits(0).stdout;
    assert!(shown.contains("evals       1: 1 failed"), "{shown}");
}

#[test]
fn a_path_of_several() {
    let site = Site::new(BINARY);
    site.run(&["--quiet", "--ideas-per-node=5", "--beam-width=2", "--max-depth=3"]);
    let (document, manifest) = (document(&site), site.manifest());
    let path = document["path"].as_array().expect("a path");
    assert!(path.len() > 2, "{document}");
    assert_eq!(path.last().map(|step| &step["node"]), Some(&document["best"]));
    let mut titles = Vec::new();
    for step in &path[1..] {
        let eval = step["eval"].as_str().expect("an eval");
        let recorded = &manifest["evaluations"][&eval[1..]];
        for against in ["parent_relative", "root_relative"] {
            let gain = &step[against]["primary_delta"];
            assert_eq!(gain, &recorded[against]["primary_delta"], "{eval} {against}");
        }
        assert_eq!(step["commit"], recorded["candidate_commit"]);
        titles.push(step["idea"]["title"].as_str().expect("a title").to_owned());
    }
    let shown = site.call(&["best"]).exits(0).stdout;
    let export = shown.lines().find_map(|line| line.strip_prefix("export      treebeam "));
    let words: Vec<_> = export.expect("how to export").split(' ').take(4).collect();
    let words: Vec<_> = words.iter().map(|word| word.replace("NAME", "exported")).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let _ = site.call(&words).exits(0);
    let log = site.repo.git(["log", "--reverse", "--format=%s", "main..exported"]).expect("a log");
    assert_eq!(log.lines().collect::<Vec<_>>(), titles, "one commit for each idea");
    let _ = site.call(&["clean", SITE_RUN_ID, "--worktrees", "--yes"]).exits(0);
    assert!(site.call(&["best"]).exits(0).stdout.contains("(removed)"));
    assert_eq!(crate::document(&site)["path"][1]["worktree_path"], Value::Null);
}
