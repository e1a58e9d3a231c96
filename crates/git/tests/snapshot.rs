//! Tests the commit of uncommitted changes: it has all that `git status` lists, and touches
//! nothing.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::fs;
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::id::{CodePlace, Commit, NodeId};
use treebeam_git::{GitRepo, UserRepo, open_repo_with};
use treebeam_run::port::{PortError, Repo as _};
use treebeam_testkit::repo::TempRepo;

fn files() -> TempRepo {
    let files = [("a.txt", "a\n"), ("sub/b.txt", "b\n"), ("gone.txt", "g\n"), ("kept.txt", "k\n")];
    TempRepo::with(&files).unwrap()
}

fn opened(repo: &TempRepo) -> UserRepo {
    open_repo_with(repo.path(), repo.variables()).unwrap()
}

fn snapshot(repo: &TempRepo) -> Result<Commit, PortError> {
    let at = "2026-01-02T03:04:05Z".parse().unwrap();
    opened(repo).snapshot_commit(&"r1".parse().unwrap(), at)
}

/// Returns the difference of a commit to `HEAD`, in the format of `git diff --name-status`.
fn change(repo: &TempRepo, commit: &Commit) -> String {
    repo.git(["diff", "--name-status", "--no-renames", "HEAD", commit.as_str()]).unwrap()
}

/// Returns everything of the user's that must stay as it is, files byte by byte.
fn users(repo: &TempRepo) -> Vec<Vec<u8>> {
    let git = repo.path().join(".git");
    let read = |name: &str| fs::read(git.join(name)).unwrap_or_default();
    let ask = |arguments: &[&str]| repo.git_in(repo.path(), arguments).unwrap().into_bytes();
    let index = read("index");
    // `git status` may write the index.
    let asked = [
        ask(&["--no-optional-locks", "status", "--porcelain=v2", "--branch"]),
        ask(&["for-each-ref"]),
        ask(&["stash", "list"]),
    ];
    let files = [index, read("HEAD"), read("config"), read("logs/HEAD")];
    files.into_iter().chain(asked).collect()
}

/// Makes the snapshot, and checks that nothing else has changed.
fn untouched(repo: &TempRepo) -> Commit {
    let before = users(repo);
    let commit = snapshot(repo).unwrap();
    assert_eq!(users(repo), before);
    assert!(!repo.path().join(".git/treebeam").exists());
    commit
}

#[test]
fn a_clean_tree_is_its_commit() {
    let repo = files();
    repo.write("treebeam.toml", "").unwrap();
    repo.write(".treebeam/runs/x", "").unwrap();
    repo.write(".env", "KEY=1").unwrap();
    assert_eq!(untouched(&repo), opened(&repo).head);
    // Staged, and reverted in the file: `git status` lists it, but the files are unchanged.
    repo.write("a.txt", "other\n").unwrap();
    repo.git(["add", "a.txt"]).unwrap();
    repo.write("a.txt", "a\n").unwrap();
    assert_eq!(untouched(&repo), opened(&repo).head);
}

