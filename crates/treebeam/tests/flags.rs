//! Each flag of `run` and `resume` has its effect, and `--json` and `--quiet` theirs.

#![cfg(test)]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use treebeam_testkit::program::{SITE_RUN_ID, Site};
use treebeam_testkit::repo::TempRepo;

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");

/// A finished run with these flags, separated by white space.
#[track_caller]
fn run(flags: &str) -> Site {
    let site = Site::new(BINARY);
    site.run(&words(flags));
    site
}

fn words(flags: &str) -> Vec<&str> {
    flags.split_whitespace().collect()
}

fn size(value: &Value) -> usize {
    value.as_object().map_or_else(|| value.as_array().map_or(0, Vec::len), serde_json::Map::len)
}

fn stop_reason(site: &Site) -> String {
    site.manifest()["state"]["stop_reason"].as_str().unwrap_or("none").to_owned()
}

/// Returns the ids of the evals with this status, promoted or not.
fn evals(site: &Site, status: &str) -> BTreeSet<String> {
    let manifest = site.manifest();
    let all = manifest["evaluations"].as_object().expect("evals").clone();
    all.into_iter().filter(|(_, eval)| eval["status"] == status).map(|(id, _)| id).collect()
}

#[test]
fn a_number_below_zero_is_no_flag() {
    let site = Site::new(BINARY);
    for flag in ["--max-cost-usd", "--max-depth", "--ideas-per-node", "--eval-timeout-seconds"] {
        let said = site.call(&["run", "--dry-run", flag, "-3"]).exits(2);
        let _ = said.says(["invalid value '-3'", flag]);
    }
}

// ---- how big

#[test]
fn k_is_how_many_ideas_each_node_gets() {
    for k in [1, 3, 6] {
        let site = run(&format!("--ideas-per-node {k} --max-depth 1"));
        assert_eq!(size(&site.manifest()["evaluations"]), k);
        let ideas = site.names("node_ideas/0000");
        assert_eq!(ideas.iter().filter(|name| name.starts_with("00")).count(), k, "{ideas:?}");
    }
}

#[test]
fn d_is_how_many_depths_are_expanded() {
    for d in [1, 2, 4] {
        let site = run(&format!("--ideas-per-node 5 --max-depth {d}"));
        assert_eq!(stop_reason(&site), "max_depth_reached");
        assert_eq!(size(&site.manifest()["state"]["completed_depths"]), d);
        assert_eq!(size(&site.manifest()["nodes"]), d + 1);
    }
}

#[test]
fn a_run_of_no_depth_measures_its_root_and_stops() {
    let site = run("--max-depth 0");
    assert_eq!(stop_reason(&site), "max_depth_reached");
    assert_eq!(size(&site.manifest()["evaluations"]), 0);
    assert_eq!(site.names("artifacts"), ["root.csv"]);
}

#[test]
fn a_finished_run_goes_deeper_on_resume() {
    let site = run("--ideas-per-node 5 --max-depth 1");
    site.resume(&["--max-depth", "2"]);
    assert_eq!(site.manifest()["state"]["completed_depths"], serde_json::json!([0, 1]));
    let straight = run("--ideas-per-node 5 --max-depth 2");
    assert_eq!(site.text("TREE_SUMMARY.md"), straight.text("TREE_SUMMARY.md"));
    assert_eq!(site.refs(), straight.refs());
}

#[test]
fn b_is_how_many_candidates_are_promoted() {
    for b in [1, 2, 3] {
        let site = run(&format!("--ideas-per-node 5 --max-depth 1 --beam-width {b}"));
        let closed = &site.manifest()["state"]["closed_depths"][0];
        assert_eq!(size(&closed["beam_eval_ids"]), b);
        assert_eq!(site.names("wt").len(), b + 1);
    }
}

#[test]
fn n_is_how_many_rows_a_sweep_has() {
    for (flag, rows) in [("", 12), ("--sweep-config-limit 6", 6), ("--sweep-config-limit 1", 1)] {
        let site = run(&format!("--ideas-per-node 2 --max-depth 1 {flag}"));
        let artifacts = site.files("artifacts");
        assert_eq!(site.names("artifacts"), ["e0001.csv", "e0002.csv", "root.csv"]);
        for (name, csv) in artifacts {
            let lines = String::from_utf8(csv).expect("text").lines().count();
            assert_eq!(lines, rows + 1, "{name} with {flag:?}");
        }
        assert_eq!(site.manifest()["evaluations"]["0002"]["completeness"]["expected_count"], rows);
    }
}

