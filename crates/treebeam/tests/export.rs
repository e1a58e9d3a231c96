//! `treebeam export`: the best path as a branch of the user's own; nothing else of the user's
//! changes.

#![cfg(test)]

use treebeam_testkit::program::{SITE_RUN_ID, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");

/// A run whose best node is two ideas away from the root.
fn site() -> Site {
    let site = Site::new(BINARY);
    site.run(&["--quiet", "--ideas-per-node=5", "--beam-width=2", "--max-depth=2"]);
    site
}

fn git(site: &Site, arguments: &[&str]) -> String {
    site.repo.git_in(site.repo.path(), arguments).expect("git").trim_end().to_owned()
}

#[test]
fn a_path_is_a_branch_with_one_commit_for_each_idea() {
    let site = site();
    let before = [git(&site, &["rev-parse", "HEAD"]), git(&site, &["status", "--porcelain"])];
    let root = git(&site, &["rev-parse", "HEAD"]);
    let export = ["export", "--node=n0003", "--branch=review/best", "--json"];
    let lines = site.call(&export).exits(0).json_lines();
    let made = &lines[0];
    let commits = made["commits"].as_array().expect("commits");
    assert_eq!(commits.len(), 2, "{made}");
    let manifest = site.manifest();
    let node = manifest["nodes"]["0003"]["commit"].as_str().expect("a commit");
    let tree = |commit: &str| git(&site, &["rev-parse", &format!("{commit}^{{tree}}")]);
    assert_eq!(tree("review/best"), tree(node), "the code is that of the node");
    let range = format!("{root}..review/best");
    let subjects = git(&site, &["log", "--reverse", "--format=%s", &range]);
    let titles: Vec<_> = commits.iter().map(|commit| commit["title"].as_str().unwrap()).collect();
    assert_eq!(subjects.lines().collect::<Vec<_>>(), titles);
    let last = git(&site, &["log", "-1", "--format=%B", "review/best"]);
    assert!(last.contains("against its parent"), "{last}");
    let trailers =
        git(&site, &["log", "-1", "--format=%(trailers:key=Treebeam-Run)", "review/best"]);
    assert_eq!(trailers.trim(), format!("Treebeam-Run: {SITE_RUN_ID}"));
    let after = [git(&site, &["rev-parse", "HEAD"]), git(&site, &["status", "--porcelain"])];
    assert_eq!(before, after, "the checkout is as it was");
    let again = site.call(&export).exits(0).json_lines();
    assert_eq!(&again[0], made, "the same again is no error");
}

#[test]
fn a_metric_that_fell_is_said_to_have_fallen() {
    let site = Site::new(BINARY);
    site.repo.write("treebeam.toml", "[score]\nprimary = 'error_pct:lower'\n").expect("a file");
    site.repo.commit("settings").expect("a commit");
    site.run(&["--quiet", "--ideas-per-node=5", "--beam-width=1", "--max-depth=1"]);
    let _ = site.call(&["export", "--branch=best"]).exits(0);
    let said = git(&site, &["log", "-1", "--format=%B", "best"]);
    let line = said.lines().find(|line| line.starts_with("Against the root: error_pct "));
    let line = line.unwrap_or_else(|| panic!("{said}"));
    let figures: Vec<f64> = line.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
    assert!(figures.len() == 2 && figures[1] < figures[0], "{line}");
    assert!(line.contains(" → ") && line.contains(", −") && line.ends_with(" %."), "{line}");
}

#[test]
fn what_shows_the_branch_can_be_typed_as_it_is() {
    let site = site();
    let _ = site.call(&["export", "--branch=one"]).exits(0).says(["`git log -p one` shows them"]);
    let folder = site.repo.path().display().to_string();
    let elsewhere = site.repo.path().parent().expect("a folder");
    let said = site.call_in(elsewhere, &["-C", &folder, "export", "--branch=a;b"]).exits(0);
    let _ = said.says([&format!("`git -C {folder} log -p 'a;b'` shows them")]);
}

#[test]
fn where_no_node_is_named_it_is_the_best() {
    let site = site();
    let best = site.call(&["status", "--json"]).exits(0).json_lines()[0]["best"].clone();
    let made =
        site.call(&["export", SITE_RUN_ID, "--branch", "best", "--json"]).exits(0).json_lines();
    assert_eq!(made[0]["node"], best);
    let number = best.as_str().expect("a node").trim_start_matches('n').to_owned();
    let manifest = site.manifest();
    let commit = manifest["nodes"][&number]["commit"].as_str().expect("a commit");
    assert_eq!(git(&site, &["diff", commit, "best"]), "");
}

#[test]
fn what_is_there_is_never_moved_and_what_cannot_be_is_said() {
    let site = site();
    let head = git(&site, &["rev-parse", "HEAD"]);
    git(&site, &["branch", "mine"]);
    let taken = site.call(&["export", "--branch", "mine"]).exits(2);
    assert!(taken.stderr.contains("there is a branch `mine` already"), "{}", taken.stderr);
    assert_eq!(git(&site, &["rev-parse", "mine"]), head);
    for name in ["a..b", "", "-x", "tree/t/x", "a b", "HEAD", "x.lock"] {
        let odd = site.call(&["export", &format!("--branch={name}")]).exits(2);
        assert!(odd.stderr.contains("is no name for a branch"), "{name}: {}", odd.stderr);
    }
    let missing = site.call(&["export", "--branch=x", "--node=n0099"]).exits(2);
    assert!(missing.stderr.contains("has no `n0099`"), "{}", missing.stderr);
    let root = site.call(&["export", "--branch=x", "--node=n0000"]).exits(2);
    let _ = root.says(["`n0000` is the root", "no change to export", "hint: name another node"]);
    assert!(!git(&site, &["branch", "--list"]).contains(" x\n"));
}

#[test]
fn a_path_whose_commits_are_gone_is_not_exported_in_part() {
    let site = site();
    let _ = site.call(&["clean", SITE_RUN_ID, "--worktrees", "--refs", "--yes"]).exits(0);
    git(&site, &["reflog", "expire", "--expire=now", "--all"]);
    git(&site, &["gc", "--prune=now", "--quiet"]);
    let said = site.call(&["export", "--branch", "late"]).exits(1);
    assert!(said.stderr.contains("is not in the repository any more"), "{}", said.stderr);
    assert!(said.stderr.contains("treebeam diff"), "{}", said.stderr);
    assert_eq!(git(&site, &["branch", "--list", "late"]), "");
}