#[test]
fn all_kinds_of_changes_are_in_it_and_nothing_is_touched() {
    let repo = files();
    fs::write(repo.path().join(".git/info/exclude"), "ignored.txt\n").unwrap();
    repo.write("kept.txt", "staged\n").unwrap();
    repo.git(["add", "kept.txt"]).unwrap();
    repo.git(["rm", "--quiet", "--cached", "sub/b.txt"]).unwrap();
    repo.write("kept.txt", "and changed\n").unwrap();
    repo.write("a.txt", "changed\n").unwrap();
    repo.write("new dir/new é.txt", "new\n").unwrap();
    repo.write("meant.txt", "meant\n").unwrap();
    repo.git(["add", "--intent-to-add", "meant.txt"]).unwrap();
    repo.write("ignored.txt", "ignored\n").unwrap();
    repo.write(".env", "KEY=1").unwrap();
    repo.write("deep/.env", "KEY=1").unwrap();
    repo.write("treebeam.toml", "").unwrap();
    fs::remove_file(repo.path().join("gone.txt")).unwrap();
    let commit = untouched(&repo);
    let changed =
        "M\ta.txt\nD\tgone.txt\nM\tkept.txt\nA\tmeant.txt\nA\t\"new dir/new \\303\\251.txt\"";
    assert_eq!(change(&repo, &commit), changed);
    let content = repo.git(["show", &format!("{commit}:kept.txt")]).unwrap();
    assert_eq!(content, "and changed", "what lies in the file counts");
    let parent = repo.git(["rev-parse", &format!("{commit}^")]).unwrap();
    assert_eq!(parent, opened(&repo).head.as_str());
    let words = repo.git(["log", "-1", "--format=%B", commit.as_str()]).unwrap();
    assert_eq!(words, "uncommitted changes\n\nTreebeam-Run: r1");
    assert_eq!(snapshot(&repo).unwrap(), commit, "again it is the same");
}

#[test]
fn what_is_no_longer_tracked_but_ignored_is_gone() {
    let repo = files();
    repo.git(["rm", "--quiet", "--cached", "gone.txt"]).unwrap();
    fs::write(repo.path().join(".git/info/exclude"), "gone.txt\n").unwrap();
    let commit = untouched(&repo);
    assert_eq!(change(&repo, &commit), "D\tgone.txt");
    assert!(repo.path().join("gone.txt").exists());
}

#[test]
fn a_file_becomes_a_folder_and_a_folder_a_file() {
    let repo = files();
    fs::remove_file(repo.path().join("a.txt")).unwrap();
    repo.write("a.txt/inside", "x\n").unwrap();
    fs::remove_dir_all(repo.path().join("sub")).unwrap();
    repo.write("sub", "x\n").unwrap();
    let commit = untouched(&repo);
    assert_eq!(change(&repo, &commit), "D\ta.txt\nA\ta.txt/inside\nA\tsub\nD\tsub/b.txt");
}

#[test]
fn what_git_is_told_not_to_look_at_is_as_it_was_committed() {
    let repo = files();
    repo.git(["update-index", "--assume-unchanged", "a.txt"]).unwrap();
    repo.git(["sparse-checkout", "set", "--no-cone", "/*", "!/sub/"]).unwrap();
    assert!(!repo.path().join("sub").exists());
    repo.write("a.txt", "in secret\n").unwrap();
    repo.write("kept.txt", "changed\n").unwrap();
    let commit = untouched(&repo);
    assert_eq!(change(&repo, &commit), "M\tkept.txt", "nothing that is not checked out is lost");
}

#[test]
fn a_linked_worktree_has_its_own() {
    let repo = files();
    repo.git(["worktree", "add", "--quiet", "--detach", "../other"]).unwrap();
    let other = repo.beside("other");
    fs::write(other.join("a.txt"), "other\n").unwrap();
    repo.write("kept.txt", "not this\n").unwrap();
    let at = "2026-01-02T03:04:05Z".parse().unwrap();
    let user = open_repo_with(&other, repo.variables()).unwrap();
    let commit = user.snapshot_commit(&"r1".parse().unwrap(), at).unwrap();
    assert_eq!(change(&repo, &commit), "M\ta.txt");
}

fn refusal(repo: &TempRepo) -> String {
    let before = users(repo);
    let error = snapshot(repo).unwrap_err();
    assert_eq!(users(repo), before);
    format!("{}\n{}", error.full_text(), error.hint.unwrap_or_default())
}

