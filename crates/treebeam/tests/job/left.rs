//! Sweeps that outlive the process of their run, and `treebeam clean`.

use crate::field::{Field, key, process_of, until};
use crate::kills::kill;
use crate::limits::hanging;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use treebeam_core::measure::{CommandLine, MeasureSettings};
use treebeam_run::port::{Executor as _, SweepJob};
use treebeam_testkit::fault::Fault;
use treebeam_testkit::hostile;
use treebeam_testkit::program::{SITE_RUN_ID, Signal, Site};

/// Makes a run that was interrupted while its sweep hangs, and returns the sweep's folder.
fn interrupted(word: &str) -> (Site, PathBuf) {
    let (site, idea) = hanging(word);
    let idea = idea.display().to_string();
    let words =
        ["eval", "--quiet", "--baseline=base.csv", "--run-id", SITE_RUN_ID, "--idea", &idea];
    let call = site.begin(&words);
    let folder = site.path("eval/0001/s1");
    until(|| fs::read(folder.join("sweep.log")).is_ok_and(|log| log == b"ready\n"));
    call.signal(Signal::Interrupt);
    let _ = call.end(Duration::from_mins(1)).exits(130);
    (site, folder)
}

fn word(name: &str) -> String {
    format!("left-{name}-{}", std::process::id())
}

#[track_caller]
fn nothing_is_left(site: &Site, word: &str) {
    assert_eq!(hostile::survivors(word), Vec::<u32>::new());
    assert!(!site.path("").exists(), "the run is gone");
    assert!(!site.refs().contains("refs/heads/tree/"), "{}", site.refs());
}

#[test]
fn a_run_that_goes_takes_its_running_sweeps_with_it() {
    let word = word("whole");
    let (site, folder) = interrupted(&word);
    let there = || hostile::with_word(&word).len() == 3 && process_of(&folder).is_some();
    // Running work of a run that stays is kept.
    let _ = site.call(&["clean", SITE_RUN_ID, "--worktrees", "--yes"]).exits(0);
    assert!(there() && site.path("cand/0001").is_dir(), "an eval under way is left alone");
    let said = site.call(&["clean", SITE_RUN_ID, "--delete"]).exits(2);
    let _ = said.says(["to end: run t: running sweep `eval/0001/s1`", "nothing was removed"]);
    assert!(there(), "nothing ends without a yes");
    let said = site.call(&["clean", SITE_RUN_ID, "--delete", "--yes"]).exits(0);
    let _ = said.says(["ended: run t: running sweep `eval/0001/s1`", "removed: run t: directory"]);
    assert!(process_of(&folder).is_none());
    nothing_is_left(&site, &word);
}

/// A new submission beside a running one would share its worktree.
#[test]
fn the_job_of_an_earlier_submission_is_ended_before_the_next_one_begins() {
    let field = Field::new();
    let word = word("earlier");
    let parts = ["python3", "-c", hostile::PROCESS_TREE_SCRIPT, &word, "wait"].map(str::to_owned);
    let hangs = MeasureSettings {
        sweep_command: Some(CommandLine::Program(parts.into())),
        ..MeasureSettings::default()
    };
    let first = field.executor(hangs);
    let job = field.job(1, 1);
    first.submit_job(&job).expect("to submit");
    let folder = field.folder(job.key);
    until(|| fs::read(folder.join("sweep.log")).is_ok_and(|log| log == b"ready\n"));
    let next = field.executor(MeasureSettings::default());
    let again = SweepJob { key: key(1, 2), ..job };
    assert_eq!(next.adopt_jobs(&[again]).expect("to adopt"), []);
    assert!(process_of(&folder).is_none());
    assert_eq!(hostile::survivors(&word), Vec::<u32>::new());
}

#[test]
fn what_a_sweep_left_whose_keeper_is_gone_goes_too() {
    let word = word("orphans");
    let (site, folder) = interrupted(&word);
    kill(process_of(&folder).expect("a job"), Signal::Kill);
    assert!(!hostile::with_word(&word).is_empty());
    let said = site.call(&["clean", SITE_RUN_ID, "--delete", "--yes", "--json"]).exits(0);
    let items = said.json_lines().remove(0)["items"].clone();
    assert_eq!(items[0]["kind"], "running_sweep", "{items}");
    assert_eq!(items[0]["outcome"], "removed", "{items}");
    nothing_is_left(&site, &word);
}

/// Killed after its sweeps were ended, the run still exists: their end is not recorded as a result.
#[test]
fn a_run_that_did_not_go_after_all_sweeps_again() {
    let word = word("cut-off");
    let (site, folder) = interrupted(&word);
    let fault = Fault::plan("kill before 1 rename .gone-");
    let said = site.call_with_fault(&fault, &["clean", SITE_RUN_ID, "--delete", "--yes"]);
    assert_eq!(said.code, None, "{}", said.stderr);
    assert_eq!(hostile::survivors(&word), Vec::<u32>::new());
    assert!(!folder.join("eval_result.json").exists(), "it says nothing");
    let resume = ["resume", SITE_RUN_ID, "--quiet", "--eval-timeout-seconds=2", "--eval-retries=0"];
    let _ = site.call(&resume).exits(1);
    let events = site.events();
    let submitted = events.iter().filter(|e| e["type"] == "sweep_submitted").count();
    assert_eq!(submitted, 3, "the root, and the eval twice");
    assert_eq!(events.iter().filter(|e| e["type"] == "attempt_failed").count(), 0);
    let _ = site.call(&["clean", SITE_RUN_ID, "--delete", "--yes"]).exits(0);
    nothing_is_left(&site, &word);
}
