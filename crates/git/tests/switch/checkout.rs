//! Tests the checkout after a switch, and which switches are refused.

use crate::Ground;
use std::fs;
use std::os::unix::fs::symlink;
use treebeam_run::port::PortError;
use treebeam_testkit::repo::script;

/// Checks the refusal, and that nothing but the named paths has changed.
fn refused(ground: &Ground, outcome: Result<(), PortError>, names: &[&str]) {
    let error = outcome.unwrap_err();
    let said = error.full_text();
    for name in names {
        assert!(said.contains(name), "{said}");
    }
    assert!(error.hint.is_some(), "{said}");
    assert_eq!(ground.repo.git(["branch", "--show-current"]).unwrap(), "main", "{said}");
    assert_eq!(ground.read("changed.txt").trim_end_matches("mine\n"), "old\n");
    assert!(!ground.repo.path().join("new/é").exists() || names == ["new/é/file"]);
    assert!(!ground.repo.path().join(".git/treebeam.index").exists());
}

#[test]
fn all_that_differs_is_switched_there_and_back_and_hooks_are_silent() {
    let ground = Ground::new();
    let hooks = ground.repo.path().join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in ["post-checkout", "post-index-change", "reference-transaction", "pre-commit"] {
        script(&hooks.join(hook), "#!/bin/sh\ntouch ../ran\nexit 1\n").unwrap();
    }
    let user = ground.user();
    user.switch_checkout(&ground.from, &ground.to).unwrap();
    fs::remove_dir_all(&hooks).unwrap();
    assert!(!ground.repo.beside("ran").exists());
    ground.must_be_at(&ground.to, "there");
    assert_eq!(ground.repo.git(["branch", "--show-current"]).unwrap(), "");
    assert!(!ground.repo.path().join("gone").exists(), "an empty folder is no folder to git");
    user.switch_checkout(&ground.from, &ground.to).unwrap();
    ground.must_be_at(&ground.to, "again");
    user.switch_checkout(&ground.to, &ground.from).unwrap();
    ground.must_be_at(&ground.from, "back");
    user.switch_checkout(&ground.from, &ground.to).unwrap();
    ground.repo.git(["switch", "--quiet", "main"]).unwrap();
    ground.must_be_at(&ground.from, "home");
}

#[test]
fn git_finds_back_to_the_branch() {
    let ground = Ground::new();
    ground.user().switch_checkout(&ground.from, &ground.to).unwrap();
    ground.repo.git(["switch", "--quiet", "-"]).unwrap();
    assert_eq!(ground.repo.git(["branch", "--show-current"]).unwrap(), "main");
}

#[test]
fn a_file_that_is_the_users_is_refused_by_name_and_stays() {
    type Put = fn(&Ground);
    let cases: [(&str, Put); 7] = [
        ("changed.txt", |ground| ground.repo.write("changed.txt", "old\nmine\n").unwrap()),
        ("new/é/file", |ground| ground.repo.write("new/é/file", "mine\n").unwrap()),
        ("gone/deep/file", |ground| ground.repo.write("gone/deep/file", "mine\n").unwrap()),
        ("becomes file/my.data", |ground| {
            ground.repo.write("becomes file/my.data", "mine\n").unwrap();
        }),
        ("run.sh", |ground| ground.repo.write("run.sh", "mine\n").unwrap()),
        ("becomes folder", |ground| {
            fs::remove_file(ground.repo.path().join("becomes folder")).unwrap();
            symlink("elsewhere", ground.repo.path().join("becomes folder")).unwrap();
        }),
        ("link", |ground| {
            fs::remove_file(ground.repo.path().join("link")).unwrap();
            symlink("mine", ground.repo.path().join("link")).unwrap();
        }),
    ];
    for (name, put) in cases {
        let ground = Ground::new();
        put(&ground);
        let before = ground.status();
        refused(&ground, ground.user().switch_checkout(&ground.from, &ground.to), &[name]);
        fs::remove_dir_all(ground.repo.path().join(".treebeam")).unwrap();
        assert_eq!(ground.status(), before, "{name}");
    }
}

