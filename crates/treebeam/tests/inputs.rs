//! Inputs of sweeps with the real program: where they are protected, nothing is measured with
//! inputs other than the root's, and where they are not, a sweep may write to them.

#![cfg(test)]
#![cfg(unix)]

use std::fs;
use treebeam_testkit::program::{SITE_RUN_ID, Said, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const PRICES: &str = "1\n2\n3\n";
const SIZE: [&str; 2] = ["--ideas-per-node=2", "--max-depth=1"];

/// Agent that proposes the ideas in `IDEAS`, and changes the only file to what the idea says.
const AGENT: &str = r#"import os, re, sys
prompt = sys.stdin.read()
if os.environ["TREEBEAM_ROLE"] == "ideas":
    for change in open("IDEAS").read().split():
        print(f"IDEA: change {change}\nRATIONALE: to see\nREQUIRED_CHANGES: change.txt\n")
else:
    change = re.search(r"IDEA: change (\S+)", prompt).group(1)
    print(f"--- a/change.txt\n+++ b/change.txt\n@@ -1 +1 @@\n-root\n+{change}")
"#;

/// Sweep whose score grows with the number of prices, which some changes manipulate.
const SWEEP: &str = r#"import os, sys
change = open("change.txt").read().strip()
open("cache/seen", "a").write(change + "\n")
first = not os.path.exists("cache/once")
gain = len(open("data/prices.csv").readlines()) + (change in ("good", "once"))
with open(os.environ["AGENTIC_RESULTS_CSV"], "w") as out:
    out.write("config_id,status,gain\n")
    for config in range(3):
        out.write(f"{config},ok,{gain * (config + 1)}\n")
if change in ("tampers", "fails") or (change == "once" and first):
    open("cache/once", "w")
    open("data/prices.csv", "a").write("4\n5\n")
sys.exit(change == "fails")
"#;

fn site(protect: &str, ideas: &str) -> Site {
    let site = Site::new(BINARY);
    let agent = |role: &str| {
        format!("[agents.{role}]\nprovider = 'command'\ncommand = ['python3', 'agent.py']\n")
    };
    let config = format!(
        "sweep_command = ['python3', 'sweep.py']\ninputs = ['data', 'cache']\nprotect = ['{protect}']\n\
         [score]\nprimary = 'gain:higher'\n\
         metrics = [{{ column = 'gain', direction = 'higher', weight = 1.0 }}]\n{}{}",
        agent("coder"),
        agent("ideas")
    );
    for (name, text) in [
        ("treebeam.toml", config.as_str()),
        ("agent.py", AGENT),
        ("sweep.py", SWEEP),
        ("IDEAS", ideas),
        ("change.txt", "root\n"),
        (".gitignore", "data/\ncache/\n"),
    ] {
        site.repo.write(name, text).expect("a file");
    }
    site.repo.commit("a state").expect("a commit");
    site.repo.write("data/prices.csv", PRICES).expect("prices");
    site.repo.write("cache/seen", "").expect("a cache");
    site
}

fn run(site: &Site) -> Said {
    site.call(&[&["run", "--quiet", "--run-id", SITE_RUN_ID], &SIZE[..]].concat())
}

fn prices(site: &Site) -> String {
    fs::read_to_string(site.repo.path().join("data/prices.csv")).expect("prices")
}

/// Returns kind and message of an eval's failure, or empty texts.
fn failure(site: &Site, eval: &str) -> [String; 2] {
    let eval = &site.manifest()["evaluations"][eval];
    ["kind", "message"].map(|field| eval["error"][field].as_str().unwrap_or_default().to_owned())
}

/// Returns the swept changes, in order.
fn seen(site: &Site) -> String {
    fs::read_to_string(site.repo.path().join("cache/seen")).expect("a cache").replace('\n', " ")
}

#[test]
fn nothing_is_measured_on_other_data_than_the_roots() {
    let site = site("data/**", "fails comment");
    let changed = "protected inputs are not what they were when the root was measured";
    let named = format!("{changed}: `data/prices.csv`");
    let hints = |said: &Said| {
        let way_on = "--retry-failed` goes on from here, and sweeps what failed for it again; if";
        said.stderr.contains("hint: restore these files, then `treebeam resume t")
            && said.stderr.contains(way_on)
    };
    let said = run(&site).exits(4);
    assert!(said.stderr.contains(&format!("is not submitted: {named}")), "{}", said.stderr);
    assert!(hints(&said), "{}", said.stderr);
    let [kind, message] = failure(&site, "0001");
    assert_eq!(kind, "inputs", "{message}");
    assert!(message.starts_with(&format!("{named}; they are your own files")), "{message}");
    assert_eq!(prices(&site), "1\n2\n3\n4\n5\n", "they are the user's to restore");
    assert_eq!(seen(&site), "root fails ");

    let said = site.call(&["resume", SITE_RUN_ID]).exits(4);
    assert!(said.stderr.contains(changed) && hints(&said), "{}", said.stderr);
    assert_eq!(seen(&site), "root fails ");

    site.repo.write("data/prices.csv", PRICES).expect("prices");
    let _ = site.call(&["resume", SITE_RUN_ID, "--quiet"]).exits(0);
    let _ = site.call(&["validate", SITE_RUN_ID]).exits(0);
    assert_eq!(seen(&site), "root fails comment ");
    let manifest = site.manifest();
    assert_eq!(manifest["nodes"].as_object().map(serde_json::Map::len), Some(1), "only the root");
    assert!(manifest["root"]["protected_inputs_sha256"].is_string(), "{manifest:#}");
    assert_eq!(failure(&site, "0002")[0], "", "measured, and no better than the root");
}

#[test]
fn who_was_swept_while_they_were_others_is_swept_again_and_nobody_is_paid() {
    let site = site("data/**", "once comment");
    let _ = run(&site).exits(4);
    site.repo.write("data/prices.csv", PRICES).expect("prices");
    let said = site.call(&["resume", SITE_RUN_ID, "--retry-failed"]).exits(0);
    assert!(said.stderr.contains("swept again as committed: e0001"), "{}", said.stderr);
    assert_eq!(seen(&site), "root once comment once ");
    assert_eq!(failure(&site, "0001")[0], "");
    assert_eq!(site.manifest()["nodes"].as_object().map(serde_json::Map::len), Some(2));
    assert!(!site.path("eval/0001/experiment/attempt_2/coder_prompt_round_0.txt").exists());
}

#[test]
fn a_change_that_is_worth_it_is_promoted_and_others_may_write_to_what_is_not_protected() {
    let site = site("data/**", "comment good");
    let _ = run(&site).exits(0);
    let _ = site.call(&["validate", SITE_RUN_ID]).exits(0);
    assert_eq!(site.manifest()["nodes"].as_object().map(serde_json::Map::len), Some(2));
    assert_eq!(seen(&site), "root comment good ");
}

#[test]
fn inputs_are_protected_without_a_pattern() {
    let site = site("eval/**", "fails good");
    let _ = run(&site).exits(4);
    let [kind, message] = failure(&site, "0001");
    assert!(kind == "inputs" && message.contains("`data/prices.csv`"), "{message}");
    site.repo.write("data/prices.csv", PRICES).expect("prices");
    let _ = site.call(&["resume", SITE_RUN_ID, "--quiet"]).exits(0);
    let _ = site.call(&["validate", SITE_RUN_ID]).exits(0);
    assert_eq!(site.manifest()["root"]["checks"]["inputs"], "all");
}

/// The root's own sweep writes to the input, and so may those of candidates; compiled Python code
/// may appear at any time.
#[test]
fn what_the_roots_own_sweep_writes_may_be_written() {
    let site = site("eval/**", "comment good");
    site.repo.write("data/index", "").expect("an index");
    let sweep = SWEEP.replace("change = open", "open('data/index', 'a').write('x')\nos.makedirs('data/__pycache__', exist_ok=True)\nopen('data/new-' + os.path.basename(os.environ['TREEBEAM_WORKTREE']), 'w')\nchange = open");
    site.repo.write("sweep.py", &sweep).expect("a sweep");
    site.repo.git(["commit", "--quiet", "-am", "with an index"]).expect("a commit");
    let _ = run(&site).exits(0);
    let _ = site.call(&["validate", SITE_RUN_ID]).exits(0);
    let index = fs::read_to_string(site.repo.path().join("data/index")).expect("an index");
    assert_eq!((index.as_str(), failure(&site, "0001")[0].as_str()), ("xxx", ""));
}

/// A candidate's commit with a new file beside its change, from an agent that attacks the judge.
#[test]
fn what_python_would_run_unasked_goes_back_to_the_coder() {
    for (file, says) in [
        ("sitecustomize.py", "may not be added"),
        ("a.pth", "may not be added"),
        ("random.py", "protected files import `random` from elsewhere"),
        ("AUX.txt", "may not be added"),
    ] {
        let site = site("sweep.py", "good");
        let patch = format!("print(\"--- /dev/null\\n+++ b/{file}\\n@@ -0,0 +1 @@\\n+x = 1\")");
        site.repo.write("agent.py", &format!("{AGENT}    {patch}\n")).expect("an agent");
        site.repo.write("sweep.py", &format!("import random\n{SWEEP}")).expect("a sweep");
        site.repo.git(["commit", "--quiet", "-am", "another agent"]).expect("a commit");
        let words =
            ["run", "--quiet", "--run-id", SITE_RUN_ID, "--ideas-per-node=1", "--max-depth=1"];
        let _ = site.call(&words);
        let [kind, message] = failure(&site, "0001");
        assert!(kind == "protected" && message.contains(says), "{file}: {kind}: {message}");
    }
}

#[test]
fn an_idea_that_is_tried_alone_fails_too() {
    for in_place in [false, true] {
        let site = site("data/**", "");
        let file = site.repo.beside("idea.txt");
        let text = "IDEA: change tampers\n\nRATIONALE: to see\nREQUIRED_CHANGES: all\n";
        fs::write(&file, text).expect("an idea");
        let file = file.display().to_string();
        let mut flags = vec!["eval", "--json", "--quiet", "--idea", &file, "--run-id", SITE_RUN_ID];
        flags.extend(in_place.then_some("--in-place"));
        let said = site.call(&flags);
        let document = said.json_lines().remove(0);
        let error = &document["evals"][0]["error"];
        assert_eq!(error["kind"], "inputs", "{document:#}");
        assert!(error["message"].as_str().is_some_and(|said| said.contains("`data/prices.csv`")));
    }
}

/// Git ignores the folders `data/` and `cache/`, and the links to them are no folders.
#[test]
fn the_links_to_inputs_are_nobodys_work() {
    let site = site("data/**", "one two three");
    let flags = ["--ideas-per-node=3", "--max-depth=1", "--keep-rejected-worktrees"];
    let _ =
        site.call(&[&["run", "--quiet", "--run-id", SITE_RUN_ID], &flags[..]].concat()).exits(0);
    let [plain, other, file] = ["0001", "0002", "0003"].map(|eval| site.path("cand").join(eval));
    let status = site.repo.git_in(&plain, &["status", "--porcelain"]).expect("status");
    assert_eq!(status.trim_end(), "?? cache\n?? data", "git takes them for new files");
    let relink = |to: &std::path::Path| {
        fs::remove_file(other.join("data"))?;
        std::os::unix::fs::symlink(to, other.join("data"))
    };
    relink(&site.repo.path().join("cache")).expect("another link");
    fs::remove_file(file.join("cache")).expect("to remove a link");
    fs::write(file.join("cache"), "mine\n").expect("a file");
    let clean = ["clean", SITE_RUN_ID, "--worktrees", "--yes"];
    let said = site.call(&clean).exits(1).says([
        "not removed: run t: worktree `cand/0002`",
        "it has changes that are not committed: `data` (`--discard-changes`",
        "not removed: run t: worktree `cand/0003`",
        "it has changes that are not committed: `cache` (`--discard-changes`",
    ]);
    assert!(!plain.exists() && other.exists() && file.exists(), "{}", said.stderr);
    relink(&site.repo.path().join("data")).expect("the link that was there");
    let _ = site.call(&["clean", SITE_RUN_ID, "--delete", "--yes"]).exits(1).says(["`cand/0003`"]);
    let _ = site.call(&clean).exits(1);
    assert!(!other.exists() && file.exists());
    assert_eq!(prices(&site), PRICES, "what the links lead to stays");
    assert!(site.repo.path().join("cache/seen").exists());
}

/// The links lead to the inputs' former place.
#[test]
fn the_links_to_inputs_are_nobodys_work_after_a_move() {
    let site = site("data/**", "one two three");
    let flags = ["--ideas-per-node=3", "--max-depth=1", "--keep-rejected-worktrees"];
    let _ =
        site.call(&[&["run", "--quiet", "--run-id", SITE_RUN_ID], &flags[..]].concat()).exits(0);
    let moved = site.repo.beside("moved");
    fs::rename(site.repo.path(), &moved).expect("to move a repository");
    let [plain, other, away] = ["0001", "0002", "0003"]
        .map(|eval| moved.join(format!(".treebeam/runs/{SITE_RUN_ID}/cand/{eval}")));
    fs::remove_file(other.join("data")).expect("to remove a link");
    std::os::unix::fs::symlink(moved.join("cache"), other.join("data")).expect("a link");
    fs::remove_file(away.join("data")).expect("to remove a link");
    std::os::unix::fs::symlink(moved.join("nowhere"), away.join("data")).expect("a link");
    let said =
        site.call_in(&moved, &["clean", SITE_RUN_ID, "--worktrees", "--yes"]).exits(1).says([
            "not removed: run t: worktree `cand/0002`",
            "not removed: run t: worktree `cand/0003`",
            "it has changes that are not committed: `data` (`--discard-changes`",
        ]);
    assert!(!plain.exists() && other.exists() && away.exists(), "{}", said.stderr);
}

/// The node's own worktree is made anew for the agent that is asked for ideas in it.
#[test]
fn a_worktree_that_was_made_anew_goes_on_request_again() {
    let site = site("data/**", "good");
    let run = ["run", "--quiet", "--run-id", SITE_RUN_ID, "--ideas-per-node=1", "--max-depth=1"];
    let _ = site.call(&run).exits(0);
    let clean = ["clean", SITE_RUN_ID, "--worktrees", "--yes"];
    let _ = site.call(&clean).exits(0).says(["removed: run t: worktree `wt/0001`"]);
    drop(site.call(&["resume", SITE_RUN_ID, "--quiet", "--ideas-per-node=1", "--max-depth=2"]));
    assert!(site.path("wt/0001").is_dir(), "ideas were asked for there");
    let _ = site.call(&clean).exits(0).says(["removed: run t: worktree `wt/0001`"]);
    assert!(!site.path("wt/0001").exists());
    let _ = site.call(&clean).exits(0).says(["there is nothing to remove"]);
    let _ = site.call(&["validate", SITE_RUN_ID]).exits(0);
}