// ---- when it stops

#[test]
fn a_budget_cuts_a_depth_short_and_can_be_raised() {
    let site = run("--ideas-per-node 5 --beam-width 2 --max-total-idea-evals 8");
    assert_eq!(stop_reason(&site), "max_total_idea_evals_reached");
    assert_eq!(size(&site.manifest()["evaluations"]), 8);
    let closed = site.manifest()["state"]["closed_depths"].clone();
    assert_eq!((&closed[0]["cut_short"], &closed[1]["cut_short"]), (&false.into(), &true.into()));
    assert!(size(&closed[1]["beam_eval_ids"]) > 0, "what finished is gated and promoted");
    let untried: usize = proposals(&site).iter().map(|event| size(&event["untried"])).sum();
    assert!(untried >= 2, "{untried} untried");
    let summary = site.text("TREE_SUMMARY.md");
    assert_eq!(summary.matches("left untried by the budget").count(), untried, "{summary}");
    assert!(summary.contains("n0002: not expanded, the budget was used up"), "{summary}");
    assert!(summary.contains("`max_total_idea_evals_reached`"));
    site.resume(&["--max-total-idea-evals", "11"]);
    assert_eq!(size(&site.manifest()["evaluations"]), 11);
    assert_eq!(stop_reason(&site), "max_total_idea_evals_reached");
    site.resume(&["--max-total-idea-evals", "1000"]);
    assert!(size(&site.manifest()["evaluations"]) >= 11);
}

fn proposals(site: &Site) -> Vec<Value> {
    let all = site.events().into_iter();
    all.filter(|event| event["type"] == "ideas_proposed").collect()
}

#[test]
fn a_budget_at_the_end_of_a_depth_cuts_nothing() {
    let site = run("--ideas-per-node 5 --max-total-idea-evals 5");
    assert_eq!(stop_reason(&site), "max_total_idea_evals_reached");
    assert_eq!(size(&site.manifest()["evaluations"]), 5);
    assert_eq!(site.manifest()["state"]["closed_depths"][0]["cut_short"], false);
    assert!(!site.text("TREE_SUMMARY.md").contains("by the budget"));
}

#[test]
fn an_empty_frontier_ends_the_run_or_is_expanded_again() {
    let ends = run("--ideas-per-node 2 --max-depth 4");
    assert_eq!(stop_reason(&ends), "empty_frontier");
    assert_eq!(size(&ends.manifest()["state"]["frontier_node_ids"]), 0);
    let again = run("--ideas-per-node 2 --max-depth 4 --stop-on-empty-frontier=false");
    assert_eq!(stop_reason(&again), "max_depth_reached");
    assert!(size(&again.manifest()["evaluations"]) > size(&ends.manifest()["evaluations"]));
    let expanded = again.manifest()["state"]["expanded_node_ids_by_depth"].clone();
    assert_eq!(expanded["1"], expanded["2"], "the same frontier at the next depth");
    ends.resume(&["--stop-on-empty-frontier=false"]);
    assert_eq!(again.text("TREE_SUMMARY.md"), ends.text("TREE_SUMMARY.md"));
}

#[test]
fn a_failed_eval_ends_a_strict_run_after_its_depth() {
    let site = run("--ideas-per-node 5 --strict-fail-depth");
    assert_eq!(evals(&site, "failed").len(), 1);
    assert_eq!(stop_reason(&site), "strict_depth_failure");
    assert_eq!(size(&site.manifest()["state"]["completed_depths"]), 1);
    assert_eq!(stop_reason(&run("--ideas-per-node 2 --strict-fail-depth")), "empty_frontier");
    site.resume(&["--strict-fail-depth=false"]);
    assert_eq!(stop_reason(&site), "max_depth_reached");
}

// ---- what it leaves behind

