//! `--deadline` with the real clock: a past deadline is refused or begins nothing, a running agent
//! is not waited for, and with more time the run continues.

#![cfg(test)]
#![cfg(target_os = "linux")]

use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, Instant};
use treebeam_testkit::hostile;
use treebeam_testkit::program::{SITE_RUN_ID, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const PAST: &str = "2026-01-01T00:00:00Z";
const PATIENCE: Duration = Duration::from_mins(2);

/// Agent that proposes at once; its coder starts, and answers only once a file exists.
const AGENT: &str = r#"import os, random, sys, time
sys.stdin.read()
if os.environ["TREEBEAM_ROLE"] == "ideas":
    print(f"IDEA: gain {random.random()}\nRATIONALE: luck\nREQUIRED_CHANGES: gain.txt\n")
else:
    open(sys.argv[1] + "/asked", "a").write("x")
    end = time.time() + 300
    while not os.path.exists(sys.argv[1] + "/go") and time.time() < end:
        time.sleep(0.05)
    here = open("gain.txt").read().strip()
    print(f"--- a/gain.txt\n+++ b/gain.txt\n@@ -1 +1 @@\n-{here}\n+{int(here) + 7}")
"#;

const SWEEP: &str = r#"import os, sys
open(sys.argv[1] + "/swept", "a").write("x")
gain = int(open("gain.txt").read())
with open(os.environ["AGENTIC_RESULTS_CSV"], "w") as out:
    out.write("config_id,status,gain\n")
    for config in range(4):
        out.write(f"{config},ok,{1000 + gain + config}\n")
"#;

/// Returns the folder beside the repository, which identifies the site's processes.
fn beside(site: &Site) -> String {
    site.repo.beside("").display().to_string().trim_end_matches('/').to_owned()
}

/// A repository whose agents and sweep leave their marks beside it.
fn site(more: &str) -> Site {
    let site = Site::new(BINARY);
    let beside = beside(&site);
    let agent = |role: &str| {
        format!(
            "[agents.{role}]\nprovider = 'command'\ncommand = ['python3', 'agent.py', '{beside}']\n"
        )
    };
    let config = format!(
        "{more}sweep_command = ['python3', 'sweep.py', '{beside}']\nideas_per_node = 1\nmax_depth = 1\n\
         [score]\nprimary = 'gain'\n[[score.metrics]]\ncolumn = 'gain'\n{}{}",
        agent("coder"),
        agent("ideas")
    );
    for (name, text) in [
        ("treebeam.toml", config.as_str()),
        ("agent.py", AGENT),
        ("sweep.py", SWEEP),
        ("gain.txt", "0\n"),
    ] {
        site.repo.write(name, text).expect("a file");
    }
    site.repo.commit("a state").expect("a commit");
    site
}

/// Returns the number of marks of an agent or sweep.
fn marks(site: &Site, name: &str) -> usize {
    fs::read(site.repo.beside(name)).map_or(0, |marks| marks.len())
}

fn evals(site: &Site) -> Vec<Value> {
    let manifest = site.manifest();
    let evals = manifest["evaluations"].as_object().expect("evals");
    evals.values().cloned().collect()
}

#[test]
fn a_run_whose_time_is_over_before_it_begins_is_refused() {
    let site = site(&format!("deadline = '{PAST}'\n"));
    let idea = site.repo.beside("idea.txt");
    fs::write(&idea, "Try it\n").expect("an idea");
    let idea = idea.display().to_string();
    for words in [
        &["run", "--run-id", SITE_RUN_ID, "--quiet"][..],
        &["run", "--run-id", SITE_RUN_ID, "--quiet", "--dry-run"],
        &["eval", "--run-id", SITE_RUN_ID, "--quiet", "--idea", &idea],
        &["baseline", "--run-id", SITE_RUN_ID, "--quiet"],
    ] {
        let said = site.call(words).exits(2);
        let _ = said.says(["the time of the run is over before it begins", PAST, "hint: "]);
        assert!(!site.repo.path().join(".treebeam").exists(), "nothing is made: {words:?}");
    }
    assert_eq!(marks(&site, "swept"), 0);
}

#[test]
fn a_root_that_was_not_measured_in_time_is_measured_with_more_time() {
    let site = site("");
    fs::write(site.repo.beside("go"), "").expect("a file");
    let told = ["stopped: deadline_reached", "--deadline=none` goes on from here"];
    let _ = site
        .call(&["run", "--run-id", SITE_RUN_ID, "--quiet", "--deadline=1ms"])
        .exits(0)
        .says(told);
    assert_eq!(marks(&site, "swept"), 0, "nothing begins");
    site.must_be_sound();
    let _ = site.call(&["resume", SITE_RUN_ID, "--quiet"]).exits(0).says(told);
    let _ = site.call(&["status", SITE_RUN_ID]).exits(0);
    let _ = site.call(&["clean", SITE_RUN_ID, "--worktrees", "--yes"]).exits(0);
    assert_eq!(marks(&site, "swept"), 0, "nothing begins");
    let _ = site.call(&["resume", SITE_RUN_ID, "--quiet", "--deadline=none"]).exits(0);
    site.must_be_sound();
    assert_eq!((marks(&site, "swept"), evals(&site).len()), (2, 1), "the root and the idea");
    assert_eq!(site.manifest()["state"]["stop_reason"], "max_depth_reached");
}

#[test]
fn an_agent_at_work_is_not_waited_for_and_its_eval_has_not_failed() {
    let site = site("");
    let begun = Instant::now();
    let call = site.begin(&["run", "--run-id", SITE_RUN_ID, "--quiet", "--deadline=10s"]);
    let _ = call.end(PATIENCE).exits(0).says(["stopped: deadline_reached"]);
    assert!(begun.elapsed() >= Duration::from_secs(10));
    assert_eq!(marks(&site, "asked"), 1, "it was at work");
    assert_eq!(hostile::with_word(&beside(&site)), Vec::<u32>::new(), "and is gone");
    let eval = evals(&site).remove(0);
    assert_eq!(eval["error"], json!(null), "{eval}");
    assert!(
        site.text("TREE_SUMMARY.md").contains("unfinished"),
        "{}",
        site.text("TREE_SUMMARY.md")
    );
    site.must_be_sound();
    fs::write(site.repo.beside("go"), "").expect("a file");
    let resume = ["resume", SITE_RUN_ID, "--quiet", "--deadline=none", "--max-depth=2"];
    let _ = site.call(&resume).exits(0);
    site.must_be_sound();
    assert_eq!(evals(&site).len(), 2);
}
