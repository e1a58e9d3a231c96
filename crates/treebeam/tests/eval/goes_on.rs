//! Resume hints of an interrupted eval or baseline, and that they work.

use crate::desk::{Desk, until};
use std::fs;
use std::time::Duration;
use treebeam_testkit::program::{SITE_RUN_ID, Said, Signal};

const ROWS: &str = "config_id,status,a\n0,ok,1.0\n1,ok,1.1\n2,ok,1.2\n";

/// Returns a desk whose configuration lies elsewhere, with its flags and the command that resumes.
fn elsewhere(settings: &str) -> (Desk, [String; 4], String) {
    let desk = Desk::new(settings);
    let (top, file) = (desk.site.repo.path(), desk.dir.join("other.toml"));
    fs::rename(top.join("treebeam.toml"), &file).expect("to move");
    let [top, file] = [top, &file].map(|path| path.display().to_string());
    let way_on = format!("treebeam -C {top} resume {SITE_RUN_ID} --config {file}");
    (desk, ["-C".to_owned(), top, "--config".to_owned(), file], way_on)
}

/// Begins a call, lets the sweep begin, and interrupts.
fn interrupted(desk: &Desk, words: &[&str]) -> Said {
    desk.hold("sweep");
    let call = desk.site.begin(words);
    until("a sweep", || desk.calls().iter().any(|call| call.starts_with("sweep")));
    call.signal(Signal::Interrupt);
    let said = call.wait().exits(130);
    desk.let_go("sweep");
    said
}

#[test]
fn a_baseline_that_was_interrupted_goes_on_as_it_is_said() {
    let (desk, [c, top, config, file], way_on) = elsewhere("baseline_csv = 'base.data'");
    let words = [&c, &top, "baseline", "--run-id", SITE_RUN_ID, &config, &file, "--eval-retries=1"];
    let said = interrupted(&desk, &words);
    let way_on = format!("{way_on} --eval-retries=1");
    let hint = format!("hint: `{way_on}` goes on from here");
    let sweep = "1 sweep goes on by itself; a resume takes its results in";
    let _ =
        said.says([&hint, sweep, "a resume copies the results nowhere, and says where they lie"]);
    let words: Vec<_> = way_on.split(' ').skip(1).collect();
    let said = desk.site.call(&words).exits(0);
    let kept = desk.site.path("artifacts/root.csv");
    let _ = said.says([&format!("the results of the root lie in `{}`", kept.display())]);
    assert_eq!(fs::read_to_string(kept).expect("results"), ROWS);
    assert_eq!(desk.calls_of("root").len(), 2, "tests and sweep ran once");
}

#[test]
fn an_eval_with_a_baseline_of_its_own_goes_on() {
    let desk = Desk::new("baseline_csv = 'base.data'");
    desk.site.repo.write("base.data", ROWS).expect("a file");
    desk.site.repo.write("own.data", ROWS).expect("a file");
    let ideas = desk.ideas(&["good"]);
    let words = ["eval", "--run-id", SITE_RUN_ID, "--idea", &ideas, "--baseline", "own.data"];
    let _ = interrupted(&desk, &words).says(["1 sweep goes on by itself"]);
    let _ = desk.site.call(&["resume", SITE_RUN_ID]).exits(0);
    desk.site.must_be_sound();
}

#[test]
fn an_eval_that_halts_says_the_whole_command_that_goes_on() {
    let (desk, [c, top, config, file], way_on) = elsewhere("baseline_csv = 'base.data'");
    desk.site.repo.write("base.data", "config_id,status,a\n0,error,1\n").expect("a file");
    let ideas = desk.ideas(&["good"]);
    let words = [&c, &top, "eval", "--run-id", SITE_RUN_ID, "--idea", &ideas, &config, &file];
    let said = desk.site.call(&words).exits(4);
    let _ = said.says([&format!("with its results in `base.data`, `{way_on}` goes on from here")]);
}

#[test]
fn a_log_waits_for_a_run_whose_last_depth_was_opened_again() {
    let desk = Desk::new("");
    let _ = desk.eval(&["exit1"], &[]).exits(1);
    desk.hold("sweep");
    let call = desk.site.begin(&["resume", SITE_RUN_ID, "--retry-failed"]);
    until("the sweep again", || {
        desk.calls_of("exit1").iter().filter(|c| c.starts_with("sweep")).count() == 2
    });
    call.signal(Signal::Kill);
    let _ = call.wait();
    let said = desk.site.call_and_kill(&["log", "--follow"], Duration::from_secs(3));
    assert_eq!(said.code, None, "it waits: {}", said.stdout);
    let _ = said.says(["nobody runs this run: waiting for somebody to resume it"]);
    desk.let_go("sweep");
}
