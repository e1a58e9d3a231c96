//! Redo flags with the real program: failed evals, completed ones, ideas that have not begun; the
//! effect of each flag, and its conflicts.

#![cfg(test)]

use std::fs;
use std::time::Duration;
use treebeam_testkit::program::{SITE_RUN_ID, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const SIZE: [&str; 4] =
    ["--ideas-per-node=5", "--max-depth=2", "--sweep-config-limit=4", "--quiet"];
const ALL: [&str; 3] = ["--retry-failed", "--rerun-evals", "--force-regenerate-ideas"];

/// Makes a run that was left when its third eval had failed: two are completed, two have not begun.
fn left() -> Site {
    let site = Site::new(BINARY);
    site.run(&SIZE);
    let journal = site.text("journal.jsonl");
    let failed = r#""type":"eval_failed","eval":"0003""#;
    let lines: Vec<_> = journal.split_inclusive('\n').collect();
    let end = lines.iter().position(|line| line.contains(failed)).expect("a failed eval");
    let begun = |line: &&str| line.contains("step_started") && line.contains(r#""0004""#);
    assert!(!lines[..=end].iter().any(begun), "one at a time");
    fs::write(site.path("journal.jsonl"), lines[..=end].concat()).expect("half a journal");
    for name in ["manifest.json", "manifest.json.prev"] {
        drop(fs::remove_file(site.path(name)));
    }
    site
}

fn field(site: &Site, eval: &str, name: &str) -> String {
    let value = site.manifest()["evaluations"][eval][name].clone();
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[test]
fn work_of_the_open_depth_is_done_again() {
    let site = left();
    let _ = site.call(&[&["resume", SITE_RUN_ID, "--quiet"], &ALL[..]].concat()).exits(0).says([
        "note: `--retry-failed`: implemented again: e0003\n",
        "note: `--rerun-evals`: evaluated again: e0001, e0002\n",
        "`--force-regenerate-ideas`: other ideas are asked for: n0000; set aside for them: e0004, e0005\n",
    ]);
    site.must_be_sound();
    assert_eq!(field(&site, "0003", "attempt"), "2");
    assert!(field(&site, "0003", "earlier_failures").contains("does not apply"));
    for (old, new) in [("0001", "0006"), ("0002", "0007")] {
        assert_eq!(field(&site, old, "stage"), "superseded");
        assert_eq!(field(&site, old, "superseded_by_eval_id"), new);
        assert_eq!(field(&site, old, "decision"), "null");
        assert_eq!(field(&site, old, "idea_path"), field(&site, new, "idea_path"));
        assert_eq!(field(&site, new, "stage"), "decided");
    }
    for old in ["0004", "0005"] {
        assert_eq!(field(&site, old, "status"), "set_aside");
    }
    let ideas = site.names("node_ideas/0000");
    assert_eq!(ideas.iter().filter(|name| name.starts_with("00")).count(), 7, "{ideas:?}");
    assert!(site.path("eval/0003/experiment/attempt_2/patch_round_0.diff").is_file());
    assert!(site.text("TREE_SUMMARY.md").contains("evaluated again as e0006"));
    assert!(site.text("results.tsv").contains("\tset_aside\tnever begun"));
    let shown = site.call(&["show", SITE_RUN_ID, "e0003"]).exits(0).stdout;
    assert!(shown.contains("attempt 1 failed at implement, of kind patch"), "{shown}");
    let log = site.call(&["log", SITE_RUN_ID]).exits(0).stdout;
    assert!(log.contains("failed evals tried again: e0003; evals done again: e0001 as e0006"));
    let status = site.call(&["status", SITE_RUN_ID]).exits(0).stdout;
    let on_one_line = status.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(on_one_line.contains("2 superseded, 2 set_aside"), "{status}");
    let _ = site.call(&["diff", SITE_RUN_ID, "e0004"]).exits(1).says(["has no diff"]);
}

#[test]
fn a_closed_depth_stands_and_a_new_run_has_nothing_to_do_again() {
    let site = Site::new(BINARY);
    let said =
        site.call(&[&["run", "--dry-run", "--run-id", SITE_RUN_ID], &SIZE[..], &ALL[..]].concat());
    let _ = said.exits(0).says(["note: `--rerun-evals`: nothing to do again: the run is new\n"]);
    let before = site.text("journal.jsonl");
    let said = site.call(&[&["resume", SITE_RUN_ID, "--quiet"], &ALL[..]].concat()).exits(0);
    let closed = "nothing to do again: depth 1 is closed, and closed depths stand\n";
    let lines = ALL.map(|flag| format!("note: `{flag}`: {closed}"));
    let _ = said.says(lines.each_ref().map(String::as_str));
    assert_eq!(site.text("journal.jsonl"), before);
}

#[test]
fn a_budget_that_was_raised_too_late_says_what_goes_on() {
    let site = Site::new(BINARY);
    let flags = ["--ideas-per-node=4", "--max-depth=1", "--max-total-idea-evals=2", "--quiet"];
    let _ =
        site.call(&[&["run", "--dry-run", "--run-id", SITE_RUN_ID], &flags[..]].concat()).exits(0);
    let said = site.call(&["resume", SITE_RUN_ID, "--max-total-idea-evals=8"]).exits(0);
    let _ = said.says([
        "run t stopped: max_depth_reached",
        "hint: a budget left something untried at depth 0, and closed depths stand; \
         `treebeam resume t --max-total-idea-evals=8 --max-depth=2` goes on at the next one",
    ]);
    let said = site.call(&["resume", SITE_RUN_ID, "--max-depth=2"]).exits(0);
    assert!(!said.stderr.contains("left something untried"), "{}", said.stderr);
    assert_eq!(site.manifest()["evaluations"].as_object().map(serde_json::Map::len), Some(6));
}

#[test]
fn the_wishes_go_with_some_flags_only() {
    let site = Site::new(BINARY);
    for (flag, wish) in [
        ("--no-resume", "--retry-failed"),
        ("--report-only", "--rerun-evals"),
        ("--validate-only", "--force-regenerate-ideas"),
    ] {
        let said = site.call(&["run", "--run-id", SITE_RUN_ID, flag, wish]).exits(2);
        let _ = said.says([flag, "cannot be used with", wish]);
    }
    let said = site.call(&["run", "--dry-run", "--retry-failed"]).exits(2);
    let _ = said.says([
        "error: `--retry-failed` is about a run that is there, and none is named\n",
        "hint: `treebeam resume --retry-failed` goes on with the latest unfinished one, `treebeam resume RUN --retry-failed` with any\n",
    ]);
    assert!(!site.repo.path().join(".treebeam").exists(), "nothing has begun");
    site.repo.write("treebeam.toml", "retry_failed = true\n").expect("a file");
    let said = site.call(&["config"]).exits(2);
    let _ = said.says(["`retry_failed`: this is no setting: `--retry-failed` asks for it once"]);
}

#[test]
fn a_wish_without_room_says_so() {
    let site = left();
    let budget = ["resume", SITE_RUN_ID, "--quiet", "--max-total-idea-evals=6", "--rerun-evals"];
    let _ = site.call(&budget).exits(0).says([
        "`--rerun-evals`: evaluated again: e0001; the budget has no room for 1 eval more\n",
    ]);
    site.must_be_sound();
    let site = left();
    let spent = ["resume", SITE_RUN_ID, "--quiet", "--max-total-idea-evals=5", ALL[1], ALL[2]];
    let _ = site.call(&spent).exits(0).says([
        "`--rerun-evals`: nothing to do again: the budget of evals is used up",
        "`--force-regenerate-ideas`: nothing to do again: every idea of depth 0 has begun, or the budget",
    ]);
    site.must_be_sound();
}

/// Makes a run that is killed after this time, again and again, until it ends; returns the number
/// of kills.
fn killed(after: Duration, flags: &[&str]) -> (Site, u32) {
    let site = Site::new(BINARY);
    let start = [&["run", "--dry-run", "--run-id", SITE_RUN_ID], flags].concat();
    let mut kills = 0;
    while site.call_and_kill(&start, after + after * kills / 4).code != Some(0) {
        kills += 1;
        assert!(kills < 200, "no progress");
    }
    site.must_be_sound();
    (site, kills)
}

#[test]
fn evals_are_tried_again_and_the_run_is_the_same_however_often_it_is_killed() {
    let flags = [&SIZE[..], &["--beam-width=2", "--eval-retries=2"]].concat();
    let whole = Site::new(BINARY);
    whole.run(&flags);
    assert_eq!(field(&whole, "0003", "attempt"), "3", "no patch of it ever applies");
    assert_eq!(field(&whole, "0003", "status"), "failed");
    let text = whole.text("journal.jsonl");
    assert_eq!(text.matches(r#""type":"attempt_failed","eval":"0003""#).count(), 2);
    let four = Site::new(BINARY);
    four.run(&[&flags[..], &["--max-parallel-evals=4"]].concat());
    whole.must_equal(&four);
    let (often, kills) = killed(Duration::from_millis(40), &flags);
    whole.must_equal(&often);
    assert!(kills > 1, "killed {kills} times only");
}