#[test]
fn a_link_above_a_path_leads_nowhere() {
    let ground = Ground::new();
    let elsewhere = ground.repo.beside("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    symlink(&elsewhere, ground.repo.path().join("new")).unwrap();
    let said = ground.user().switch_checkout(&ground.from, &ground.to).unwrap_err().full_text();
    assert!(said.contains("new"), "{said}");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    fs::remove_file(ground.repo.path().join("new")).unwrap();
    ground.user().switch_checkout(&ground.from, &ground.to).unwrap();
    ground.must_be_at(&ground.to, "when the link is gone");
}

#[test]
fn what_does_not_differ_is_left_as_it_is() {
    let ground = Ground::new();
    ground.repo.write("same.txt", "staged\n").unwrap();
    ground.repo.git(["add", "same.txt"]).unwrap();
    ground.repo.write("same.txt", "and changed\n").unwrap();
    ground.repo.write("mine.txt", "mine\n").unwrap();
    // A file of the user's has the new content already.
    ground.repo.write("new/é/file", "new\n").unwrap();
    ground.user().switch_checkout(&ground.from, &ground.to).unwrap();
    assert_eq!(ground.status(), "MM same.txt\n?? mine.txt");
    assert_eq!(ground.repo.git(["show", ":same.txt"]).unwrap(), "staged");
    assert_eq!((&*ground.read("same.txt"), &*ground.read("mine.txt")), ("and changed\n", "mine\n"));
}

#[test]
fn what_cannot_be_seen_whole_is_refused() {
    let ground = Ground::new();
    ground.repo.git(["update-index", "--assume-unchanged", "same.txt"]).unwrap();
    refused(&ground, ground.user().switch_checkout(&ground.from, &ground.to), &["same.txt"]);
    let ground = Ground::new();
    ground.repo.git(["update-index", "--skip-worktree", "same.txt"]).unwrap();
    refused(
        &ground,
        ground.user().switch_checkout(&ground.from, &ground.to),
        &["same.txt", "sparse"],
    );
}

#[test]
fn a_git_of_the_users_is_not_disturbed() {
    let ground = Ground::new();
    let lock = ground.repo.path().join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    refused(&ground, ground.user().switch_checkout(&ground.from, &ground.to), &["index.lock"]);
    assert!(lock.exists(), "it is not ours");
    fs::remove_file(&lock).unwrap();
    ground.user().switch_checkout(&ground.from, &ground.to).unwrap();
    ground.must_be_at(&ground.to, "unlocked");
}

#[test]
fn only_commits_of_the_run_are_left_for_another() {
    let ground = Ground::new();
    let (run, user) = ("r1".parse().unwrap(), ground.user());
    user.switch_to_run_commit(&run, &ground.from, &ground.from).unwrap();
    assert_eq!(ground.repo.git(["branch", "--show-current"]).unwrap(), "main");
    user.switch_to_run_commit(&run, &ground.from, &ground.to).unwrap();
    user.switch_to_run_commit(&run, &ground.from, &ground.from).unwrap();
    user.switch_to_run_commit(&run, &ground.from, &ground.to).unwrap();
    ground.must_be_at(&ground.to, "a commit of the run");
    let other = "r2".parse().unwrap();
    let said = user.switch_to_run_commit(&other, &ground.from, &ground.from).unwrap_err();
    assert!(said.what.contains("is not of the run `r2`"), "{said}");
    ground.must_be_at(&ground.to, "the commit of another run");
    let said = user.switch_checkout(&ground.from, &ground.from).unwrap_err().full_text();
    assert!(said.contains("and not at"), "{said}");
}

#[test]
fn a_linked_worktree_is_switched_alone() {
    let ground = Ground::new();
    ground.repo.git(["worktree", "add", "--quiet", "--detach", "../other"]).unwrap();
    let other = ground.repo.beside("other");
    let user = treebeam_git::open_repo_with(&other, ground.repo.variables()).unwrap();
    user.switch_checkout(&ground.from, &ground.to).unwrap();
    assert_eq!(ground.repo.git_in(&other, &["rev-parse", "HEAD"]).unwrap(), ground.to.as_str());
    assert_eq!(ground.repo.git_in(&other, &["status", "--porcelain"]).unwrap(), "");
    ground.must_be_at(&ground.from, "the other one");
}

#[test]
fn lines_that_end_as_the_user_wants_are_no_change() {
    let ground = Ground::new();
    ground.repo.git(["config", "core.autocrlf", "true"]).unwrap();
    ground.repo.git(["rm", "--quiet", "-r", "--cached", "."]).unwrap();
    ground.repo.git(["reset", "--quiet", "--hard"]).unwrap();
    assert_eq!(ground.read("changed.txt"), "old\r\n");
    ground.user().switch_checkout(&ground.from, &ground.to).unwrap();
    assert_eq!(ground.read("changed.txt"), "new\r\n");
    assert_eq!(ground.status(), "");
}
