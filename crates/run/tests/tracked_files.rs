//! Tracked files that a sweep rewrites: those that the root's own sweep rewrites too and the results may differ from the
//! commit, any other fails its eval.

#![cfg(test)]

use std::num::NonZeroU32;
use treebeam_core::event::FailureKind;
use treebeam_core::facts::{Eval, Stage};
use treebeam_core::measure::{Measure, UserPath, WorktreePath};
use treebeam_core::policy::{Meaning, Reach};
use treebeam_run::drive;
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::MemoryWorld;

/// Why evals failed because of rewritten files, in a run whose sweeps rewrite these.
fn failures(measure: Measure, by_root: &[&str], by_candidates: &[&str]) -> Vec<String> {
    let world = MemoryWorld::new(7, 7).with_rewritten_files(by_root, by_candidates);
    let meaning = Meaning { measure, sweep_config_limit: NonZeroU32::new(4), ..Meaning::default() };
    let reach = Reach { max_depth: 1, ..Reach::default() };
    let mut journal = MemoryJournal::begun(meaning, reach);
    let end = drive(journal.state(), world.ports(), &mut journal, &mut |_, _| {}).expect("a run");
    assert!(end.evals.iter().any(|eval| eval.work().is_some()), "something was swept");
    end.evals.iter().filter_map(|eval| failure(&eval)).collect()
}

fn failure(eval: &Eval) -> Option<String> {
    let Stage::Failed { failure, .. } = &eval.stage else { return None };
    let is_of_files = failure.message.contains("files other than committed");
    is_of_files.then(|| {
        assert_eq!(failure.kind, FailureKind::Sweep);
        failure.message.clone()
    })
}

fn baseline() -> Option<UserPath> {
    UserPath::try_from("base.csv".to_owned()).ok()
}

fn results(path: &str) -> Option<WorktreePath> {
    WorktreePath::try_from(path.to_owned()).ok()
}

#[test]
fn what_the_roots_own_sweep_rewrites_may_be_rewritten() {
    let all = failures(Measure::default(), &["seen.log"], &["seen.log"]);
    assert_eq!(all, Vec::<String>::new());
    let all = failures(Measure::default(), &[], &["seen.log"]);
    assert!(!all.is_empty());
    for message in all {
        let ends = "`seen.log`; what is measured must be what is committed";
        assert!(message.ends_with(ends), "{message}");
    }
}

/// The root's own sweep is not run then, so nothing is known to be rewritten by it.
#[test]
fn with_a_baseline_file_the_failure_says_what_to_do() {
    let measure = Measure { baseline_csv: baseline(), ..Measure::default() };
    let all = failures(measure, &[], &["seen.log"]);
    assert!(!all.is_empty());
    for message in all {
        let ends = "leave `baseline_csv` out, or take the files out of git";
        assert!(message.ends_with(ends), "{message}");
    }
}

/// Paths are compared as everywhere: without case, and normalised.
#[test]
fn tracked_results_may_be_rewritten() {
    for path in ["out/results.csv", "out/Results.CSV", "Out/results.csv"] {
        for baseline_csv in [None, baseline()] {
            let results_csv = results("out/Results.csv");
            let measure = Measure { results_csv, baseline_csv, ..Measure::default() };
            assert_eq!(failures(measure, &[], &[path]), Vec::<String>::new(), "{path}");
        }
    }
    let measure = Measure { results_csv: results("out/results.csv"), ..Measure::default() };
    assert!(!failures(measure, &[], &["out/other.csv"]).is_empty());
}