/// Returns the evals that have refs.
fn candidate_refs(site: &Site) -> BTreeSet<String> {
    let refs = site.refs();
    let id = |line: &str| line.rsplit_once("/e").map(|(_, id)| id.to_owned());
    refs.lines().filter_map(id).collect()
}

fn set(names: Vec<String>) -> BTreeSet<String> {
    names.into_iter().collect()
}

/// Completed evals that were not promoted.
fn rejected(site: &Site) -> BTreeSet<String> {
    let manifest = site.manifest();
    let mut rejected = evals(site, "completed");
    rejected.retain(|id| manifest["evaluations"][id]["decision"]["promoted_to_node_id"].is_null());
    rejected
}

const KEEPING: &str = "--ideas-per-node 7 --max-depth 2 --beam-width 2";

#[test]
fn without_a_keep_flag_nothing_of_a_candidate_is_left() {
    let site = run(KEEPING);
    assert!(rejected(&site).len() > 2 && evals(&site, "failed").len() > 1);
    assert_eq!(site.names("cand"), [""; 0]);
    assert_eq!(candidate_refs(&site), BTreeSet::new());
    assert_eq!(size(&site.manifest()["state"]["deferred_cleanup"]), 0);
}

#[test]
fn rejected_candidates_are_kept_on_request() {
    let site = run(&format!("{KEEPING} --keep-rejected-worktrees"));
    assert_eq!(set(site.names("cand")), rejected(&site));
    assert_eq!(candidate_refs(&site), rejected(&site));
    let first = rejected(&site).pop_first().expect("a rejected eval");
    let folder = site.path(&format!("cand/{first}"));
    let head = site.repo.git_in(&folder, &["rev-parse", "HEAD"]).expect("a worktree");
    assert_eq!(site.manifest()["evaluations"][&first]["candidate_commit"], head);
}

#[test]
fn failed_candidates_are_kept_on_request() {
    let without = run(KEEPING);
    let site = run(&format!("{KEEPING} --keep-failed-artifacts"));
    let failed = evals(&site, "failed");
    assert_eq!(set(site.names("cand")), failed);
    let swept: Vec<_> = failed
        .iter()
        .filter(|id| site.manifest()["evaluations"][id]["error"]["stage"] == "sweep")
        .collect();
    assert!(!swept.is_empty(), "no eval failed in its sweep");
    for eval in swept {
        assert!(candidate_refs(&site).contains(eval), "the ref of {eval}");
        let raw = format!("eval/{eval}/s1");
        assert_eq!((site.names(&raw).len(), without.names(&raw).len()), (1, 0), "{raw}");
    }
}

// ---- repeats

fn repeats(scope: &str, site: &Site) -> usize {
    site.run(&["--ideas-per-node=9", "--beam-width=2", "--dedupe-scope", scope]);
    proposals(site).iter().map(|event| size(&event["repeats"])).sum()
}

#[test]
fn repeats_are_looked_for_in_the_scope() {
    let count = |scope| repeats(scope, &Site::new(BINARY));
    let (none, branch, all) = (count("none"), count("node_plus_ancestors"), count("global"));
    assert_eq!(none, 0);
    assert!(0 < branch && branch < all, "{branch} on the branch, {all} in the run");
}

#[test]
fn without_a_scope_repeats_are_tried_again() {
    let site = Site::new(BINARY);
    repeats("none", &site);
    let manifest = site.manifest();
    let evals = manifest["evaluations"].as_object().expect("evals");
    let everywhere =
        |eval: &&Value| eval["idea_path"].as_str().is_some_and(|path| path.contains("everywhere"));
    assert!(evals.values().filter(everywhere).count() > 1);
}

// ---- how fast

/// Returns the maximum number of evals between two of these events at once, in all and on one node.
fn most_at_once(site: &Site, first: fn(&Value) -> Option<&str>, last: &[&str]) -> (usize, usize) {
    let manifest = site.manifest();
    let parent = |eval: &str| manifest["evaluations"][eval]["parent_node_id"].to_string();
    let mut open: BTreeSet<String> = BTreeSet::new();
    let (mut most, mut on_one) = (0, 0);
    for event in site.events() {
        if let Some(eval) = first(&event) {
            open.insert(eval.to_owned());
        }
        if last.iter().any(|kind| event["type"] == *kind) {
            open.remove(event["eval"].as_str().unwrap_or_default());
        }
        let mut by_node: BTreeMap<String, usize> = BTreeMap::new();
        for eval in &open {
            *by_node.entry(parent(eval)).or_default() += 1;
        }
        most = most.max(open.len());
        on_one = on_one.max(by_node.into_values().max().unwrap_or(0));
    }
    (most, on_one)
}

