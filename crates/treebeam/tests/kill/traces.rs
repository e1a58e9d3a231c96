//! What a run that was killed and resumed may not leave: files without a name to stay, a lock note, worktrees that nobody
//! knows, processes.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use treebeam_testkit::program::{RUN, Site};

/// How long a git that outlived its runner may go on.
const PATIENCE: Duration = Duration::from_secs(30);

/// Both sites have the same worktrees, and neither has anything lying about.
#[track_caller]
pub(crate) fn same(reference: &Site, site: &Site) {
    assert_eq!(worktrees(reference), worktrees(site));
    let runs = site.path("..");
    let names =
        fs::read_dir(runs).expect("the runs").map(|entry| entry.expect("a run").file_name());
    assert_eq!(names.collect::<Vec<_>>(), [RUN]);
    let strays = strays(&site.path(""), 0);
    assert!(strays.is_empty(), "{strays:?}");
    assert!(!site.path("run.lock.json").exists(), "the run is let go of");
    no_process(site.repo.path());
}

/// What git knows of worktrees, without the path of the repository.
fn worktrees(site: &Site) -> String {
    let list = site.repo.git(["worktree", "list", "--porcelain"]).expect("worktrees");
    list.replace(&site.repo.path().display().to_string(), "@")
}

/// Files that were to get another name.
fn strays(folder: &Path, depth: u32) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let entry = entry.expect("an entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        let submission = depth > 1 && name.starts_with('s');
        if [".link", ".part"].iter().any(|end| name.ends_with(end)) || name.starts_with(".new-") {
            found.push(entry.path().display().to_string());
        } else if entry.file_type().expect("a kind").is_dir() && !submission {
            found.extend(strays(&entry.path(), depth + 1));
        }
    }
    found
}

/// No process is in the folder or speaks of it.
#[track_caller]
fn no_process(folder: &Path) {
    let begun = Instant::now();
    while let Some(process) = process_about(folder) {
        assert!(begun.elapsed() < PATIENCE, "still there: {process}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn process_about(folder: &Path) -> Option<String> {
    let text = folder.display().to_string();
    let own = std::process::id().to_string();
    for entry in fs::read_dir("/proc").expect("processes").flatten() {
        let id = entry.file_name().to_string_lossy().into_owned();
        if id == own || !id.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let within = fs::read_link(entry.path().join("cwd")).is_ok_and(|at| at.starts_with(folder));
        let said = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let said = String::from_utf8_lossy(&said).replace('\0', " ");
        if within || said.contains(&text) {
            return Some(format!("{id}: {said}"));
        }
    }
    None
}
