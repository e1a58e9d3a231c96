//! Tracked files that a sweep rewrites. The results, and files that the root's own sweep rewrites
//! too, may differ from the commit; any other file fails its eval.

#![cfg(test)]

use std::num::NonZeroU32;
use treebeam_core::event::FailureKind;
use treebeam_core::facts::{Eval, Stage};
use treebeam_core::measure::{MeasureSettings, UserPath, WorktreePath};
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_run::drive_run;
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::MemoryWorld;

/// Returns why evals failed because of rewritten files, in a run whose sweeps rewrite these.
fn failures(measure: MeasureSettings, by_root: &[&str], by_candidates: &[&str]) -> Vec<String> {
    let world = MemoryWorld::new(7, 7).with_rewritten_files(by_root, by_candidates);
    let meaning = FixedSettings {
        measure,
        sweep_config_limit: NonZeroU32::new(4),
        ..FixedSettings::default()
    };
    let reach = RunLimits { max_depth: 1, ..RunLimits::default() };
    let mut journal = MemoryJournal::begun(meaning, reach);
    let end =
        drive_run(journal.state(), world.ports(), &mut journal, &mut |_, _| {}).expect("a run");
    assert!(end.evals.iter().any(|eval| eval.candidate().is_some()), "something was swept");
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
    let all = failures(MeasureSettings::default(), &["seen.log"], &["seen.log"]);
    assert_eq!(all, Vec::<String>::new());
    let all = failures(MeasureSettings::default(), &[], &["seen.log"]);
    assert!(!all.is_empty());
    for message in all {
        let ends = "`seen.log`; what is measured must be what is committed";
        assert!(message.ends_with(ends), "{message}");
    }
}

/// With a baseline file the root's own sweep is not run, so no file is known to be rewritten by it.
#[test]
fn with_a_baseline_file_the_failure_says_what_to_do() {
    let measure = MeasureSettings { baseline_csv: baseline(), ..MeasureSettings::default() };
    let all = failures(measure, &[], &["seen.log"]);
    assert!(!all.is_empty());
    for message in all {
        let ends = "leave `baseline_csv` out, or take the files out of git";
        assert!(message.ends_with(ends), "{message}");
    }
}

/// Paths are compared without case, and normalised.
#[test]
fn tracked_results_may_be_rewritten() {
    for path in ["out/results.csv", "out/Results.CSV", "Out/results.csv"] {
        for baseline_csv in [None, baseline()] {
            let results_csv = results("out/Results.csv");
            let measure =
                MeasureSettings { results_csv, baseline_csv, ..MeasureSettings::default() };
            assert_eq!(failures(measure, &[], &[path]), Vec::<String>::new(), "{path}");
        }
    }
    let measure =
        MeasureSettings { results_csv: results("out/results.csv"), ..MeasureSettings::default() };
    assert!(!failures(measure, &[], &["out/other.csv"]).is_empty());
}