fn evals_at_once(site: &Site) -> (usize, usize) {
    most_at_once(site, |event| event["step"]["implement"].as_str(), &["scored", "eval_failed"])
}

fn sweeps_at_once(site: &Site) -> usize {
    most_at_once(site, |event| event["subject"]["eval"].as_str(), &["swept", "eval_failed"]).0
}

#[test]
fn parallel_flags_limit_what_is_under_way_and_change_no_result() {
    const SIZE: &str = "--ideas-per-node 6 --max-depth 2 --beam-width 2";
    let plain = run(SIZE);
    assert_eq!(evals_at_once(&plain), (1, 1));
    let four = run(&format!("{SIZE} --max-parallel-evals 4"));
    assert_eq!(evals_at_once(&four), (4, 4));
    let node = run(&format!("{SIZE} --max-parallel-evals 4 --max-parallel-per-node 1"));
    assert_eq!(evals_at_once(&node), (2, 1), "two nodes with one eval each");
    let sweep = run(&format!("{SIZE} --max-parallel-evals 4 --sweep-max-parallel 1"));
    assert_eq!((evals_at_once(&sweep).0, sweeps_at_once(&sweep)), (4, 1));
    for site in [&four, &node, &sweep] {
        assert_eq!(site.text("TREE_SUMMARY.md"), plain.text("TREE_SUMMARY.md"));
        assert_eq!(site.refs(), plain.refs());
        assert_eq!(site.files("artifacts"), plain.files("artifacts"));
    }
}

// ---- runs that are there already

#[test]
fn a_taken_run_id_is_refused_on_request() {
    let site = run("--ideas-per-node 1 --max-depth 1");
    let before = site.text("journal.jsonl");
    let flags = ["run", "--dry-run", "--run-id", SITE_RUN_ID, "--no-resume"];
    let _ = site.call(&flags).exits(2).says([&format!("`{SITE_RUN_ID}`"), "already", "hint:"]);
    assert_eq!(site.text("journal.jsonl"), before);
}

#[test]
fn report_only_writes_reports_and_runs_nothing() {
    let site = run("--ideas-per-node 2 --max-depth 1");
    let (journal, summary) = (site.text("journal.jsonl"), site.text("TREE_SUMMARY.md"));
    fs::remove_file(site.path("TREE_SUMMARY.md")).expect("to remove");
    fs::remove_file(site.path("VALIDATION_REPORT.md")).expect("to remove");
    let _ = site.call(&["run", "--run-id", SITE_RUN_ID, "--report-only", "--max-depth=3"]).exits(0);
    assert_eq!(site.text("TREE_SUMMARY.md"), summary);
    assert!(site.text("VALIDATION_REPORT.md").contains("Nothing found."));
    assert_eq!(site.text("journal.jsonl"), journal);
}

#[test]
fn validate_only_writes_its_report_and_no_other() {
    let site = run("--ideas-per-node 2 --max-depth 1");
    let journal = site.text("journal.jsonl");
    fs::remove_file(site.path("TREE_SUMMARY.md")).expect("to remove");
    fs::remove_file(site.path("VALIDATION_REPORT.md")).expect("to remove");
    let _ = site.call(&["run", "--run-id", SITE_RUN_ID, "--validate-only"]).exits(0);
    assert!(site.text("VALIDATION_REPORT.md").contains("Nothing found."));
    assert!(!site.path("TREE_SUMMARY.md").exists());
    assert_eq!(site.text("journal.jsonl"), journal);
}

