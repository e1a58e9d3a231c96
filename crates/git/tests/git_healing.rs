//! Tests recovery from what a power cut, a kill or a gc leaves in the user's repository. Remains
//! are found, awaited, removed or made again; those of other owners are not touched.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::id::{CodePlace, Commit, EvalId, Sha256};
use treebeam_git::{GitRepo, RunOwnWork, open_repo_with};
use treebeam_run::port::{ApplyResult, CommitNote, JournalTip, Repo};
use treebeam_testkit::repo::{TempRepo, script};

const A_TO_B: &str = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+b\n";

fn files() -> TempRepo {
    TempRepo::with(&[("a.txt", "a\n"), ("sub/b.txt", "b\n")]).unwrap()
}

fn run_with(repo: &TempRepo, variables: Vec<(OsString, OsString)>) -> GitRepo {
    let run_dir = repo.path().join(".treebeam/runs/r1");
    fs::create_dir_all(&run_dir).unwrap();
    fs::write(repo.path().join(".treebeam/.gitignore"), "*\n").unwrap();
    let user = open_repo_with(repo.path(), variables).unwrap();
    GitRepo::new(user, &run_dir, "r1".parse().unwrap()).unwrap()
}

fn run_in(repo: &TempRepo) -> GitRepo {
    run_with(repo, repo.variables())
}

/// Opens the run with this script as git; `git` in the script is the real one.
fn run_through(repo: &TempRepo, text: &str) -> GitRepo {
    let bin = repo.beside("bin");
    fs::create_dir_all(&bin).unwrap();
    let path = std::env::var("PATH").unwrap();
    script(&bin.join("git"), &format!("#!/bin/sh\nPATH='{path}'\n{text}\nexec git \"$@\"\n"))
        .unwrap();
    let mut variables = repo.variables();
    variables.retain(|(name, _)| name != "PATH");
    variables.push(("PATH".into(), bin.into_os_string()));
    run_with(repo, variables)
}

fn e1() -> CodePlace {
    CodePlace::Candidate(EvalId::new(1))
}

fn note() -> CommitNote {
    let at = "2026-01-02T03:04:05Z".parse().unwrap();
    CommitNote { title: "change".to_owned(), trailers: Vec::new(), at }
}

fn admin(repo: &TempRepo) -> PathBuf {
    repo.path().join(".git/worktrees/tree-r1-e0001")
}

fn must_work(repo: &TempRepo, git: &GitRepo, what: &str) {
    for command in [&["worktree", "list"][..], &["branch", "-a"], &["gc", "--quiet"], &["fsck"]] {
        let answer = repo.git_in(repo.path(), command);
        assert!(answer.is_ok(), "{what}: {answer:?}");
    }
    git.checkout_worktree(e1(), &git.user_repo().head).unwrap();
    assert_eq!(git.apply_to_worktree(e1(), A_TO_B).unwrap(), ApplyResult::Cleanly, "{what}");
    git.commit_staged(e1(), &note()).unwrap();
    git.discard_leftover(Leftover { place: e1(), kind: LeftoverKind::Worktree }, 1).unwrap();
    assert_eq!(repo.git(["worktree", "list"]).unwrap().lines().count(), 1, "{what}");
    assert!(!repo.path().join(".git/treebeam").exists(), "{what}");
}

