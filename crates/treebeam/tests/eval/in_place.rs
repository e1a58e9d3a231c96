//! The user's own worktree: the idea is measured and left there.

use crate::desk::{Desk, of, until};
use std::fs;
use treebeam_testkit::fault::Fault;
use treebeam_testkit::program::{SITE_RUN_ID, Signal};

fn git<const N: usize>(desk: &Desk, arguments: [&str; N]) -> String {
    desk.site.repo.git(arguments).expect("git")
}

/// Asserts that the worktree is at the candidate's commit, with the user's own files.
fn must_be_there(desk: &Desk, commit: &str) {
    assert_eq!(git(desk, ["rev-parse", "HEAD"]), commit);
    assert_eq!(git(desk, ["branch", "--show-current"]), "");
    assert_eq!(git(desk, ["status", "--porcelain"]), "?? treebeam.toml");
    let model = fs::read_to_string(desk.site.repo.path().join("model.txt")).expect("a file");
    assert_eq!(model, "mode good\nround 0\n");
    assert_eq!(
        fs::read_to_string(desk.site.repo.path().join("my.data")).expect("a file"),
        "mine\n"
    );
    assert!(!desk.site.repo.path().join(".treebeam/switch").exists());
}

fn desk() -> Desk {
    let desk = Desk::new("");
    desk.site.repo.write("my.data", "mine\n").expect("a file");
    desk
}

#[test]
fn a_clean_worktree_is_left_at_the_candidates_commit() {
    let desk = desk();
    let main = git(&desk, ["rev-parse", "main"]);
    desk.site.repo.write("results.csv", "from before\n").expect("a file");
    let document = desk.document(&["own"], &["--in-place"], 0);
    let eval = of(&document, "own");
    assert!(eval["parent_relative"]["recommendation"]["score"].as_f64() > Some(0.5), "{eval:#}");
    assert_eq!(git(&desk, ["rev-parse", "HEAD"]), eval["commit"].as_str().expect("a commit"));
    assert_eq!(git(&desk, ["rev-parse", "main"]), main);
    assert_eq!(git(&desk, ["status", "--porcelain"]), "?? treebeam.toml");
    let aside = fs::read_to_string(desk.site.path("in_place/results.csv")).expect("a file");
    assert_eq!(aside, "from before\n");
    desk.site.must_be_sound();
    git(&desk, ["switch", "--quiet", "-"]);
    assert_eq!(git(&desk, ["branch", "--show-current"]), "main");
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_asked() {
    let desk = desk();
    let _ = desk.eval(&["good", "other"], &["--in-place"]).exits(2).says(["--iterations 1"]);
    desk.site.repo.write("model.txt", "mine\n").expect("a file");
    let _ = desk.eval(&["good"], &["--in-place"]).exits(4).says(["model.txt"]);
    assert_eq!(desk.calls(), [""; 0]);
    assert_eq!(git(&desk, ["branch", "--show-current"]), "main");
}

#[test]
fn a_file_of_the_users_that_is_in_the_way_stays_and_the_run_goes_on_when_it_is_away() {
    let desk = desk();
    desk.hold("reviewer");
    let ideas = desk.ideas(&["good"]);
    let call = desk.site.begin(&["eval", "--run-id", SITE_RUN_ID, "--idea", &ideas, "--in-place"]);
    until("the reviewer is asked", || desk.calls().contains(&"reviewer good 0".to_owned()));
    desk.site.repo.write("model.txt", "mine\n").expect("a file");
    desk.let_go("reviewer");
    let said = call.wait().exits(1).says(["model.txt", "hint: "]);
    assert!(said.stderr.contains("in the way"), "{}", said.stderr);
    assert_eq!(
        fs::read_to_string(desk.site.repo.path().join("model.txt")).expect("a file"),
        "mine\n"
    );
    git(&desk, ["restore", "model.txt"]);
    let _ = desk.site.call(&["resume", SITE_RUN_ID]).exits(0);
    must_be_there(&desk, &git(&desk, ["rev-parse", &format!("tree/{SITE_RUN_ID}/e0001")]));
    assert_eq!(desk.calls_of("good").len(), 6, "nothing is paid for twice: {:?}", desk.calls());
}

#[test]
fn killed_while_the_worktree_is_switched_it_goes_on() {
    for plan in [
        "kill before 1 rename switch/new/model.txt",
        "kill after 1 rename switch/new/model.txt",
        "kill after 1 rename treebeam.index",
    ] {
        let desk = desk();
        let ideas = desk.ideas(&["good"]);
        let fault = Fault::plan(plan);
        let eval = ["eval", "--run-id", SITE_RUN_ID, "--idea", &ideas, "--in-place"];
        let said = desk.site.call_with_fault(&fault, &eval);
        assert_eq!(said.code, None, "{plan}: {}", said.stderr);
        let _ = desk.site.call(&["resume", SITE_RUN_ID]).exits(0);
        must_be_there(&desk, &git(&desk, ["rev-parse", &format!("tree/{SITE_RUN_ID}/e0001")]));
        assert_eq!(desk.calls_of("good").len(), 6, "{plan}: {:?}", desk.calls());
        desk.site.must_be_sound();
    }
}

#[test]
fn killed_while_it_sweeps_there_the_sweep_is_waited_for() {
    let desk = desk();
    let ideas = desk.ideas(&["good"]);
    let baseline = desk.dir.join("b.csv");
    fs::write(&baseline, "config_id,status,a\n0,ok,1\n1,ok,1\n2,ok,1\n").expect("a file");
    desk.hold("sweep");
    let baseline = baseline.display().to_string();
    let eval =
        ["eval", "--run-id", SITE_RUN_ID, "--idea", &ideas, "--in-place", "--baseline", &baseline];
    let call = desk.site.begin(&eval);
    until("the sweep runs", || desk.calls().contains(&"sweep good".to_owned()));
    call.signal(Signal::Kill);
    drop(call);
    let call = desk.site.begin(&["resume", SITE_RUN_ID]);
    desk.let_go("sweep");
    let _ = call.wait().exits(0);
    must_be_there(&desk, &git(&desk, ["rev-parse", &format!("tree/{SITE_RUN_ID}/e0001")]));
    assert_eq!(desk.calls_of("good").len(), 6, "{:?}", desk.calls());
}