#[test]
fn a_flag_that_changes_the_meaning_is_refused_on_resume() {
    let site = run("--ideas-per-node 2 --max-depth 1 --beam-width 3 --sweep-config-limit 4");
    let journal = site.text("journal.jsonl");
    for (flag, value, begun_with) in [
        ("--ideas-per-node", "9", "2"),
        ("--beam-width", "8", "3"),
        ("--sweep-config-limit", "7", "4"),
        ("--dedupe-scope", "global", "node_plus_ancestors"),
    ] {
        let said = site.call(&["run", "--dry-run", "--run-id", SITE_RUN_ID, flag, value]).exits(2);
        let _ = said.says([&format!("{flag} {value}"), &format!("began with {begun_with}")]);
    }
    assert_eq!(site.text("journal.jsonl"), journal);
    let same = ["run", "--run-id", SITE_RUN_ID, "--ideas-per-node=2", "--beam-width=3"];
    let _ = site.call(&same).exits(0);
}

/// A repository whose root has this file of the dry world.
fn with_state(text: &str) -> Site {
    let files = [("model.py", "x = 1\n"), ("treebeam_dry_run.txt", text)];
    Site::from_repo(TempRepo::with(&files).expect("a repository"), BINARY)
}

#[test]
fn a_run_whose_evals_all_failed_exits_1() {
    let site = with_state("no line end, so that no patch applies");
    let said =
        site.call(&["run", "--dry-run", "--run-id", SITE_RUN_ID, "--ideas-per-node=3"]).exits(1);
    let _ = said.says(["stopped: empty_frontier", "best node: n0000"]);
    assert_eq!(evals(&site, "failed").len(), 3);
    site.must_be_sound();
}

#[test]
fn a_root_that_cannot_be_swept_is_the_environments_fault() {
    for (state, why) in [("sweep-fails by x\n", "sweep exited 1"), ("errors by x\n", "11 of 12")] {
        let site = with_state(state);
        let said = site.call(&["run", "--dry-run", "--run-id", SITE_RUN_ID]).exits(4);
        let _ = said.says(["the root cannot be used as a baseline", why, "hint:"]);
        assert_eq!(site.names("node_ideas"), [""; 0], "no idea was paid for");
        let _ = site.call(&["resume"]).exits(4).says([why]);
    }
}

// ---- what it says

#[test]
fn quiet_says_the_end_and_nothing_else() {
    let site = Site::new(BINARY);
    let said = site.run(&["--quiet", "--ideas-per-node=5", "--max-depth=1"]);
    assert_eq!(said.stdout, "");
    let lines: Vec<_> = said.stderr.lines().collect();
    assert!(lines.len() <= 2, "{lines:?}");
    assert!(lines.iter().all(|line| line.starts_with("run t ") || line.starts_with("report:")));
    let loud = Site::new(BINARY).run(&["--ideas-per-node=5", "--max-depth=1"]);
    assert!(loud.stderr.lines().count() > 8, "{}", loud.stderr);
}

#[test]
fn json_prints_every_event_and_then_the_end() {
    let site = Site::new(BINARY);
    let said = site.run(&["--json", "--ideas-per-node=5", "--max-depth=2"]);
    let mut lines = said.json_lines();
    let end = lines.pop().expect("a last line");
    assert_eq!(
        end,
        serde_json::json!({
            "type": "end", "run_id": SITE_RUN_ID, "stop_reason": "max_depth_reached", "best": "n0001",
        })
    );
    assert_eq!(lines, site.events(), "one line for each event of the journal");
    assert_eq!(said.stderr, "");
    let resumed = site.resume(&["--json", "--max-depth=3"]).json_lines();
    assert_eq!(resumed[0]["type"], "settings_changed");
    assert_eq!(resumed.last().expect("a last line")["type"], "end");
    assert_eq!(resumed.len() - 1 + lines.len(), site.events().len());
}

#[test]
fn every_other_command_prints_one_document() {
    let site = run("--ideas-per-node 5 --max-depth 1");
    for (command, has) in [("status", "outcomes"), ("report", "written"), ("validate", "findings")]
    {
        let said = site.call(&[command, "--json"]).exits(0);
        let lines = said.json_lines();
        assert_eq!(lines.len(), 1, "{}", said.stdout);
        assert_eq!(lines[0]["schema"], format!("treebeam.{command}/1"));
        assert_eq!(lines[0]["run_id"], SITE_RUN_ID);
        assert!(!lines[0][has].is_null(), "{}", said.stdout);
        assert_eq!(said.stderr, "");
    }
}