#[test]
fn what_cannot_be_in_a_commit_is_refused_by_name() {
    let large = files();
    let file = fs::File::create(large.path().join("data.bin")).unwrap();
    file.set_len((16 << 20) + 1).unwrap();
    let said = refusal(&large);
    assert!(said.contains("16 MiB") && said.contains("data.bin"), "{said}");

    let inner = files();
    fs::create_dir(inner.path().join("inner")).unwrap();
    inner.git_in(&inner.path().join("inner"), &["init", "--quiet"]).unwrap();
    inner.write("inner/file", "").unwrap();
    let said = refusal(&inner);
    assert!(said.contains("repositories inside") && said.contains("inner/"), "{said}");

    let conflict = files();
    conflict.git(["switch", "--quiet", "--create", "theirs"]).unwrap();
    conflict.write("a.txt", "theirs\n").unwrap();
    conflict.commit("theirs").unwrap();
    conflict.git(["switch", "--quiet", "main"]).unwrap();
    conflict.write("a.txt", "ours\n").unwrap();
    conflict.commit("ours").unwrap();
    conflict.git(["merge", "theirs"]).unwrap_err();
    let said = refusal(&conflict);
    assert!(said.contains("conflicts") && said.contains("a.txt"), "{said}");

    let filtered = files();
    filtered.git(["config", "filter.f.clean", "touch ran; cat"]).unwrap();
    filtered.write(".gitattributes", "*.bin filter=f\n").unwrap();
    filtered.write("x.bin", "x\n").unwrap();
    let said = refusal(&filtered);
    assert!(said.contains("filter") && said.contains("x.bin"), "{said}");
    assert!(!filtered.path().join("ran").exists());
}

#[test]
fn a_changed_submodule_is_refused_by_name() {
    let (repo, inner) = (files(), files());
    let url = inner.path().to_str().unwrap().to_owned();
    let file = "protocol.file.allow=always";
    repo.git(["-c", file, "submodule", "--quiet", "add", &url, "mod"]).unwrap();
    repo.commit("a submodule").unwrap();
    repo.write("a.txt", "changed\n").unwrap();
    repo.write("mod/a.txt", "inside\n").unwrap();
    assert_eq!(change(&repo, &snapshot(&repo).unwrap()), "M\ta.txt", "its files are in no run");
    repo.git_in(&repo.path().join("mod"), &["commit", "--quiet", "--all", "-m", "x"]).unwrap();
    let said = refusal(&repo);
    assert!(said.contains("submodules") && said.contains("mod"), "{said}");
}

#[test]
fn lines_end_as_the_users_git_ends_them() {
    let repo = files();
    repo.git(["config", "core.autocrlf", "true"]).unwrap();
    repo.write("a.txt", "a\r\nmore\r\n").unwrap();
    let commit = untouched(&repo);
    let lines = repo.git(["diff", "--numstat", "HEAD", commit.as_str()]).unwrap();
    assert_eq!(lines, "1\t0\ta.txt");
}

#[test]
fn hooks_stay_silent_and_a_ref_keeps_it() {
    let repo = files();
    repo.write("a.txt", "changed\n").unwrap();
    for hook in ["pre-commit", "post-commit", "post-index-change", "reference-transaction"] {
        let path = repo.path().join(".git/hooks").join(hook);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "#!/bin/sh\ntouch ran\nexit 1\n").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    let commit = snapshot(&repo).unwrap();
    assert!(!repo.path().join("ran").exists());
    fs::remove_dir_all(repo.path().join(".git/hooks")).unwrap();
    let run_dir = repo.path().join(".treebeam/runs/r1");
    fs::create_dir_all(&run_dir).unwrap();
    let git = GitRepo::new(opened(&repo), &run_dir, "r1".parse().unwrap()).unwrap();
    let root = CodePlace::Node(NodeId::new(0));
    git.set_place_ref(root, &commit).unwrap();
    repo.git(["gc", "--quiet", "--prune=now"]).unwrap();
    git.checkout_worktree(root, &commit).unwrap();
    let file = run_dir.join(root.worktree_path().as_str()).join("a.txt");
    assert_eq!(fs::read_to_string(file).unwrap(), "changed\n");
    git.discard_leftover(Leftover { place: root, kind: LeftoverKind::Worktree }, 1).unwrap();
}