type Break = (&'static str, fn(&Path));

/// States that an interrupted `git worktree add`, a power cut or an interrupted removal can leave.
const BROKEN: [Break; 12] = [
    ("commondir empty", |admin| fs::write(admin.join("commondir"), "").unwrap()),
    ("commondir missing", |admin| fs::remove_file(admin.join("commondir")).unwrap()),
    ("gitdir empty", |admin| fs::write(admin.join("gitdir"), "").unwrap()),
    ("gitdir missing", |admin| fs::remove_file(admin.join("gitdir")).unwrap()),
    ("HEAD empty", |admin| fs::write(admin.join("HEAD"), "").unwrap()),
    ("HEAD missing", |admin| fs::remove_file(admin.join("HEAD")).unwrap()),
    ("index empty", |admin| fs::write(admin.join("index"), "").unwrap()),
    ("index missing", |admin| fs::remove_file(admin.join("index")).unwrap()),
    ("index locked", |admin| fs::write(admin.join("index.lock"), "").unwrap()),
    ("only the reason", |admin| {
        for name in ["commondir", "gitdir", "HEAD", "index"] {
            fs::remove_file(admin.join(name)).unwrap();
        }
    }),
    ("an empty folder", |admin| {
        fs::remove_dir_all(admin).unwrap();
        fs::create_dir(admin).unwrap();
    }),
    ("in the workshop", |admin| {
        let workshop = admin.ancestors().nth(2).unwrap().join("treebeam");
        fs::create_dir(&workshop).unwrap();
        fs::rename(admin, workshop.join("tree-r1-e0001")).unwrap();
    }),
];

#[test]
fn every_half_made_state_heals() {
    for (what, damage) in BROKEN {
        let repo = files();
        let git = run_in(&repo);
        git.checkout_worktree(e1(), &git.user_repo().head).unwrap();
        damage(&admin(&repo));
        must_work(&repo, &run_in(&repo), what);
    }
}

#[test]
fn what_is_half_made_by_somebody_else_is_left() {
    for (what, damage) in &BROKEN[..9] {
        let repo = files();
        repo.git(["worktree", "add", "--quiet", "--detach", "../theirs"]).unwrap();
        let theirs = repo.path().join(".git/worktrees/theirs");
        damage(&theirs);
        let git = run_in(&repo);
        git.checkout_worktree(e1(), &git.user_repo().head).unwrap();
        git.discard_leftover(Leftover { place: e1(), kind: LeftoverKind::Worktree }, 1).unwrap();
        assert!(theirs.exists() && repo.beside("theirs").exists(), "{what}");
    }
}

#[test]
fn a_name_that_somebody_has_taken_is_not_taken_from_them() {
    let repo = files();
    repo.git(["worktree", "add", "--quiet", "--detach", "../tree-r1-e0001"]).unwrap();
    let git = run_in(&repo);
    git.checkout_worktree(e1(), &git.user_repo().head).unwrap();
    git.discard_leftover(Leftover { place: e1(), kind: LeftoverKind::Worktree }, 1).unwrap();
    assert_eq!(repo.git(["worktree", "list"]).unwrap().lines().count(), 2);
}

/// Returns the commit of the same change without any disturbance.
fn undisturbed() -> Commit {
    let repo = files();
    let git = run_in(&repo);
    git.checkout_worktree(e1(), &git.user_repo().head).unwrap();
    git.apply_to_worktree(e1(), A_TO_B).unwrap();
    git.commit_staged(e1(), &note()).unwrap().commit
}

/// After each of these calls, a gc deletes every loose object that nothing pointed at before it.
#[test]
fn objects_that_a_gc_deletes_are_made_again() {
    for call in ["apply", "write-tree", "commit-tree", "update-ref"] {
        let repo = files();
        let (log, kept) = (repo.beside("log"), repo.beside("kept"));
        let objects = repo.path().join(".git/objects");
        let list = format!("find '{}' -path '*/??/*' -type f | sort", objects.display());
        let prune = format!(
            "case \" $* \" in *' read-tree '*) [ -e '{kept}' ] || {list} > '{kept}';; *' {call} '*) if [ ! -e '{log}' ]; then touch '{log}'; \
             git \"$@\"; code=$?; {list} | comm -13 '{kept}' - | xargs -r rm -f; \
             touch -d '2001-01-01' '{pack}'; exit $code; fi;; esac",
            log = log.display(),
            kept = kept.display(),
            pack = objects.join("pack").display(),
        );
        let git = run_through(&repo, &prune);
        git.checkout_worktree(e1(), &git.user_repo().head).unwrap();
        assert_eq!(git.apply_to_worktree(e1(), A_TO_B).unwrap(), ApplyResult::Cleanly, "{call}");
        assert_eq!(git.commit_staged(e1(), &note()).unwrap().commit, undisturbed(), "{call}");
        assert!(log.exists(), "{call}: something was deleted");
        let sound = repo.git(["fsck", "--connectivity-only"]);
        assert!(sound.is_ok(), "{call}: {sound:?}");
    }
}

#[test]
fn a_diff_is_not_blamed_for_what_a_gc_took_away() {
    let repo = files();
    let said = "error: unable to write file objects/11/85: No such file or directory";
    let once = repo.beside("once");
    let text = format!(
        "case \" $* \" in *' apply --index '*) if [ ! -e '{0}' ]; then touch '{0}'; echo '{said}' >&2; exit 1; fi;; esac",
        once.display()
    );
    let git = run_through(&repo, &text);
    git.checkout_worktree(e1(), &git.user_repo().head).unwrap();
    assert_eq!(git.apply_to_worktree(e1(), A_TO_B).unwrap(), ApplyResult::Cleanly);
    assert!(once.exists());
}

#[test]
fn a_git_that_still_writes_in_a_worktree_is_waited_for() {
    for call in ["apply", "write-tree", "update-ref"] {
        let repo = files();
        let (started, go) = (repo.beside("started"), repo.beside("go"));
        // A running git does not need its parent process; but a dead parent starts no other git,
        // so further calls fail.
        let text = format!(
            "[ -e '{0}' ] && exit 1; case \" $* \" in *' {call} '*) touch '{0}'; while [ ! -e '{1}' ]; do sleep 0.01; done;; esac",
            started.display(),
            go.display()
        );
        let left = run_through(&repo, &text);
        let head = left.user_repo().head.clone();
        left.checkout_worktree(e1(), &head).unwrap();
        let resumed = run_in(&repo);
        thread::scope(|scope| {
            let orphan = scope.spawn(|| {
                left.apply_to_worktree(e1(), A_TO_B).and_then(|_| left.commit_staged(e1(), &note()))
            });
            await_that(|| started.exists());
            let fresh = scope.spawn(|| resumed.checkout_worktree(e1(), &head));
            thread::sleep(Duration::from_millis(300));
            let waited = !fresh.is_finished();
            fs::write(&go, "").unwrap();
            assert!(waited, "{call}: it was not waited for");
            fresh.join().unwrap().unwrap();
            drop(orphan.join().unwrap());
        });
    }
}

fn await_that(holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_mins(1));
        thread::sleep(Duration::from_millis(5));
    }
}

