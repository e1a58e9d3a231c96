//! Tests the git port beside other users of a repository: parallel cycles, user's git, pruning gc.
//! No command fails, and nothing is left behind.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::id::{CodePlace, EvalId, NodeId};
use treebeam_git::{GitRepo, open_repo_with};
use treebeam_run::port::{ApplyResult, BinaryDiff, CommitNote, Repo};
use treebeam_testkit::repo::TempRepo;

type Outcome = Result<(), Box<dyn Error>>;

/// Returns the number of cycles, and of files in the repository.
fn size() -> (u32, u32) {
    if std::env::var_os("TREEBEAM_CAMPAIGN").is_some() { (2_000, 2_000) } else { (200, 20) }
}

const AT_ONCE: u32 = 8;

fn repository(files: u32) -> TempRepo {
    let repo = TempRepo::empty().unwrap();
    repo.write("a.txt", "a\n").unwrap();
    for number in 0..files {
        repo.write(&format!("d{}/f{number}", number % 20), &format!("{number}\n")).unwrap();
    }
    repo.commit("first").unwrap();
    repo.write(".treebeam/.gitignore", "*\n").unwrap();
    repo
}

fn run_in(repo: &TempRepo, run: &str) -> GitRepo {
    let run_dir = repo.path().join(".treebeam/runs").join(run);
    fs::create_dir_all(&run_dir).unwrap();
    let user = open_repo_with(repo.path(), repo.variables()).unwrap();
    GitRepo::new(user, &run_dir, run.parse().unwrap()).unwrap()
}

fn eval(number: u32) -> CodePlace {
    CodePlace::Candidate(EvalId::new(number))
}

fn diff(number: u32) -> String {
    format!(
        "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+change {number}\n"
    )
}

fn note(title: &str) -> CommitNote {
    let at = "2026-01-02T03:04:05Z".parse().unwrap();
    CommitNote { title: title.to_owned(), trailers: Vec::new(), at }
}

/// Performs an eval, its promotion, and the removal of both.
fn cycle(git: &GitRepo, number: u32) -> Outcome {
    let (place, node) = (eval(number), CodePlace::Node(NodeId::new(number)));
    let head = git.user_repo().head.clone();
    git.checkout_worktree(place, &head)?;
    assert_eq!(git.apply_to_worktree(place, &diff(number))?, ApplyResult::Cleanly);
    assert_eq!(git.staged_paths(place)?.len(), 1);
    let commit = git.commit_staged(place, &note(&format!("{place}")))?.commit;
    git.set_place_ref(node, &commit)?;
    assert!(
        git.diff_commits(&head, &commit, BinaryDiff::InFull, 4096)?
            .contains(&format!("+change {number}"))
    );
    for place in [place, node] {
        for kind in [LeftoverKind::Worktree, LeftoverKind::Branch] {
            git.discard_leftover(Leftover { place, kind }, 1)?;
        }
    }
    Ok(())
}

/// Repeats `act` until `stop` is set; counts successes and collects errors.
fn again_and_again(stop: &AtomicBool, mut act: impl FnMut(u32) -> std::io::Result<()>) -> Beside {
    let mut beside = Beside::default();
    while !stop.load(Ordering::Relaxed) {
        match act(beside.done) {
            Ok(()) => beside.done += 1,
            Err(error) => beside.failed.push(error.to_string()),
        }
    }
    beside
}

#[derive(Debug, Default)]
struct Beside {
    done: u32,
    failed: Vec<String>,
}

/// Runs all cycles, eight at a time, half of them in another run of the same repository, beside a
/// user's commands.
fn cycles_beside(
    repo: &TempRepo,
    cycles: u32,
    user: &(dyn Fn(u32) -> std::io::Result<()> + Sync),
) -> Beside {
    let runs = [run_in(repo, "r1"), run_in(repo, "r2")];
    let (next, stop) = (AtomicU32::new(1), AtomicBool::new(false));
    let work = |git: &GitRepo| -> Result<(), String> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number > cycles {
                return Ok(());
            }
            let told = |error: Box<dyn Error>| format!("{number}: {error} {:?}", error.source());
            cycle(git, number).map_err(told)?;
        }
    };
    thread::scope(|scope| {
        let foreign = scope.spawn(|| again_and_again(&stop, user));
        let halves = (0..AT_ONCE).map(|n| &runs[usize::from(n % 2 == 0)]);
        let threads: Vec<_> = halves.map(|git| scope.spawn(|| work(git))).collect();
        let panicked = |_| Err("panicked".to_owned());
        let outcomes: Vec<_> =
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect();
        stop.store(true, Ordering::Relaxed);
        let beside = foreign.join().unwrap();
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        for git in &runs {
            assert_eq!(git.list_refs().unwrap(), []);
        }
        beside
    })
}

/// Returns the files below a folder whose names end like this.
fn named(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(end) {
                found.push(path);
            }
        }
    }
    found
}

fn nothing_must_be_left(repo: &TempRepo) {
    let git = repo.path().join(".git");
    assert_eq!(repo.git(["worktree", "list"]).unwrap().lines().count(), 1);
    let admins = fs::read_dir(git.join("worktrees")).map_or(0, Iterator::count);
    assert_eq!((admins, git.join("treebeam").exists()), (0, false));
    assert_eq!(named(&git, ".lock"), [git.join("treebeam.lock")], "no lock of git's is left");
    assert_eq!(repo.git(["for-each-ref", "refs/heads/tree"]).unwrap(), "");
    for run in ["r1", "r2"] {
        let left = fs::read_dir(repo.path().join(".treebeam/runs").join(run).join("cand"));
        assert_eq!(left.map_or(0, Iterator::count), 0);
    }
    repo.git(["fsck"]).unwrap();
}

#[test]
fn eight_at_a_time_and_a_users_own_git_do_not_disturb_each_other() {
    let (cycles, files) = size();
    let repo = repository(files);
    let looks: [&[&str]; 4] = [
        &["status", "--porcelain"],
        &["worktree", "list", "--porcelain"],
        &["log", "--oneline", "--all"],
        &["branch", "--list"],
    ];
    let beside = cycles_beside(&repo, cycles, &|round| {
        let command = looks[usize::try_from(round).unwrap() % looks.len()];
        // As when an editor has saved a file: `git status` has an index to write.
        fs::write(repo.path().join("a.txt"), "a\n")?;
        repo.git_beside(command).map(drop)
    });
    println!("{cycles} cycles beside {} looks, of which failed: {:?}", beside.done, beside.failed);
    assert!(beside.done > 10 && beside.failed.is_empty(), "{beside:?}");
    nothing_must_be_left(&repo);
}

#[test]
fn a_user_who_collects_garbage_loses_nothing_and_takes_nothing() {
    let cycles = size().0 / 4;
    let repo = repository(20);
    let tidy: [&[&str]; 5] = [
        &["gc", "--quiet", "--prune=now"],
        &["pack-refs", "--all"],
        &["worktree", "prune", "--expire=now"],
        &["gc", "--quiet", "--prune=now"],
        &["prune-packed"],
    ];
    let beside = cycles_beside(&repo, cycles, &|round| {
        let command = tidy[usize::try_from(round).unwrap() % tidy.len()];
        // Even a user who cleans up all the time pauses between two commands.
        thread::sleep(Duration::from_millis(100));
        repo.git_beside(command).map(drop)
    });
    println!("{cycles} cycles beside {} chores, of which failed: {:?}", beside.done, beside.failed);
    assert!(beside.done > 2 && beside.failed.is_empty(), "{beside:?}");
    nothing_must_be_left(&repo);
}
