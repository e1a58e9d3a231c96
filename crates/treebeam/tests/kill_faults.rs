//! The fault library that other tests rest on: it sees every operation on a run's files, and a plan
//! acts on the program alone.

#![cfg(test)]
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use treebeam_testkit::fault::{Fault, Operation};
use treebeam_testkit::program::{SITE_RUN_ID, Said, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const BELOW: &str = ".treebeam/runs/t/";

fn start(site: &Site, fault: &Fault) -> Said {
    let flags = ["--ideas-per-node=2", "--max-depth=1", "--beam-width=1", "--quiet"];
    let words = [&["run", "--dry-run", "--run-id", SITE_RUN_ID][..], &flags].concat();
    site.call_with_fault(fault, &words)
}

fn types(site: &Site) -> Vec<String> {
    let kind = |event: &serde_json::Value| event["type"].as_str().expect("a type").to_owned();
    site.events().iter().map(kind).collect()
}

#[test]
fn every_file_of_a_run_is_seen_being_made() {
    let (site, plain, fault) = (Site::new(BINARY), Site::new(BINARY), Fault::none());
    let _ = start(&site, &fault).exits(0);
    site.must_be_sound();
    let operations = fault.operations();
    let named = |operation: &Operation| {
        let Operation { path, to, .. } = operation;
        if to.is_empty() { path.clone() } else { to.clone() }
    };
    let made: BTreeSet<_> = operations.iter().map(named).collect();
    for folder in ["artifacts", "node_ideas", "eval"] {
        for path in site.files(folder).keys() {
            assert!(made.contains(&format!("{BELOW}{path}")), "{path} was not seen: {made:#?}");
        }
    }
    for path in ["manifest.json", "run.lock", "run.lock.json", "TREE_SUMMARY.md"] {
        assert!(made.contains(&format!("{BELOW}{path}")), "{path} was not seen: {made:#?}");
    }
    let events = operations.iter().flat_map(|operation| operation.events.clone());
    assert_eq!(events.collect::<Vec<_>>(), types(&site));
    let of_git = made.iter().find(|path| path.starts_with(".git/objects"));
    assert_eq!(of_git, None, "git is left alone");
    let _ = start(&plain, &Fault::plan("kill before 100000")).exits(0);
    plain.must_be_sound();
    plain.must_equal(&site);
}

/// Returns the site and the fatal operation of a run that was killed at its second `step_started`.
fn left(when: &str) -> (Site, Operation) {
    let (site, fault) = (Site::new(BINARY), Fault::plan(&format!("kill {when} 2 step_started")));
    assert_eq!(start(&site, &fault).code, None);
    let fatal = fault.fatal().expect("a fatal operation");
    assert_eq!(fatal.outcome, format!("killed {when}"));
    assert_eq!(fault.operations().last(), Some(&fatal), "nothing comes after it");
    (site, fatal)
}

#[test]
fn a_kill_comes_before_amid_or_after_what_it_is_about() {
    let (before, fatal) = left("before");
    let (after, _) = left("after");
    assert_eq!(
        (fatal.call.as_str(), fatal.path.as_str()),
        ("write", ".treebeam/runs/t/journal.jsonl")
    );
    let whole = [types(&before), fatal.events.clone()].concat();
    assert_eq!(whole, types(&after));
    let (amid, _) = left("amid");
    let torn = amid.text("journal.jsonl");
    assert!(!torn.ends_with('\n') && torn.len() > before.text("journal.jsonl").len());
    for site in [&before, &amid, &after] {
        site.resume(&["--quiet"]);
    }
    before.must_equal(&after);
    amid.must_equal(&after);
}

#[test]
fn a_failure_is_the_error_that_was_asked_for() {
    let (site, fault) = (Site::new(BINARY), Fault::plan("fail ENOSPC 1+ journal.jsonl swept"));
    let _ = start(&site, &fault).exits(1).says(["No space left on device"]);
    let hit: Vec<_> =
        fault.operations().into_iter().filter(|op| op.outcome == "failed 28").collect();
    assert_eq!(hit.len(), 1, "{hit:?}");
    assert_eq!(hit[0].events, ["files_recorded", "swept"]);
    let (site, fault) = (Site::new(BINARY), Fault::plan("fail EMFILE 3+ pipe"));
    let _ = start(&site, &fault).exits(4).says(["Too many open files"]);
}

#[test]
fn a_wrong_plan_is_not_passed_over() {
    let said = start(&Site::new(BINARY), &Fault::plan("kill sometime")).exits(99);
    assert!(said.stderr.contains("no rule: \"kill sometime\""), "{}", said.stderr);
}