/// A repository with reftables, if git can make one.
fn with_tables() -> Option<TempRepo> {
    let repo = TempRepo::folder("repo").unwrap();
    let init = ["init", "--quiet", "--initial-branch=main", "--ref-format=reftable"];
    repo.git(init).ok()?;
    repo.write("a.txt", "a\n").unwrap();
    repo.commit("first").unwrap();
    Some(repo)
}

/// Returns what counts as the user's work there, beside the run's own.
fn work_in(run: &GitRepo) -> Option<String> {
    run.find_user_work(e1(), &RunOwnWork::default()).unwrap()
}

#[test]
fn refs_in_tables_work_as_well() {
    let Some(repo) = with_tables() else {
        println!("this git has no refs in tables");
        return;
    };
    must_work(&repo, &run_in(&repo), "reftable");
    must_work(&repo, &run_in(&repo), "reftable, again");
}

#[test]
fn what_a_user_has_in_worktrees_is_seen_wherever_refs_are() {
    for repo in [Some(files()), with_tables()].into_iter().flatten() {
        let run = run_in(&repo);
        let head = run.user_repo().head.clone();
        run.checkout_worktree(e1(), &head).unwrap();
        let worktree = repo.path().join(".treebeam/runs/r1").join(e1().worktree_path().as_str());
        assert_eq!(work_in(&run), None);
        let commit = ["commit", "--quiet", "--allow-empty", "--message", "mine"];
        repo.git_in(&worktree, &commit).unwrap();
        assert_eq!(work_in(&run).unwrap(), "it has commits that are on no branch");
        repo.git_in(&worktree, &["switch", "--quiet", "--create", "mine"]).unwrap();
        assert_eq!(work_in(&run), None, "they are on a branch of the user's");
    }
}

