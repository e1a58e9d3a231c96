//! Messages of a run about failures, during the run and at its end: the real cause, and what to do.

#![cfg(test)]
#![cfg(unix)]

use serde_json::Value;
use treebeam_testkit::program::{SITE_RUN_ID, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");

const CONFIG: &str = r#"sweep_command = ["python3", "sweep.py"]
ideas_per_node = 1
max_depth = 1
max_review_rounds = 1
[score]
primary = "gain:higher"
[agents.ideas]
provider = "command"
command = ["printf", "IDEA: a change\nRATIONALE: to see\nREQUIRED_CHANGES: all\n"]
[agents.coder]
provider = "command"
command = ["cat", "change.diff"]
"#;

/// Fails wherever there is a file `broken`.
const SWEEP: &str = r#"import os
if os.path.exists("broken"):
    raise SystemExit("looking\nValueError: no prices")
with open(os.environ["AGENTIC_RESULTS_CSV"], "w") as out:
    out.write("config_id,status,gain\n0,ok,1\n1,ok,2\n")
"#;

/// Returns a coder's answer that adds a file.
fn adds(file: &str) -> String {
    format!(
        "diff --git a/{file} b/{file}\nnew file mode 100644\n--- /dev/null\n+++ b/{file}\n@@ -0,0 +1 @@\n+a line\n"
    )
}

/// Creates a repository with agents whose only idea adds this file.
fn site(file: &str) -> Site {
    let site = Site::new(BINARY);
    let diff = adds(file);
    for (name, text) in
        [("treebeam.toml", CONFIG), ("sweep.py", SWEEP), ("change.diff", diff.as_str())]
    {
        site.repo.write(name, text).expect("a file");
    }
    site.repo.commit("a crew").expect("a commit");
    site
}

fn errors(site: &Site) -> Vec<Value> {
    let manifest = site.manifest();
    let evals = manifest["evaluations"].as_object().expect("evals").values();
    evals.map(|eval| eval["error"].clone()).collect()
}

#[test]
fn a_root_that_fails_is_mended_by_a_new_run_or_outside_of_its_commit() {
    let site = site("x");
    site.repo.write("broken", "\n").expect("a file");
    let root = site.repo.commit("broken").expect("a commit");
    let hints = [
        "ValueError: no prices",
        "start a new run",
        "stays at its root commit",
        "`treebeam resume t` sweeps",
    ];
    let said = site.call(&["run", "--run-id", SITE_RUN_ID]).exits(4).says(hints);
    for (view, words) in
        [("list", "measured nothing: the sweep exited 1"), ("status", "measured nothing")]
    {
        let said = site.call(&[view]).exits(0).stdout;
        assert!(said.contains(words) && !said.contains("go on"), "{view}: {said}");
    }
    let short = root.get(..12).expect("an id");
    assert!(said.stderr.contains(short), "{short}: {}", said.stderr);
    let _ = site.repo.git(["rm", "-q", "broken"]).expect("a removal");
    site.repo.commit("mended").expect("a commit");
    let _ = site.call(&["resume", SITE_RUN_ID]).exits(4).says(hints);
    let _ = site.call(&["run", "--run-id", "new"]).exits(0);
}

#[test]
fn what_is_protected_is_named_when_the_coder_repeats_it() {
    let site = site(".gitattributes");
    let said = site.call(&["run", "--run-id", SITE_RUN_ID]).exits(1);
    let line = "e0001: failed at implement (protected): `.gitattributes`";
    let _ = said.says([line, "the diff does not apply"]);
    let [error] = &errors(&site)[..] else { panic!("not one") };
    assert_eq!(error["kind"], "protected", "{error}");
}

#[test]
fn a_new_file_that_is_too_large_goes_back_to_the_coder() {
    let site = site("x");
    site.repo.write("treebeam.toml", &format!("max_new_file_kib = 1\n{CONFIG}")).expect("a file");
    let large = adds("cache.bin")
        .replace("+1 @@\n+a line", "+1 @@\n+a long line")
        .replace("long", &"long ".repeat(500));
    site.repo.write("change.diff", &large).expect("a file");
    site.repo.commit("a large file").expect("a commit");
    let _ = site.call(&["run", "--run-id", SITE_RUN_ID]).exits(1);
    let [error] = &errors(&site)[..] else { panic!("not one") };
    let message = error["message"].as_str().unwrap_or_default();
    assert!(message.contains("`cache.bin` is new and has 3 KiB"), "{message}");
    let prompt = site.text("eval/0001/experiment/coder_prompt_round_1.txt");
    assert!(prompt.contains("a new file may have 1 KiB (`max_new_file_kib`)"), "{prompt}");
}

/// The lock is waited for only once, and not reported for each ref.
#[test]
fn a_lock_of_the_packed_refs_costs_one_wait_and_one_message() {
    let site = Site::new(BINARY);
    let lock = site.repo.path().join(".git/packed-refs.lock");
    std::fs::write(&lock, "").expect("a lock");
    let begun = std::time::Instant::now();
    let flags = ["--ideas-per-node=6", "--beam-width=1", "--max-depth=2"];
    let said =
        site.call(&[&["run", "--dry-run", "--run-id", SITE_RUN_ID], &flags[..]].concat()).exits(0);
    let waited = begun.elapsed();
    assert!(waited < std::time::Duration::from_secs(30), "{waited:?}");
    assert_eq!(said.stderr.matches("packed-refs.lock").count(), 1, "{}", said.stderr);
    assert_eq!(site.manifest()["evaluations"].as_object().expect("evals").len(), 12);
    assert!(lock.exists(), "another git may hold it");
    let said = site.call(&["clean", SITE_RUN_ID]).exits(1).says(["not removed: ", " refs: "]);
    assert_eq!(said.stderr.matches("packed-refs.lock").count(), 1, "{}", said.stderr);
}

#[test]
fn the_limit_of_a_files_size_is_told_as_what_it_is() {
    let repo = treebeam_testkit::repo::TempRepo::with(&[("a.txt", "a\n")]).expect("a repository");
    let limited = repo.beside("limited");
    let text = format!("#!/bin/sh\nulimit -f 16\nexec '{BINARY}' \"$@\"\n");
    treebeam_testkit::repo::script(&limited, &text).expect("a script");
    let site = Site::from_repo(repo, limited.to_str().expect("a path"));
    let said = site.call(&["run", "--dry-run", "--run-id", SITE_RUN_ID, "--max-depth=2"]).exits(1);
    let _ = said.says(["ulimit -f"]);
}

#[test]
fn a_sweep_that_fails_says_why_on_its_line() {
    let site = site("broken");
    let said = site.call(&["run", "--run-id", SITE_RUN_ID]).exits(1);
    let _ =
        said.says(["e0001: failed at sweep (sweep): the sweep exited 1: ValueError: no prices\n"]);
    let [error] = &errors(&site)[..] else { panic!("not one") };
    assert_eq!(error["message"], "the sweep exited 1:\nlooking\nValueError: no prices");
}

/// The last line of output is the cause, and every view shows it.
#[test]
fn every_view_of_a_failure_has_its_last_line() {
    let site = site("broken");
    let long = SWEEP.replace("\"looking\\n", "\"  File sweep.py, line 1\\n\" * 30 + \"");
    assert_ne!(long, SWEEP);
    site.repo.write("sweep.py", &long).expect("a file");
    site.repo.commit("it says more").expect("a commit");
    let _ = site.call(&["run", "--run-id", SITE_RUN_ID, "--eval-retries=1"]).exits(1);
    let why = "the sweep exited 1: ValueError: no prices";
    let said = site.call(&["log", SITE_RUN_ID]).exits(0);
    assert_eq!(said.stdout.matches(why).count(), 2, "{}", said.stdout);
    for id in ["e0001", "n0000"] {
        let said = site.call(&["show", SITE_RUN_ID, id]).exits(0);
        assert!(said.stdout.contains(why), "{}", said.stdout);
    }
    let report = site.text("TREE_SUMMARY.md");
    assert!(report.contains(why), "{report}");
}

/// A line that is longer than any view has room for, with what counts on the line after it.
const LONG_COMPLAINT: &str = "\"  File prices.py, line 1\\n\" * 30 + \"ValueError: no prices\"";

#[test]
fn every_view_of_a_root_that_fails_has_its_last_line() {
    let site = site("x");
    let sweep = SWEEP.replace("\"looking\\nValueError: no prices\"", LONG_COMPLAINT);
    assert_ne!(sweep, SWEEP);
    site.repo.write("sweep.py", &sweep).expect("a file");
    site.repo.write("broken", "\n").expect("a file");
    site.repo.commit("broken").expect("a commit");
    let _ = site.call(&["run", "--run-id", SITE_RUN_ID]).exits(4);
    let why = "the sweep exited 1: ValueError: no prices";
    for view in [&["list"][..], &["log", SITE_RUN_ID]] {
        let said = site.call(view).exits(0).stdout;
        assert!(said.contains(why), "{view:?}: {said}");
    }
}

#[test]
fn every_view_of_ideas_that_fail_has_the_last_line() {
    let site = site("x");
    let agent = format!("raise SystemExit({LONG_COMPLAINT})\n");
    let ideas = CONFIG.lines().find(|line| line.contains("IDEA: ")).expect("the ideas' command");
    let config = CONFIG.replace(ideas, "command = [\"python3\", \"ideas.py\"]");
    site.repo.write("treebeam.toml", &config).expect("a file");
    site.repo.write("ideas.py", &agent).expect("a file");
    site.repo.commit("ideas that fail").expect("a commit");
    let _ = site.call(&["run", "--run-id", SITE_RUN_ID]).exits(1);
    let said = site.call(&["log", SITE_RUN_ID]).exits(0).stdout;
    for text in [said, site.text("TREE_SUMMARY.md"), site.text("report.html")] {
        assert!(text.contains("failed, exit status: 1: ValueError: no prices"), "{text}");
    }
}

#[test]
fn an_eval_without_a_primary_says_so() {
    let site = Site::new(BINARY);
    let flags = ["--ideas-per-node=5", "--beam-width=2", "--max-depth=2"];
    let said =
        site.call(&[&["run", "--dry-run", "--run-id", SITE_RUN_ID], &flags[..]].concat()).exits(0);
    let manifest = site.manifest();
    let mut without = 0;
    for (id, eval) in manifest["evaluations"].as_object().expect("evals") {
        let root = &eval["root_relative"];
        let begin = format!("e{id}: ");
        let line = said.stderr.lines().find(|line| line.starts_with(&begin)).expect("a line");
        let has_none = root.is_object() && root["primary_delta"].is_null();
        assert_eq!(line.contains("no primary"), has_none, "{line}");
        assert!(!has_none || !line.contains("+0.0000"), "{line}");
        without += usize::from(has_none);
    }
    assert!(without > 0, "the dry world has candidates without a primary");
}

#[test]
fn an_eval_whose_results_are_flawed_says_what_the_gate_will_say() {
    let site = Site::new(BINARY);
    let flags = ["--ideas-per-node=7", "--beam-width=2", "--max-depth=2"];
    let said =
        site.call(&[&["run", "--dry-run", "--run-id", SITE_RUN_ID], &flags[..]].concat()).exits(0);
    let manifest = site.manifest();
    let mut flawed = 0;
    for (id, eval) in manifest["evaluations"].as_object().expect("evals") {
        let reason = eval["decision"]["promotion_reason"].as_str().unwrap_or_default();
        let Some(figures) = reason.strip_prefix("incomplete: ") else { continue };
        let line = format!("e{id}: incomplete, {figures}: ");
        assert!(said.stderr.contains(&line), "{line}\n{}", said.stderr);
        flawed += 1;
    }
    assert!(flawed > 0, "the dry world has candidates whose rows are not all there");
}
