//! `treebeam idea add` with real processes: a user's idea is tried like any other, in any process
//! of the run and after any kill, or is refused with the reason.

#![cfg(test)]
#![cfg(unix)]

use serde_json::Value;
use std::fs;
use std::time::Duration;
use treebeam_testkit::held::HeldGit;
use treebeam_testkit::program::{SITE_RUN_ID, Said, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const START: [&str; 8] = [
    "run",
    "--dry-run",
    "--run-id",
    SITE_RUN_ID,
    "--ideas-per-node=2",
    "--max-depth=2",
    "--beam-width=1",
    "--quiet",
];
const PATIENCE: Duration = Duration::from_mins(1);
const MINE: &str =
    "IDEA: My own\nRATIONALE: I know\nREQUIRED_CHANGES:\n- append `gain 300 by me` to DRY_STATE\n";

fn add(site: &Site, text: &str, more: &[&str]) -> Said {
    let file = site.repo.beside("mine.md");
    fs::write(&file, text).expect("a file");
    let file = file.display().to_string();
    site.call(&[&["idea", "add", SITE_RUN_ID, &file][..], more].concat())
}

/// A run that was killed while its first ideas were being implemented.
fn killed() -> Site {
    let site = Site::new(BINARY);
    let git = HeldGit::new(&site);
    drop(git.begin(&site, &START));
    site
}

fn own(site: &Site) -> Vec<Value> {
    let manifest = site.manifest();
    let evals = manifest["evaluations"].as_object().expect("evals").values();
    evals.filter(|eval| eval["idea_turn"].is_null()).cloned().collect()
}

fn refusals(site: &Site) -> Vec<String> {
    let events = site.events().into_iter().filter(|event| event["type"] == "idea_refused");
    events.map(|event| event["why"].as_str().expect("why").to_owned()).collect()
}

#[test]
fn an_idea_for_a_running_run_is_tried_and_shown_as_the_users() {
    let site = Site::new(BINARY);
    let git = HeldGit::new(&site);
    let call = git.begin(&site, &START);
    let document = add(&site, MINE, &["--json"]).exits(0).json_lines().remove(0);
    assert_eq!(document["schema"], "treebeam.idea/1");
    assert_eq!((&document["outcome"], &document["eval"]), (&"added".into(), &"e0003".into()));
    assert_eq!((&document["node"], &document["title"]), (&"n0000".into(), &"My own".into()));
    git.let_go();
    let _ = call.end(PATIENCE).exits(0);
    site.must_be_sound();
    let [mine] = &own(&site)[..] else { panic!("not one") };
    assert_eq!(mine["idea_path"], "node_ideas/0000/u01_my_own.md");
    assert_eq!(site.text("node_ideas/0000/u01_my_own.md"), MINE);
    assert_eq!(mine["decision"]["promoted_to_node_id"], "0001", "it is the best of its depth");
    assert_eq!(mine["depth"], 0);
    assert_eq!(site.manifest()["nodes"]["0001"]["idea_chain"][0], "0000/u01_my_own");
    let show = site.call(&["show", SITE_RUN_ID, "e0003"]).exits(0).stdout;
    assert!(show.contains("node_ideas/0000/u01_my_own.md (added by the user)"), "{show}");
    let show = site.call(&["show", SITE_RUN_ID, "n0000"]).exits(0).stdout;
    assert!(show.contains("2 evals, 1 eval added by the user"), "{show}");
    let log = site.call(&["log", SITE_RUN_ID]).exits(0).stdout;
    assert!(log.contains("e0003   idea of the user's added to n0000: My own"), "{log}");
    assert!(site.text("TREE_SUMMARY.md").contains("added by the user"));
    assert_eq!(site.names("inbox"), [""; 0]);
    let _ = add(&site, "another", &[]).exits(2).says(["the run is over (empty_frontier)"]);
}

#[test]
fn an_idea_for_a_run_that_nobody_runs_waits_for_a_resume() {
    let site = killed();
    let said = add(&site, "# Widen the window\nto 20\n", &["--node", "n0000"]).exits(0);
    let _ = said.says(["nobody runs run t: the idea waits for `treebeam resume t`"]);
    assert_eq!(site.names("inbox").len(), 1);
    site.resume(&["--quiet"]);
    let [mine] = &own(&site)[..] else { panic!("not one") };
    assert_eq!(mine["idea_title"], "Widen the window");
    assert_eq!(mine["error"]["kind"], "agent", "the dry coder knows its own changes only");
    assert_eq!(site.names("inbox"), [""; 0]);
}

#[test]
fn what_cannot_be_tried_is_refused_at_once() {
    let site = killed();
    let refused = |text: &str, more: &[&str], why: &str| {
        let _ = add(&site, text, more).exits(2).says([why]);
    };
    let first = site.names("node_ideas/0000");
    let first = first.iter().find(|name| name.starts_with("001_")).expect("an idea");
    let first = site.text(&format!("node_ideas/0000/{first}")).to_uppercase();
    refused(&first, &[], "it repeats the idea of `e0001`");
    refused(MINE, &["--node", "n7"], "there is no node `n0007`");
    refused(MINE, &["--node", "e0001"], "`e0001` is an eval, not a node");
    refused(" \n", &[], "is no idea: it says nothing");
    refused("IDEA: a\nIDEA: b\n", &[], "it has 2 ideas");
    refused(&"x\n".repeat(40_000), &[], "it is longer than 32768 bytes");
    let _ =
        site.call(&["idea", "add", SITE_RUN_ID, "nope.md"]).exits(1).says(["no file `nope.md`"]);
    let _ = site.call(&["idea", "add", "nope", "nope.md"]).exits(1);
    let folder = format!(".treebeam/runs/{SITE_RUN_ID}");
    for run in [SITE_RUN_ID, &folder] {
        let said = site.call(&["idea", "add", run]).exits(2);
        let _ = said.says(["is a run, and no idea is named", "idea add"]);
    }
    let _ = site.call(&["idea", "add", "nope"]).exits(1).says(["no file `nope`"]);
    fs::write(site.repo.beside("mine.md"), b"\xff").expect("a file");
    let file = site.repo.beside("mine.md").display().to_string();
    let _ = site.call(&["idea", "add", SITE_RUN_ID, &file]).exits(1).says(["not UTF-8"]);
    assert_eq!(site.names("inbox"), [""; 0], "nothing was written");
    let _ = site.call(&["resume", SITE_RUN_ID, "--quiet", "--max-total-idea-evals=2"]).exits(0);
    refused(MINE, &[], "the run is over (max_total_idea_evals_reached)");
}

#[test]
fn an_idea_is_read_from_standard_input() {
    let site = killed();
    let pipe = format!("printf 'Mine\\n' | '{BINARY}' idea add -");
    let shell = Site::from_repo(site.repo, "/bin/sh");
    let _ = shell.call(&["-c", &pipe]).exits(0).says(["the idea waits"]);
    assert_eq!(shell.names("inbox").len(), 1);
}

#[test]
fn what_no_longer_fits_when_it_is_read_is_refused_and_set_aside() {
    let site = killed();
    for text in [
        MINE,
        "IDEA:  my OWN\nRATIONALE: I know\nREQUIRED_CHANGES:\n* append `gain 300 by me` to DRY_STATE\n",
    ] {
        let _ = add(&site, text, &[]).exits(0);
    }
    let said = site.call(&["resume", SITE_RUN_ID]).exits(0);
    let _ = said.says(["an idea of the user's is not tried, it repeats the idea of `e0003`"]);
    assert_eq!(
        (own(&site).len(), refusals(&site)),
        (1, vec!["it repeats the idea of `e0003`".to_owned()])
    );
    let log = site.call(&["log", SITE_RUN_ID]).exits(0).stdout;
    assert!(log.contains("idea of the user's refused, it repeats the idea of `e0003`"), "{log}");
    let aside = site.names("inbox/refused");
    assert_eq!(aside.len(), 2, "{aside:?}");
}

#[test]
fn a_run_with_an_idea_that_is_killed_again_and_again_gives_the_same_tree() {
    let whole = killed();
    let _ = add(&whole, MINE, &[]).exits(0);
    whole.resume(&["--quiet"]);
    let mut kills = 0;
    for after in [20, 60, 130] {
        let site = killed();
        let _ = add(&site, MINE, &[]).exits(0);
        let resume = ["resume", SITE_RUN_ID, "--quiet", "--max-parallel-evals=3"];
        let mut left = 0;
        while site.call_and_kill(&resume, Duration::from_millis(after * (4 + left) / 4)).code
            != Some(0)
        {
            left += 1;
            assert!(left < 200, "no progress");
        }
        kills += left;
        site.must_be_sound();
        whole.must_equal(&site);
        assert_eq!((own(&site).len(), refusals(&site).len()), (1, 0));
        assert_eq!(site.names("inbox"), [""; 0]);
    }
    assert!(kills > 2, "killed {kills} times only");
}

#[test]
fn a_message_that_was_acted_upon_and_is_still_there_is_one_idea() {
    let site = killed();
    let _ = add(&site, MINE, &[]).exits(0);
    let name = site.names("inbox").remove(0);
    let message = fs::read(site.path(&format!("inbox/{name}"))).expect("the message");
    let git = HeldGit::new(&site);
    // Restores the message: as if killed after the record and before the removal.
    drop(git.begin(&site, &["resume", SITE_RUN_ID]));
    assert_eq!(site.names("inbox"), [""; 0]);
    fs::write(site.path(&format!("inbox/{name}")), message).expect("the message");
    git.let_go();
    site.resume(&["--quiet"]);
    assert_eq!((own(&site).len(), refusals(&site).len()), (1, 0));
    assert_eq!(site.names("inbox"), [""; 0]);
}
