//! Leftovers that a killed and resumed run must not have: temporary files, a lock note, unknown
//! worktrees, processes.

use std::fs;
use treebeam_testkit::program::{SITE_RUN_ID, Site};
use treebeam_testkit::traces::{no_process, strays};

/// Asserts that both sites have the same worktrees, and no leftovers.
#[track_caller]
pub(crate) fn same(reference: &Site, site: &Site) {
    assert_eq!(worktrees(reference), worktrees(site));
    let runs = site.path("..");
    let names =
        fs::read_dir(runs).expect("the runs").map(|entry| entry.expect("a run").file_name());
    assert_eq!(names.collect::<Vec<_>>(), [SITE_RUN_ID]);
    let strays = strays(&site.path(""));
    assert!(strays.is_empty(), "{strays:?}");
    assert!(!site.path("run.lock.json").exists(), "the run is let go of");
    no_process(site.repo.path());
}

/// Returns git's list of worktrees, without the path of the repository.
fn worktrees(site: &Site) -> String {
    let list = site.repo.git(["worktree", "list", "--porcelain"]).expect("worktrees");
    list.replace(&site.repo.path().display().to_string(), "@")
}
