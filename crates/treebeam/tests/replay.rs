//! `treebeam run --replay`: repeats a recorded run without calling an agent, and its messages where
//! that is not possible or the tree differs.

#![cfg(test)]
#![cfg(unix)]

use std::fs;
use treebeam_testkit::program::{SITE_RUN_ID, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");

/// Agent for both roles that counts its questions beside the repository. No two answers are the
/// same.
const AGENT: &str = r#"import os, random, re, sys
prompt = sys.stdin.read()
open(sys.argv[1], "a").write("x")
here = float(open("gain.txt").read())
if os.environ["TREEBEAM_ROLE"] == "ideas":
    for _ in range(3):
        print(f"IDEA: gain {random.randint(30, 900)}\nRATIONALE: luck\nREQUIRED_CHANGES: gain.txt\n")
else:
    more = float(re.search(r"IDEA: gain (\S+)", prompt).group(1))
    print(f"--- a/gain.txt\n+++ b/gain.txt\n@@ -1 +1 @@\n-{here}\n+{here + more}")
"#;

/// Sweep that depends on a file beside the repository too, as on the state of a machine.
const SWEEP: &str = r#"import os, sys
gain = float(open("gain.txt").read())
if os.path.exists(sys.argv[1]):
    gain *= 2
if gain and os.path.exists(sys.argv[1] + "-broken"):
    sys.exit("it broke")
with open(os.environ["AGENTIC_RESULTS_CSV"], "w") as out:
    out.write("config_id,status,gain\n")
    for config in range(4):
        out.write(f"{config},ok,{1000 + gain + config}\n")
"#;

fn site() -> Site {
    let site = Site::new(BINARY);
    let asked = site.repo.beside("asked").display().to_string();
    let agent = |role: &str| {
        format!(
            "[agents.{role}]\nprovider = 'command'\ncommand = ['python3', 'agent.py', '{asked}']\n"
        )
    };
    let mood = site.repo.beside("mood").display().to_string();
    let config = format!(
        "sweep_command = ['python3', 'sweep.py', '{mood}']\nideas_per_node = 3\nmax_depth = 2\nbeam_width = 2\n\
         [score]\nprimary = 'gain'\n[[score.metrics]]\ncolumn = 'gain'\n{}{}",
        agent("coder"),
        agent("ideas")
    );
    for (name, text) in [
        ("treebeam.toml", config.as_str()),
        ("agent.py", AGENT),
        ("sweep.py", SWEEP),
        ("gain.txt", "0.0\n"),
    ] {
        site.repo.write(name, text).expect("a file");
    }
    site.repo.commit("a state").expect("a commit");
    site
}

/// Returns the number of questions so far.
fn asked(site: &Site) -> u64 {
    fs::metadata(site.repo.beside("asked")).map_or(0, |found| found.len())
}

fn record(site: &Site) -> u64 {
    let _ =
        site.call(&["run", "--run-id", SITE_RUN_ID, "--quiet", "--max-parallel-evals=2"]).exits(0);
    asked(site)
}

#[test]
fn a_recorded_run_ends_in_the_same_tree_and_nobody_is_asked() {
    let site = site();
    let questions = record(&site);
    assert!(questions > 6, "{questions} questions");
    let said =
        site.call(&["run", "--replay", SITE_RUN_ID, "--run-id", "again", "--quiet"]).exits(0);
    assert!(said.stderr.contains("the tree is that of run t"), "{}", said.stderr);
    assert_eq!(asked(&site), questions, "nobody was asked");
    let of =
        |run: &str| site.call(&["show", run, "n0001", "--json"]).exits(0).json_lines()[0].clone();
    let (before, after) = (of(SITE_RUN_ID), of("again"));
    assert_eq!(before["idea"], after["idea"]);
    let _ = site.call(&["validate", "again"]).exits(0);
    // A replay has a record of its own, which can be replayed.
    let said = site.call(&["run", "--replay", "again", "--run-id", "third", "--quiet"]).exits(0);
    assert!(said.stderr.contains("the tree is that of run again"), "{}", said.stderr);
    assert_eq!(asked(&site), questions);
}

#[test]
fn one_with_a_control_group_is_replayed_with_it() {
    let site = site();
    let flags =
        ["--run-id", SITE_RUN_ID, "--quiet", "--max-parallel-evals=2", "--control=best-of-n=0.4"];
    let _ = site.call(&[&["run"], &flags[..]].concat()).exits(0);
    let questions = asked(&site);
    let said =
        site.call(&["run", "--replay", SITE_RUN_ID, "--run-id", "again", "--quiet"]).exits(0);
    assert!(said.stderr.contains("the tree is that of run t"), "{}", said.stderr);
    let without = ["run", "--replay", SITE_RUN_ID, "--run-id", "other", "--control=none"];
    let _ = site.call(&without).exits(2).says(["it began with best-of-n=0.4"]);
    assert_eq!(asked(&site), questions, "nobody was asked");
    let of = |run: &str| {
        let best = site.call(&["best", run, "--json"]).exits(0).json_lines().remove(0);
        let control = &best["control"];
        ["control_evals", "shared_evals", "ahead"].map(|key| control[key].clone())
    };
    let (before, after) = (of(SITE_RUN_ID), of("again"));
    assert!(before[0].as_u64().is_some_and(|evals| evals > 0), "{before:?}");
    assert_eq!(before, after);
}

#[test]
fn one_that_was_cut_off_goes_on_with_nobody_asked() {
    let site = site();
    let questions = record(&site);
    let flags = ["run", "--replay", SITE_RUN_ID, "--run-id", "again", "--quiet"];
    let killed = site.call_and_kill(&flags, std::time::Duration::from_millis(900));
    assert_ne!(killed.code, Some(1), "{}", killed.stderr);
    let said = site.call(&["run", "--run-id", "again", "--quiet"]).exits(0);
    assert!(said.stderr.contains("the tree is that of run t"), "{}", said.stderr);
    assert_eq!(asked(&site), questions);
}

#[test]
fn without_the_record_nothing_goes_on_and_nothing_is_lost() {
    let site = site();
    let questions = record(&site);
    let part = ["run", "--replay", SITE_RUN_ID, "--run-id", "part", "--quiet", "--max-depth=1"];
    drop(site.call(&part));
    let runs = site.repo.path().join(".treebeam/runs");
    fs::rename(runs.join(SITE_RUN_ID), site.repo.beside("away")).expect("a folder");
    let deeper = ["resume", "part", "--quiet", "--max-depth=2"];
    let _ = site.call(&deeper).exits(4).says(["goes by the record of run `t`, which is gone"]);
    fs::rename(site.repo.beside("away"), runs.join(SITE_RUN_ID)).expect("a folder");
    let _ = site.call(&deeper).exits(0).says(["the tree is that of run t"]);
    assert_eq!(asked(&site), questions, "nobody was asked");
}

/// A retry's prompt contains the sweep's output, which differs the second time.
#[test]
fn a_run_in_which_evals_were_tried_again_by_themselves_is_replayed() {
    let site = site();
    let fails = "import os, subprocess, sys, time\n\
        said = subprocess.run(['git', 'log', '-1'], capture_output=True, text=True, check=True).stdout\n\
        if 'Treebeam-Eval' in said and 'Treebeam-Attempt: 2' not in said:\n    sys.exit(f'no, {os.getpid()} {time.time_ns()}')\n";
    site.repo.write("sweep.py", &format!("{fails}{SWEEP}")).expect("a file");
    site.repo.commit("a sweep that fails at first").expect("a commit");
    let _ = site.call(&["run", "--run-id", SITE_RUN_ID, "--quiet", "--eval-retries=1"]).exits(0);
    let questions = asked(&site);
    let evals = site.manifest()["evaluations"].to_string();
    assert!(evals.contains("\"attempt\":2") && !evals.contains("\"attempt\":1"), "{evals}");
    let said =
        site.call(&["run", "--replay", SITE_RUN_ID, "--run-id", "again", "--quiet"]).exits(0);
    assert!(said.stderr.contains("the tree is that of run t"), "{}", said.stderr);
    assert_eq!(asked(&site), questions, "nobody was asked");
}

#[test]
fn a_tree_that_is_another_one_is_said() {
    let site = site();
    let _ = site.call(&["run", "--run-id", "flat", "--quiet", "--max-depth=1"]).exits(0);
    let questions = record(&site);
    fs::write(site.repo.beside("mood"), "bad").expect("a file");
    let flat = site.call(&["run", "--replay", "flat", "--run-id", "a", "--quiet"]).exits(1);
    assert!(flat.stderr.contains("the tree is not that of run flat: e0"), "{}", flat.stderr);
    assert!(flat.stderr.contains(", gain +"), "a gain is called gain: {}", flat.stderr);
    // At a greater depth, prompts would contain the results.
    let deep = site.call(&["run", "--replay", SITE_RUN_ID, "--run-id", "b", "--quiet"]).exits(4);
    assert!(deep.stderr.contains("was another question"), "{}", deep.stderr);
    assert_eq!(asked(&site), questions, "nobody was asked");
}

/// Refused whatever the present settings are.
#[test]
fn one_whose_evals_were_tried_again_is_refused() {
    let site = site();
    let broken = site.repo.beside("mood-broken");
    fs::write(&broken, "").expect("a file");
    let _ = site.call(&["run", "--run-id", SITE_RUN_ID, "--quiet", "--max-depth=1"]).exits(1);
    let refused = |why: &str| {
        let said = site.call(&["run", "--replay", SITE_RUN_ID, "--run-id", "again", "--quiet"]);
        let _ = said.exits(1).says([&format!("run `t` cannot be replayed: {why}")]);
    };
    let on = ["resume", SITE_RUN_ID, "--quiet", "--max-depth=1", "--eval-retries=3"];
    drop(site.call(&on));
    refused("`eval_retries` was raised after evals had failed");
    fs::remove_file(&broken).expect("to mend it");
    let _ = site.call(&[&on[..], &["--retry-failed"]].concat()).exits(0);
    refused("work of it was done again while it ran");
}

#[test]
fn what_cannot_be_replayed_is_refused() {
    let site = site();
    let _ = site.call(&["run", "--replay", "nothing"]).exits(2);
    let questions = record(&site);
    let taken = ["run", "--replay", SITE_RUN_ID, "--run-id", SITE_RUN_ID];
    let _ = site.call(&taken).exits(2).says(["it does not replay run `t`"]);
    let config = fs::read_to_string(site.repo.path().join("treebeam.toml")).expect("a file");
    site.repo
        .write("treebeam.toml", &config.replacen("'agent.py'", "'other.py'", 1))
        .expect("a file");
    let other = site.call(&["run", "--replay", SITE_RUN_ID]).exits(2);
    assert!(other.stderr.contains("is another one than in run `t`"), "{}", other.stderr);
    site.repo.write("treebeam.toml", &config).expect("a file");
    let late = ["run", "--run-id", "late", "--deadline=1ms", "--quiet"];
    let _ = site.call(&late).exits(0);
    let cut = site.call(&["run", "--replay", "late"]).exits(1);
    assert!(cut.stderr.contains("a budget ended it"), "{}", cut.stderr);
    assert_eq!(asked(&site), questions);
}