#[test]
fn a_branch_that_is_checked_out_stays_wherever_refs_are() {
    let branch = Leftover { place: e1(), kind: LeftoverKind::Branch };
    let name = e1().ref_name(&"r1".parse().unwrap());
    for repo in [Some(files()), with_tables()].into_iter().flatten() {
        let run = run_in(&repo);
        let (head, own) = (run.user_repo().head.clone(), repo.beside("own"));
        let own = own.to_str().unwrap();
        run.set_place_ref(e1(), &head).unwrap();
        repo.git(["switch", "--quiet", &name]).unwrap();
        assert!(
            run.discard_leftover(branch, 1).unwrap_err().to_string().contains("is checked out")
        );
        repo.git(["switch", "--quiet", "main"]).unwrap();
        repo.git(["worktree", "add", "--quiet", own, &name]).unwrap();
        assert!(
            run.discard_leftover(branch, 1).unwrap_err().to_string().contains("is checked out")
        );
        repo.git(["worktree", "remove", own]).unwrap();
        run.discard_leftover(branch, 1).unwrap();
        assert_eq!(run.list_refs().unwrap(), []);
    }
}

#[test]
fn files_that_attributes_have_changed_are_nobodys_work() {
    let attributes = (".gitattributes", "*.txt text eol=crlf\n");
    let repo = TempRepo::with(&[("a.txt", "a\n"), attributes]).unwrap();
    let run = run_in(&repo);
    let head = run.user_repo().head.clone();
    run.checkout_worktree(e1(), &head).unwrap();
    let file =
        repo.path().join(".treebeam/runs/r1").join(e1().worktree_path().as_str()).join("a.txt");
    assert_eq!(fs::read(&file).unwrap(), b"a\r\n");
    assert_eq!(work_in(&run), None);
    fs::write(&file, "b\r\n").unwrap();
    assert_eq!(work_in(&run).unwrap(), "it has changes that are not committed: `a.txt`");
}

/// Git would commit this file with other line ends, and so reports it as changed whenever it looks.
#[test]
fn a_file_that_lies_there_as_committed_is_nobodys_work() {
    let repo = TempRepo::with(&[("a.txt", "a\r\n"), (".gitattributes", "*.txt text\n")]).unwrap();
    let object = repo.git(["hash-object", "-w", "--no-filters", "a.txt"]).unwrap();
    let entry = format!("100644,{},a.txt", object.trim());
    repo.git(["update-index", "--cacheinfo", &entry]).unwrap();
    repo.git(["commit", "--quiet", "--message", "as it lies"]).unwrap();
    let run = run_in(&repo);
    run.checkout_worktree(e1(), &run.user_repo().head.clone()).unwrap();
    let file =
        repo.path().join(".treebeam/runs/r1").join(e1().worktree_path().as_str()).join("a.txt");
    // Makes git look at the file again, whatever its index says.
    fs::write(&file, "a\r\n").unwrap();
    let status = repo.git_in(file.parent().unwrap(), &["status", "--porcelain"]).unwrap();
    assert!(status.contains("a.txt"), "git calls it changed: {status:?}");
    assert_eq!(work_in(&run), None);
    fs::write(&file, "b\r\n").unwrap();
    assert_eq!(work_in(&run).unwrap(), "it has changes that are not committed: `a.txt`");
}

/// Moment at which a call is first killed: in the middle, or after all its work.
#[derive(Clone, Copy, Debug)]
enum KilledAt {
    Amid,
    End,
}

