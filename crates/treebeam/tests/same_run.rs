//! A run ends the same with one or several parallel evals, here or at another path, once or again,
//! killed or not.

#![cfg(test)]

use std::time::Duration;
use treebeam_testkit::program::{SITE_RUN_ID, Site};
use treebeam_testkit::repo::TempRepo;

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const SIZE: [&str; 8] = [
    "--ideas-per-node=5",
    "--max-depth=3",
    "--beam-width=2",
    "--sweep-config-limit=10",
    "--dedupe-scope=node_plus_ancestors",
    "--quiet",
    "--stop-on-empty-frontier",
    "--max-total-idea-evals=1000",
];

fn run(site: Site, parallel: &str) -> Site {
    site.run(&[&SIZE[..], &["--max-parallel-evals", parallel]].concat());
    site
}

#[track_caller]
fn check_same(a: &Site, b: &Site) {
    a.must_equal(b);
    for (folder, fewest) in [("artifacts", 10), ("node_ideas", 25), ("eval", 100)] {
        let files = a.accepted(folder).len();
        assert!(files >= fewest, "{files} files in {folder}");
    }
}

#[test]
fn one_at_a_time_and_four_at_a_time_give_the_same_tree() {
    let (one, four) = (run(Site::new(BINARY), "1"), run(Site::new(BINARY), "4"));
    assert_eq!(one.manifest()["run_config"]["max_parallel_evals"], 1);
    assert_eq!(four.manifest()["run_config"]["max_parallel_evals"], 4);
    assert_eq!(one.manifest()["state"]["stop_reason"], "max_depth_reached");
    check_same(&one, &four);
}

#[test]
fn four_at_a_time_give_the_same_tree_again() {
    check_same(&run(Site::new(BINARY), "4"), &run(Site::new(BINARY), "4"));
}

#[test]
fn the_path_of_the_repository_does_not_matter() {
    let far = TempRepo::folder("deep down/in älterer Ort/x").expect("a folder");
    far.git(["init", "--quiet", "--initial-branch=main"]).expect("a repository");
    far.write("model.py", "x = 1\n").expect("a file");
    far.write("src/lib/part.txt", "a part\n").expect("a file");
    far.commit("first").expect("a commit");
    let far = run(Site::from_repo(far, BINARY), "2");
    check_same(&run(Site::new(BINARY), "2"), &far);
    let (path, home) = (far.repo.path().display().to_string(), far.repo.home());
    for folder in ["artifacts", "node_ideas", "eval"] {
        for (name, bytes) in far.files(folder) {
            let text = String::from_utf8(bytes).expect("text");
            assert!(!text.contains(&path) && !text.contains(&home.display().to_string()), "{name}");
        }
    }
}

/// Makes a run that is killed after this time, again and again, until it ends; returns the number
/// of kills.
fn killed(after: Duration, parallel: &str) -> (Site, u32) {
    let site = Site::new(BINARY);
    let start = ["run", "--dry-run", "--run-id", SITE_RUN_ID, "--max-parallel-evals", parallel];
    let start = [&start[..], &SIZE[..]].concat();
    let mut kills = 0;
    while site.call_and_kill(&start, after + after * kills / 4).code != Some(0) {
        kills += 1;
        assert!(kills < 200, "no progress");
    }
    site.must_be_sound();
    (site, kills)
}

#[test]
fn a_run_that_is_killed_again_and_again_gives_the_same_tree() {
    let whole = run(Site::new(BINARY), "1");
    let mut all = 0;
    for (after, parallel) in [(15, "1"), (40, "4"), (70, "1"), (110, "2"), (190, "4")] {
        let (site, kills) = killed(Duration::from_millis(after), parallel);
        check_same(&whole, &site);
        let list = site.repo.git(["worktree", "list", "--porcelain"]).expect("worktrees");
        assert!(!list.contains("prunable"), "{list}");
        assert_eq!(list.matches("worktree ").count(), site.names("wt").len() + 1, "{list}");
        all += kills;
    }
    assert!(all > 5, "killed {all} times only");
}