/// Returns what a git that is killed in the middle of this call leaves, as a script in a
/// candidate's worktree: `$d` is its git folder.
fn left_amid(call: &str) -> &'static str {
    match call {
        "apply" => "echo z > a.txt; echo z > sub/new.txt; touch \"$d/index.lock\"",
        "read-tree" => "echo z > a.txt; touch \"$d/index.lock\"",
        "write-tree" => "touch \"$d/index.lock\"",
        "update-ref --no-deref --stdin" => {
            "touch \"$d/HEAD.lock\"; mkdir -p \"$c/refs/heads/tree/r1\"; touch \"$c/refs/heads/tree/r1/e0001.lock\""
        }
        "update-ref --no-deref -d" => {
            "touch \"$c/packed-refs.lock\"; touch \"$c/refs/heads/tree/r1/e0001.lock\""
        }
        "update-ref --no-deref refs/treebeam/r1" => {
            "mkdir -p \"$c/refs/treebeam\"; touch \"$c/refs/treebeam/r1.lock\""
        }
        "update-ref --no-deref -d refs/treebeam/r1" => {
            "touch \"$c/packed-refs.lock\"; touch \"$c/refs/treebeam/r1.lock\""
        }
        _ => ":",
    }
}

/// Opens the run with a git that kills itself at this call, `times` times; each call of it is a
/// line in `killed` beside the repository.
fn killing(repo: &TempRepo, call: &str, at: KilledAt, times: u32) -> GitRepo {
    let act = match at {
        KilledAt::Amid => left_amid(call),
        KilledAt::End => "git \"$@\" > /dev/null",
    };
    let text = format!(
        "for a in \"$@\"; do case $a in --git-dir=*) d=${{a#--git-dir=}};; esac; done\n\
         c='{common}'\n\
         case \" $* \" in *' {call} '*) if [ $(cat '{killed}' 2> /dev/null | wc -l) -lt {times} ]; then\n\
         echo x >> '{killed}'; {act}; kill -9 $$; fi;; esac",
        common = repo.path().join(".git").display(),
        killed = repo.beside("killed").display(),
    );
    run_through(repo, &text)
}

fn lock_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(lock_files(&path));
        } else if path.extension().is_some_and(|end| end == "lock")
            && !path.ends_with("treebeam.lock")
        {
            found.push(path);
        }
    }
    found
}

#[test]
fn a_git_that_was_killed_is_run_again_from_a_known_state() {
    let calls = [
        "read-tree",
        "apply",
        "diff-index",
        "write-tree",
        "commit-tree",
        "update-ref --no-deref --stdin",
        "diff-tree",
        "update-ref --no-deref -d",
        "update-ref --no-deref refs/treebeam/r1",
        "update-ref --no-deref -d refs/treebeam/r1",
    ];
    let tip = JournalTip { seq: 7, digest: Sha256::hash_bytes(b"a line") };
    let expected = undisturbed();
    for (call, at) in calls.iter().flat_map(|call| [(call, KilledAt::Amid), (call, KilledAt::End)])
    {
        let what = format!("{call} {at:?}");
        let repo = files();
        let git = killing(&repo, call, at, 1);
        let head = git.user_repo().head.clone();
        git.checkout_worktree(e1(), &head).unwrap();
        assert_eq!(git.apply_to_worktree(e1(), A_TO_B).unwrap(), ApplyResult::Cleanly, "{what}");
        assert_eq!(git.staged_paths(e1()).unwrap().len(), 1, "{what}");
        let commit = git.commit_staged(e1(), &note()).unwrap().commit;
        assert_eq!(commit, expected, "{what}");
        assert!(!git.diff_stat(&head, &commit).unwrap().is_empty(), "{what}");
        for kind in [LeftoverKind::Worktree, LeftoverKind::Branch] {
            git.discard_leftover(Leftover { place: e1(), kind }, 1).unwrap();
        }
        assert_eq!(git.list_refs().unwrap(), [], "{what}");
        git.mark_journal(&tip).unwrap();
        assert_eq!(git.journal_tip().unwrap(), Some(tip), "{what}");
        git.remove_journal_ref().unwrap();
        assert!(!git.has_journal_ref().unwrap(), "{what}");
        assert!(repo.beside("killed").exists(), "{what}: it was killed");
        assert_eq!(lock_files(&repo.path().join(".git")), [""; 0].map(PathBuf::from), "{what}");
    }
}

#[test]
fn a_git_that_is_killed_each_time_ends_in_words() {
    for call in ["read-tree", "apply", "write-tree"] {
        let repo = files();
        let git = killing(&repo, call, KilledAt::Amid, u32::MAX);
        let all = || {
            git.checkout_worktree(e1(), &git.user_repo().head)?;
            git.apply_to_worktree(e1(), A_TO_B)?;
            git.commit_staged(e1(), &note()).map(drop)
        };
        let said = all().unwrap_err().full_text();
        assert!(
            said.contains(&format!("git {call}` for e0001")) && said.contains("killed"),
            "{said}"
        );
        let tries = fs::read_to_string(repo.beside("killed")).unwrap().lines().count();
        assert_eq!(tries, 3, "{call}");
    }
}

#[test]
fn a_lock_of_the_packed_refs_is_waited_for_once() {
    let repo = files();
    let git = run_in(&repo);
    let places = [1, 2, 3].map(|number| CodePlace::Candidate(EvalId::new(number)));
    let head = git.user_repo().head.clone();
    for place in &places {
        git.set_place_ref(*place, &head).unwrap();
    }
    let lock = repo.path().join(".git/packed-refs.lock");
    fs::write(&lock, "").unwrap();
    let remove = |place| git.discard_leftover(Leftover { place, kind: LeftoverKind::Branch }, 1);
    let begun = Instant::now();
    let said = thread::scope(|scope| {
        let threads =
            places.map(|place| scope.spawn(move || remove(place).unwrap_err().full_text()));
        threads.map(|thread| thread.join().unwrap())
    });
    assert!(remove(places[0]).is_err());
    let waited = begun.elapsed();
    assert!(waited >= Duration::from_secs(9) && waited < Duration::from_secs(15), "{waited:?}");
    assert!(
        said[0].contains("packed-refs.lock") && said[0].contains("remove that file"),
        "{said:?}"
    );
    assert!(said.iter().all(|words| *words == said[0]), "{said:?}");
    fs::remove_file(&lock).unwrap();
    for place in &places {
        remove(*place).unwrap();
    }
    assert_eq!(git.list_refs().unwrap(), []);
}

#[test]
fn a_lock_of_the_packed_refs_goes_when_it_is_old_or_the_runs_own() {
    let repo = files();
    let git = run_in(&repo);
    let lock = |name: &str, age: u64| {
        let path = repo.path().join(".git").join(name);
        let past = SystemTime::now() - Duration::from_secs(age);
        fs::File::create(&path).unwrap().set_modified(past).unwrap();
        path
    };
    git.set_place_ref(e1(), &git.user_repo().head).unwrap();
    fs::create_dir_all(repo.path().join(".git/refs/treebeam")).unwrap();
    for reference in ["refs/heads/tree/r1/e0001.lock", "refs/treebeam/r1.lock"] {
        let packed = lock("packed-refs.lock", 20);
        git.unlock_refs().unwrap();
        assert!(packed.exists(), "another git may hold it");
        // A git that was killed while it deleted a ref leaves both locks, that of the ref taken
        // first.
        lock(reference, 21);
        git.unlock_refs().unwrap();
        assert!(!packed.exists(), "{reference}");
    }
    lock("packed-refs.lock", 11 * 60);
    git.discard_leftover(Leftover { place: e1(), kind: LeftoverKind::Branch }, 1).unwrap();
    assert_eq!(git.list_refs().unwrap(), []);
}
