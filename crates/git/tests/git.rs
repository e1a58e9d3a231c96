//! Tests the git port against real git: answers, repeated operations, and hostile worktrees.
//! Nothing that a candidate does to its folder may affect the user's checkout.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::id::{CodePlace, Commit, EvalId, NodeId, RunId};
use treebeam_core::protect::PathKind;
use treebeam_git::{DiffColour, GitRepo, OpenError, UserRepo, open_repo_with};
use treebeam_run::port::{ApplyResult, BinaryDiff, CommitNote, CommittedTree, Repo};
use treebeam_testkit::repo::TempRepo;
#[cfg(unix)]
use treebeam_testkit::repo::script;

type Outcome = Result<(), Box<dyn Error>>;

const A_TO_B: &str = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+b\n";

fn files() -> Result<TempRepo, Box<dyn Error>> {
    Ok(TempRepo::with(&[("a.txt", "a\n"), ("sub/b.txt", "b\n"), ("c d.txt", "c\n")])?)
}

fn opened(repo: &TempRepo) -> Result<UserRepo, OpenError> {
    open_repo_with(repo.path(), repo.variables())
}

fn run_in(repo: &TempRepo) -> Result<GitRepo, Box<dyn Error>> {
    let run_dir = run_dir(repo);
    fs::create_dir_all(&run_dir)?;
    fs::write(repo.path().join(".treebeam/.gitignore"), "*\n")?;
    Ok(GitRepo::new(opened(repo)?, &run_dir, "r1".parse::<RunId>()?)?)
}

fn run_dir(repo: &TempRepo) -> PathBuf {
    repo.path().join(".treebeam/runs/r1")
}

fn eval(number: u32) -> CodePlace {
    CodePlace::Candidate(EvalId::new(number))
}

fn folder(repo: &TempRepo, place: CodePlace) -> PathBuf {
    run_dir(repo).join(place.worktree_path().as_str())
}

fn worktree(place: CodePlace) -> Leftover {
    Leftover { place, kind: LeftoverKind::Worktree }
}

fn branch(place: CodePlace) -> Leftover {
    Leftover { place, kind: LeftoverKind::Branch }
}

fn note(title: &str) -> Result<CommitNote, Box<dyn Error>> {
    let trailers = vec![("Treebeam-Run", "r1".to_owned()), ("Treebeam-Eval", "0001".to_owned())];
    Ok(CommitNote { title: title.to_owned(), trailers, at: "2026-01-02T03:04:05Z".parse()? })
}

/// Returns everything of the user's that must stay as it is: `HEAD`, branch, index, files, stash,
/// configuration.
fn users(repo: &TempRepo) -> Result<String, Box<dyn Error>> {
    let git = repo.path().join(".git");
    let asked = [
        repo.git(["rev-parse", "HEAD"])?,
        repo.git(["status", "--porcelain=v1", "--branch"])?,
        repo.git(["ls-files", "--stage"])?,
        repo.git(["stash", "list"])?,
        fs::read_to_string(git.join("HEAD"))?,
        fs::read_to_string(git.join("config"))?,
        fs::read_to_string(repo.path().join("a.txt"))?,
    ];
    Ok(asked.join("\n--\n"))
}

fn refused(outcome: Result<UserRepo, OpenError>) -> String {
    match outcome {
        Ok(found) => format!("found {}", found.toplevel.display()),
        Err(error) => {
            assert!(!error.hint().is_empty());
            format!("{error:?}").split([' ', '{']).next().unwrap_or_default().to_owned()
        }
    }
}

#[test]
fn what_is_no_repository_is_refused_by_name() -> Outcome {
    let plain = TempRepo::folder("plain")?;
    assert_eq!(refused(opened(&plain)), "NotARepository");
    assert_eq!(
        refused(open_repo_with(&plain.beside("nothing"), plain.variables())),
        "NotARepository"
    );
    plain.git(["init", "--quiet"])?;
    assert_eq!(refused(opened(&plain)), "NoCommits");
    let gone = files()?;
    let head = gone.git(["rev-parse", "HEAD"])?;
    let object = gone.path().join(".git/objects").join(&head[..2]).join(&head[2..]);
    fs::remove_file(object)?;
    assert_eq!(refused(opened(&gone)), "HeadMissing");
    let bare = TempRepo::folder("bare")?;
    bare.git(["init", "--quiet", "--bare"])?;
    assert_eq!(refused(opened(&bare)), "Bare");
    let files = files()?;
    assert_eq!(refused(open_repo_with(files.path(), [])), "GitMissing");
    fs::write(files.path().join(".git/config"), "[core\n")?;
    assert_eq!(refused(opened(&files)), "Refused");
    Ok(())
}

#[test]
#[cfg(unix)]
fn an_old_git_and_an_odd_path_are_refused() -> Outcome {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;
    let repo = files()?;
    let old = repo.beside("bin");
    fs::create_dir(&old)?;
    script(&old.join("git"), "#!/bin/sh\necho git version 2.40.9\n")?;
    let found = open_repo_with(repo.path(), [("PATH".into(), old.into_os_string())]);
    assert_eq!(refused(found), "GitTooOld");
    let odd = repo.beside("x").with_file_name(OsString::from_vec(b"odd\xff".to_vec()));
    fs::create_dir(&odd)?;
    repo.git_in(&odd, &["init", "--quiet"])?;
    assert_eq!(refused(open_repo_with(&odd, repo.variables())), "NotUtf8");
    Ok(())
}

#[test]
fn a_repository_is_found_from_wherever_the_user_is() -> Outcome {
    let repo = files()?;
    let top = opened(&repo)?;
    assert_eq!(top.toplevel, repo.path());
    assert_eq!(top.common_dir, repo.path().join(".git"));
    assert_eq!(top.head.as_str(), repo.git(["rev-parse", "HEAD"])?);
    assert_eq!(top.head_time.as_second(), 1_700_000_000);
    assert!(!top.has_submodules);
    let sub = open_repo_with(&repo.path().join("sub"), repo.variables())?;
    assert_eq!(sub.toplevel, repo.path());
    let linked = repo.beside("linked tree");
    repo.git(["worktree", "add", "--quiet", "-b", "other", "../linked tree"])?;
    repo.git_in(&linked, &["commit", "--quiet", "--allow-empty", "-m", "second"])?;
    let found = open_repo_with(&linked, repo.variables())?;
    assert_eq!((&found.toplevel, &found.common_dir), (&linked, &top.common_dir));
    assert_ne!(found.head, top.head);
    Ok(())
}

#[test]
fn variables_of_a_surrounding_git_do_not_lead_elsewhere() -> Outcome {
    let (repo, other) = (files()?, files()?);
    let mut variables = repo.variables();
    variables.push(("GIT_DIR".into(), other.path().join(".git").into_os_string()));
    variables.push(("GIT_INDEX_FILE".into(), "/nowhere".into()));
    assert_eq!(open_repo_with(repo.path(), variables)?.toplevel, repo.path());
    Ok(())
}

#[test]
fn spaces_and_umlauts_are_ordinary() -> Outcome {
    let repo = TempRepo::folder("my repo, ümläut")?;
    repo.git(["init", "--quiet"])?;
    repo.write("ü x.txt", "a\n")?;
    repo.commit("first")?;
    let git = run_in(&repo)?;
    let head = git.user_repo().head.clone();
    git.checkout_worktree(eval(1), &head)?;
    let diff = "--- \"a/ü x.txt\"\n+++ \"b/ü x.txt\"\n@@ -1 +1 @@\n-a\n+b\n";
    assert_eq!(git.apply_to_worktree(eval(1), diff)?, ApplyResult::Cleanly);
    assert_eq!(git.staged_paths(eval(1))?[0].path, "ü x.txt");
    let commit = git.commit_staged(eval(1), &note("title ü")?)?.commit;
    assert!(git.diff_commits(&head, &commit, BinaryDiff::InFull, 4096)?.contains("+++ b/ü x.txt"));
    git.discard_leftover(worktree(eval(1)), 1)?;
    assert!(!folder(&repo, eval(1)).exists());
    Ok(())
}

#[test]
fn somebody_always_commits() -> Outcome {
    let repo = files()?;
    let who = |variables| -> Result<String, OpenError> {
        let identity = open_repo_with(repo.path(), variables)?.identity;
        Ok(format!("{} <{}>", identity.name, identity.email))
    };
    assert_eq!(who(repo.variables())?, "treebeam <treebeam@localhost>");
    let mut variables = repo.variables();
    variables.push(("GIT_AUTHOR_NAME".into(), "Env".into()));
    variables.push(("GIT_COMMITTER_EMAIL".into(), "env@example.org".into()));
    assert_eq!(who(variables.clone())?, "Env <env@example.org>");
    fs::write(repo.home().join(".gitconfig"), "[user]\nname = Home\nemail = <>\n")?;
    assert_eq!(who(variables.clone())?, "Home <env@example.org>");
    repo.git(["config", "user.name", "Repo"])?;
    assert_eq!(who(variables)?, "Repo <env@example.org>");
    Ok(())
}

#[test]
fn dirty_is_what_the_user_sees_but_for_our_own_files() -> Outcome {
    let repo = files()?;
    let dirty =
        || -> Result<String, Box<dyn Error>> { Ok(opened(&repo)?.dirty_paths()?.join(" ")) };
    assert_eq!(dirty()?, "");
    for path in ["treebeam.toml", ".treebeam/runs/x", ".env", "build.log"] {
        repo.write(path, "x")?;
    }
    assert_eq!(dirty()?, "build.log");
    fs::write(repo.home().join("ignored"), "*.log\n")?;
    fs::write(repo.home().join(".gitconfig"), "[core]\nexcludesFile = ~/ignored\n")?;
    assert_eq!(dirty()?, "");
    repo.write("sub/.env", "x")?;
    repo.write("a.txt", "changed\n")?;
    fs::rename(repo.path().join("c d.txt"), repo.path().join("new name"))?;
    repo.git(["add", "new name"])?;
    assert_eq!(dirty()?, "a.txt c d.txt new name sub/.env");
    let but_for = |files: &[&str]| -> Result<String, Box<dyn Error>> {
        let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
        Ok(opened(&repo)?.dirty_paths_except(&files)?.join(" "))
    };
    repo.write("p/[b].md", "x")?;
    assert_eq!(but_for(&["a.txt", "p/[b].md", "gone"])?, "c d.txt new name sub/.env");
    repo.write("p/b.md", "x")?;
    assert_eq!(but_for(&["a.txt", "p/[b].md"])?, "c d.txt new name p/ sub/.env");
    Ok(())
}

#[test]
fn everything_can_be_done_twice() -> Outcome {
    let repo = files()?;
    let git = run_in(&repo)?;
    let before = users(&repo)?;
    let head = git.user_repo().head.clone();
    let (e1, n1) = (eval(1), CodePlace::Node(NodeId::new(1)));
    for _ in 0..2 {
        git.checkout_worktree(e1, &head)?;
        assert_eq!(fs::read_to_string(folder(&repo, e1).join("a.txt"))?, "a\n");
    }
    assert_eq!(git.apply_to_worktree(e1, A_TO_B)?, ApplyResult::Cleanly);
    assert!(matches!(git.apply_to_worktree(e1, A_TO_B)?, ApplyResult::Refused(_)));
    assert_eq!(fs::read_to_string(folder(&repo, e1).join("a.txt"))?, "b\n");
    let changes = git.staged_paths(e1)?;
    let commit = git.commit_staged(e1, &note("change a")?)?.commit;
    assert_eq!(git.staged_paths(e1)?, changes);
    let later = CommitNote { at: "2027-01-01T00:00:00Z".parse()?, ..note("change a")? };
    assert_eq!(
        git.commit_staged(e1, &later)?.commit,
        commit,
        "the same parent, tree and message: it stands"
    );
    assert_eq!(repo.git_in(&folder(&repo, e1), &["status", "--porcelain=v1"])?, "");
    for _ in 0..2 {
        git.set_place_ref(n1, &commit)?;
        assert_eq!(
            git.diff_commits(&head, &commit, BinaryDiff::InFull, 4096)?,
            git.diff_commits(&head, &commit, BinaryDiff::InFull, 4096)?
        );
        git.checkout_worktree(n1, &commit)?;
    }
    let names = |git: &GitRepo| -> Result<Vec<String>, Box<dyn Error>> {
        Ok(git.list_refs()?.into_iter().map(|(name, _)| name).collect())
    };
    assert_eq!(names(&git)?, ["tree/r1/e0001", "tree/r1/n0001"]);
    for leftover in [worktree(e1), branch(e1), worktree(n1)] {
        git.discard_leftover(leftover, 1)?;
        git.discard_leftover(leftover, 1)?;
    }
    assert_eq!(names(&git)?, ["tree/r1/n0001"]);
    assert_eq!(repo.git(["worktree", "list"])?.lines().count(), 1);
    assert_eq!(users(&repo)?, before);
    Ok(())
}

#[test]
fn two_commits_with_the_same_files_have_the_same_tree() -> Outcome {
    let repo = files()?;
    let git = run_in(&repo)?;
    let head = git.user_repo().head.clone();
    let made = |number: u32, title: &str| -> Result<CommittedTree, Box<dyn Error>> {
        git.checkout_worktree(eval(number), &head)?;
        assert_eq!(git.apply_to_worktree(eval(number), A_TO_B)?, ApplyResult::Cleanly);
        Ok(git.commit_staged(eval(number), &note(title)?)?)
    };
    let (one, two) = (made(1, "one")?, made(2, "two")?);
    assert_ne!(one.commit, two.commit);
    assert_eq!(one.tree, two.tree);
    assert_eq!(git.git_tree(&two.commit)?, one.tree);
    assert_ne!(git.git_tree(&head)?, one.tree);
    Ok(())
}

#[test]
fn the_same_inputs_make_the_same_commit() -> Outcome {
    let make = || -> Result<(Commit, String), Box<dyn Error>> {
        let repo = files()?;
        let git = run_in(&repo)?;
        git.checkout_worktree(eval(1), &git.user_repo().head)?;
        git.apply_to_worktree(eval(1), A_TO_B)?;
        let commit = git.commit_staged(eval(1), &note("change\na")?)?.commit;
        let text = repo.git(["cat-file", "commit", commit.as_str()])?;
        Ok((commit, text))
    };
    let (first, text) = make()?;
    assert_eq!(make()?.0, first);
    let who = "treebeam <treebeam@localhost> 1767323045 +0000";
    assert!(text.contains(&format!("author {who}\ncommitter {who}\n")), "{text}");
    assert!(text.ends_with("\n\nchange a\n\nTreebeam-Run: r1\nTreebeam-Eval: 0001"), "{text}");
    Ok(())
}

#[test]
fn a_second_commit_in_a_worktree_replaces_the_first() -> Outcome {
    let repo = files()?;
    let git = run_in(&repo)?;
    let head = git.user_repo().head.clone();
    git.checkout_worktree(eval(1), &head)?;
    git.apply_to_worktree(eval(1), A_TO_B)?;
    let first = git.commit_staged(eval(1), &note("one")?)?.commit;
    // A new process, as after a restart.
    let git = run_in(&repo)?;
    assert_eq!(
        git.apply_to_worktree(eval(1), &A_TO_B.replace("-a", "-b").replace("+b\n", "+c\n"))?,
        { ApplyResult::Cleanly }
    );
    let second = git.commit_staged(eval(1), &note("one")?)?.commit;
    assert_ne!(first, second);
    assert_eq!(repo.git(["rev-parse", "tree/r1/e0001^"])?, head.as_str());
    assert_eq!(repo.git(["rev-parse", "tree/r1/e0001"])?, second.as_str());
    let in_worktree = repo.git_in(&folder(&repo, eval(1)), &["rev-parse", "HEAD"])?;
    assert_eq!(in_worktree, second.as_str());
    Ok(())
}

#[test]
fn a_diff_that_does_not_apply_changes_nothing() -> Outcome {
    let repo = files()?;
    let git = run_in(&repo)?;
    let place = eval(1);
    git.checkout_worktree(place, &git.user_repo().head)?;
    let added = |path: &str| {
        format!(
            "diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
        )
    };
    let cases = [
        A_TO_B.replace("-a", "-z"),
        format!("{A_TO_B}{}", A_TO_B.replace("a.txt", "missing.txt")),
        "no diff at all".to_owned(),
        String::new(),
        added("../../../../escaped"),
        added("/tmp/escaped"),
        // Git itself aborts at this diff.
        added("n").replace("new file mode 100644", " a"),
        added(".git/hooks/post-checkout"),
        added("sub/.GIT/config"),
        added(&"long".repeat(80)),
        format!("{A_TO_B}{}{}", added("aaa.txt"), added("c d.txt/below")),
        format!("{A_TO_B}{}", added("a.txt/below")),
        // Recounted, and then stopped half-way.
        format!(
            "{}{}{}",
            added("aaa.txt"),
            A_TO_B.replace("-1 +1", "-1,3 +1,4"),
            added("c d.txt/x")
        ),
        format!("{}{}", added("commondir: No space left on device"), A_TO_B.replace("-a", "-z")),
    ];
    for diff in cases {
        let ApplyResult::Refused(why) = git.apply_to_worktree(place, &diff)? else {
            return Err(format!("applied: {diff}").into());
        };
        assert!(why.starts_with("error: "), "{why}");
        assert!(!why.contains(&*repo.path().to_string_lossy()), "{why}");
        assert_eq!(git.staged_paths(place)?, [], "{diff}");
        let status = repo.git_in(&folder(&repo, place), &["status", "--porcelain=v1"])?;
        assert_eq!(status, "", "{diff}");
    }
    assert_eq!(git.apply_to_worktree(place, A_TO_B)?, ApplyResult::Cleanly);
    Ok(())
}

#[test]
fn badly_counted_hunks_are_counted_again() -> Outcome {
    let repo = files()?;
    let git = run_in(&repo)?;
    let head = git.user_repo().head.clone();
    let new =
        "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n";
    let counted_badly = A_TO_B.replace("-1 +1", "-1,3 +1,4");
    let cases =
        [format!("{counted_badly}{new}"), A_TO_B.trim_end().to_owned(), format!("{A_TO_B}\n")];
    for diff in cases {
        git.checkout_worktree(eval(1), &head)?;
        assert_eq!(git.apply_to_worktree(eval(1), &diff)?, ApplyResult::Cleanly, "{diff}");
    }
    Ok(())
}

#[test]
fn a_diff_whose_last_hunk_is_shorter_than_it_says_is_refused() -> Outcome {
    let repo = files()?;
    let git = run_in(&repo)?;
    git.checkout_worktree(eval(1), &git.user_repo().head)?;
    let ApplyResult::Refused(why) =
        git.apply_to_worktree(eval(1), &A_TO_B.replace("-1 +1", "-1,3 +1,4"))?
    else {
        return Err("half a diff was applied".into());
    };
    assert!(why.contains("cut off") && why.contains("1 of 3 old and 1 of 4 new lines"), "{why}");
    assert_eq!(git.staged_paths(eval(1))?, []);
    Ok(())
}

#[test]
fn new_files_that_do_not_belong_into_a_change_are_named() -> Outcome {
    let repo = TempRepo::with(&[
        ("a.txt", "a\n"),
        ("old.csv", &"1,2,3\n".repeat(400)),
        (".gitignore", "*.log\n"),
    ])?;
    let git = run_in(&repo)?.with_max_new_file_bytes(1 << 10);
    let head = git.user_repo().head.clone();
    let added = |path: &str, lines: usize| {
        let body = "+0123456\n".repeat(lines);
        format!(
            "diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{lines} @@\n{body}"
        )
    };
    let unwanted = |diff: &str| -> Result<String, Box<dyn Error>> {
        git.checkout_worktree(eval(1), &head)?;
        assert_eq!(git.apply_to_worktree(eval(1), diff)?, ApplyResult::Cleanly);
        Ok(git.staged_changes(eval(1))?.unwanted.join("\n"))
    };
    assert_eq!(unwanted(&added("n.py", 128))?, "");
    let large = unwanted(&format!("{}{}", added("n.py", 1), added("sub/cache.bin", 129)))?;
    assert!(large.starts_with("`sub/cache.bin` is new and has 2 KiB"), "{large}");
    assert!(large.contains("`max_new_file_kib`") && !large.contains("n.py"), "{large}");
    let ignored = unwanted(&added("out/run.log", 1))?;
    assert_eq!(ignored, "`out/run.log` is new, and git ignores it: leave it out");
    let moved = "diff --git a/old.csv b/new.csv\nsimilarity index 100%\nrename from old.csv\nrename to new.csv\n";
    assert_eq!(unwanted(moved)?, "");
    let grown = "--- a/old.csv\n+++ b/old.csv\n@@ -1,1 +1,2 @@\n+0\n 1,2,3\n";
    assert_eq!(unwanted(grown)?, "");
    Ok(())
}

#[test]
fn changes_tell_links_modules_and_deletions_apart() -> Outcome {
    let repo = files()?;
    let git = run_in(&repo)?;
    let head = git.user_repo().head.clone();
    git.checkout_worktree(eval(1), &head)?;
    let link = "diff --git a/link b/link\nnew file mode 120000\n--- /dev/null\n+++ b/link\n@@ -0,0 +1 @@\n+a.txt\n\\ No newline at end of file\n";
    let module = format!(
        "diff --git a/module b/module\nnew file mode 160000\n--- /dev/null\n+++ b/module\n@@ -0,0 +1 @@\n+Subproject commit {head}\n"
    );
    let gone = "diff --git a/sub/b.txt b/sub/b.txt\ndeleted file mode 100644\n--- a/sub/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n";
    let executable = "diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 100755\n";
    let diff = format!("{executable}{link}{module}{gone}");
    assert_eq!(git.apply_to_worktree(eval(1), &diff)?, ApplyResult::Cleanly);
    let found: Vec<_> = git.staged_paths(eval(1))?.into_iter().map(|c| (c.path, c.to)).collect();
    let expected = [
        ("a.txt", PathKind::File),
        ("link", PathKind::Symlink),
        ("module", PathKind::Gitlink),
        ("sub/b.txt", PathKind::Deleted),
    ];
    assert_eq!(found, expected.map(|(path, to)| (path.to_owned(), to)));
    Ok(())
}

#[test]
fn diffs_are_cut_between_characters_and_know_binaries() -> Outcome {
    let repo = files()?;
    let first: Commit = repo.git(["rev-parse", "HEAD"])?.parse()?;
    repo.write("a.txt", &"ü".repeat(1000))?;
    fs::write(repo.path().join("data.bin"), [0, 159, 146, 150])?;
    let second: Commit = repo.commit("second")?.parse()?;
    repo.git(["config", "diff.noprefix", "true"])?;
    repo.git(["config", "diff.external", "false"])?;
    let git = run_in(&repo)?;
    let whole = git.diff_commits(&first, &second, BinaryDiff::InFull, 1 << 20)?;
    assert!(
        whole.starts_with("diff --git a/a.txt b/a.txt\n") && whole.contains("GIT binary patch")
    );
    let named = git.diff_commits(&first, &second, BinaryDiff::Named, 1 << 20)?;
    assert!(named.contains("b/data.bin differ") && !named.contains("GIT binary patch"), "{named}");
    for limit in [0, 1, 300, 301, 302, 303] {
        let part = git.diff_commits(&first, &second, BinaryDiff::InFull, limit)?;
        assert!(whole.starts_with(&part) && part.len() <= limit && part.len() + 2 > limit);
    }
    let stat = git.diff_stat(&first, &second)?;
    assert!(stat.contains("a.txt") && stat.contains("2 files changed"), "{stat}");
    git.checkout_worktree(eval(1), &first)?;
    assert_eq!(git.apply_to_worktree(eval(1), &whole)?, ApplyResult::Cleanly);
    Ok(())
}

#[test]
fn a_diff_is_shown_as_git_prints_it_whatever_is_configured() -> Outcome {
    let repo = files()?;
    let first: Commit = repo.git(["rev-parse", "HEAD"])?.parse()?;
    fs::write(repo.path().join("a.txt"), b"latin \xe4\n")?;
    repo.write("älter.txt", "new\n")?;
    repo.write(".gitattributes", "*.txt diff=odd\n")?;
    let second: Commit = repo.commit("second")?.parse()?;
    repo.git(["config", "diff.external", "false"])?;
    repo.git(["config", "diff.odd.command", "false"])?;
    repo.git(["config", "diff.odd.textconv", "false"])?;
    repo.git(["config", "core.pager", "false"])?;
    let git = run_in(&repo)?;
    let plain = git.render_diff(&first, &second, DiffColour::Plain)?;
    let text = String::from_utf8_lossy(&plain);
    assert!(text.contains("diff --git a/älter.txt b/älter.txt\nnew file mode 100644"), "{text}");
    assert!(plain.windows(8).any(|bytes| bytes == b"latin \xe4\n") && !plain.contains(&0x1b));
    let coloured = git.render_diff(&first, &second, DiffColour::Coloured)?;
    assert!(coloured.contains(&0x1b));
    assert!(git.render_diff(&first, &first, DiffColour::Plain)?.is_empty());
    let gone: Commit = "1".repeat(40).parse()?;
    assert!(git.has_commit(&second)? && !git.has_commit(&gone)?);
    assert!(git.render_diff(&first, &gone, DiffColour::Plain).is_err());
    Ok(())
}

type Sabotage = fn(&TempRepo, &Path) -> std::io::Result<()>;

/// Changes that a candidate may have made to its worktree while tests or an agent ran in it.
fn sabotages() -> Vec<(&'static str, Sabotage)> {
    vec![
        ("nothing", |_, _| Ok(())),
        (".git deleted", |_, folder| fs::remove_file(folder.join(".git"))),
        (".git rewritten", |repo, folder| {
            let to = format!("gitdir: {}\n", repo.path().join(".git").display());
            fs::write(folder.join(".git"), to)
        }),
        (".git a repository with a hook", |repo, folder| {
            fs::remove_file(folder.join(".git"))?;
            repo.git_in(folder, &["init", "--quiet"])?;
            repo.git_in(folder, &["config", "core.fsmonitor", "touch ../ran"]).map(drop)
        }),
    ]
}

#[test]
fn a_sabotaged_worktree_stays_where_it_is() -> Outcome {
    for (name, sabotage) in sabotages() {
        for restarted in [false, true] {
            let repo = files()?;
            let mut git = run_in(&repo)?;
            let before = users(&repo)?;
            let head = git.user_repo().head.clone();
            git.checkout_worktree(eval(1), &head)?;
            sabotage(&repo, &folder(&repo, eval(1)))?;
            if restarted {
                git = run_in(&repo)?;
            }
            assert_eq!(git.apply_to_worktree(eval(1), A_TO_B)?, ApplyResult::Cleanly, "{name}");
            assert_eq!(git.staged_paths(eval(1))?.len(), 1, "{name}");
            let commit = git.commit_staged(eval(1), &note("x")?)?.commit;
            assert_eq!(repo.git(["rev-parse", "tree/r1/e0001"])?, commit.as_str());
            assert_eq!(repo.git(["rev-parse", "tree/r1/e0001^"])?, head.as_str());
            assert_eq!(users(&repo)?, before, "{name}");
            git.checkout_worktree(eval(1), &head)?;
            sabotage(&repo, &folder(&repo, eval(1)))?;
            git.discard_leftover(worktree(eval(1)), 1)?;
            assert!(!folder(&repo, eval(1)).exists(), "{name}");
            assert_eq!(repo.git(["worktree", "list"])?.lines().count(), 1, "{name}");
            assert_eq!(users(&repo)?, before, "{name}");
        }
    }
    Ok(())
}

#[test]
#[cfg(unix)]
fn a_worktree_that_became_a_link_is_not_followed() -> Outcome {
    let repo = files()?;
    let git = run_in(&repo)?;
    let before = users(&repo)?;
    git.checkout_worktree(eval(1), &git.user_repo().head)?;
    fs::remove_dir_all(folder(&repo, eval(1)))?;
    std::os::unix::fs::symlink(repo.path(), folder(&repo, eval(1)))?;
    assert!(git.apply_to_worktree(eval(1), A_TO_B).is_err() && git.staged_paths(eval(1)).is_err());
    git.discard_leftover(worktree(eval(1)), 1)?;
    assert_eq!(users(&repo)?, before);
    let elsewhere = repo.beside("elsewhere");
    fs::create_dir_all(elsewhere.join("0001"))?;
    fs::remove_dir_all(run_dir(&repo).join("cand"))?;
    std::os::unix::fs::symlink(&elsewhere, run_dir(&repo).join("cand"))?;
    assert!(git.discard_leftover(worktree(eval(1)), 1).is_err() && elsewhere.join("0001").exists());
    assert!(git.checkout_worktree(eval(1), &git.user_repo().head).is_err());
    Ok(())
}

#[test]
#[cfg(unix)]
fn no_hook_runs() -> Outcome {
    let repo = files()?;
    let ran = repo.beside("ran");
    for name in ["post-checkout", "reference-transaction", "post-index-change", "pre-applypatch"] {
        let hook = repo.path().join(".git/hooks").join(name);
        fs::create_dir_all(repo.path().join(".git/hooks"))?;
        script(&hook, &format!("#!/bin/sh\necho {name} >> '{}'\n", ran.display()))?;
    }
    repo.git(["config", "core.fsmonitor", &format!("touch '{}'", ran.display())])?;
    repo.git(["config", "core.excludesFile", "~/not there"])?;
    let git = run_in(&repo)?;
    git.checkout_worktree(eval(1), &git.user_repo().head)?;
    git.apply_to_worktree(eval(1), A_TO_B)?;
    git.commit_staged(eval(1), &note("x")?)?;
    git.user_repo().dirty_paths()?;
    git.discard_leftover(worktree(eval(1)), 1)?;
    git.discard_leftover(branch(eval(1)), 1)?;
    assert!(!ran.exists(), "{}", fs::read_to_string(&ran)?);
    Ok(())
}

#[test]
fn submodules_are_seen_and_left_alone() -> Outcome {
    let (repo, module) = (files()?, files()?);
    let url = module.path().to_string_lossy();
    repo.git(["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "mod"])?;
    repo.commit("with a submodule")?;
    let git = run_in(&repo)?;
    assert!(git.user_repo().has_submodules);
    assert_eq!(git.user_repo().dirty_paths()?, Vec::<String>::new());
    git.checkout_worktree(eval(1), &git.user_repo().head)?;
    git.apply_to_worktree(eval(1), A_TO_B)?;
    assert_eq!(git.staged_paths(eval(1))?.len(), 1);
    git.commit_staged(eval(1), &note("x")?)?;
    git.discard_leftover(worktree(eval(1)), 1)?;
    assert!(!folder(&repo, eval(1)).exists());
    Ok(())
}

#[test]
fn a_linked_worktree_of_a_bare_repository_will_do() -> Outcome {
    let repo = files()?;
    let bare = repo.beside("bare.git");
    let from = repo.path().to_string_lossy().into_owned();
    repo.git(["clone", "--quiet", "--bare", &from, &bare.to_string_lossy()])?;
    let linked = repo.beside("linked");
    repo.git_in(&bare, &["worktree", "add", "--quiet", &linked.to_string_lossy()])?;
    let run_dir = linked.join(".treebeam/runs/r1");
    fs::create_dir_all(&run_dir)?;
    let user = open_repo_with(&linked, repo.variables())?;
    let git = GitRepo::new(user, &run_dir, "r1".parse()?)?;
    git.checkout_worktree(eval(1), &git.user_repo().head)?;
    assert_eq!(git.apply_to_worktree(eval(1), A_TO_B)?, ApplyResult::Cleanly);
    git.commit_staged(eval(1), &note("x")?)?;
    git.discard_leftover(worktree(eval(1)), 1)?;
    assert_eq!(git.user_repo().dirty_paths()?, Vec::<String>::new());
    Ok(())
}

#[test]
fn what_a_cut_off_checkout_left_is_cleared() -> Outcome {
    let repo = files()?;
    let git = run_in(&repo)?;
    let head = git.user_repo().head.clone();
    let admin = repo.path().join(".git/worktrees/tree-r1-e0001");
    // The folder is gone, the admin folder is gone, or both exist.
    git.checkout_worktree(eval(1), &head)?;
    fs::remove_dir_all(folder(&repo, eval(1)))?;
    run_in(&repo)?.checkout_worktree(eval(1), &head)?;
    fs::remove_dir_all(&admin)?;
    run_in(&repo)?.checkout_worktree(eval(1), &head)?;
    assert_eq!(repo.git(["worktree", "list"])?.lines().count(), 2);
    // Killed inside `worktree add`: git fails where it lists worktrees until the repository is
    // opened again.
    fs::write(admin.join("commondir"), "")?;
    assert!(repo.git(["worktree", "list"]).is_err());
    let git = run_in(&repo)?;
    assert!(repo.git(["worktree", "list"]).is_ok() && !admin.exists());
    git.checkout_worktree(eval(1), &head)?;
    fs::write(admin.join("gitdir"), "")?;
    git.discard_leftover(worktree(eval(1)), 1)?;
    assert!(!admin.exists() && !folder(&repo, eval(1)).exists());
    // The worktree of another owner is not ours to remove.
    repo.git(["worktree", "add", "--quiet", "--detach", "../tree-r1-e0001"])?;
    fs::remove_dir_all(repo.beside("tree-r1-e0001"))?;
    git.checkout_worktree(eval(1), &head)?;
    git.discard_leftover(worktree(eval(1)), 1)?;
    assert!(admin.exists());
    Ok(())
}

#[test]
#[cfg(unix)]
fn what_git_had_hardly_begun_goes_when_it_is_old() -> Outcome {
    let repo = files()?;
    let admin = repo.path().join(".git/worktrees/0001");
    fs::create_dir_all(&admin)?;
    fs::write(admin.join("locked"), "")?;
    opened(&repo)?;
    assert!(admin.exists(), "somebody may be at it");
    let old = std::time::SystemTime::now() - std::time::Duration::from_mins(2);
    fs::File::open(&admin)?.set_modified(old)?;
    opened(&repo)?;
    assert!(!admin.exists());
    Ok(())
}

#[test]
fn a_branch_that_somebody_is_on_is_not_removed() -> Outcome {
    let repo = files()?;
    let git = run_in(&repo)?;
    git.set_place_ref(eval(1), &git.user_repo().head)?;
    repo.git(["checkout", "--quiet", "tree/r1/e0001"])?;
    let error = git.discard_leftover(branch(eval(1)), 1).err().ok_or("removed")?;
    assert_eq!(error.to_string(), "the branch `tree/r1/e0001` is checked out");
    repo.git(["checkout", "--quiet", "main"])?;
    git.discard_leftover(branch(eval(1)), 1)?;
    assert_eq!(git.list_refs()?, []);
    Ok(())
}

#[test]
fn failures_say_what_where_why_and_what_now() -> Outcome {
    let repo = files()?;
    let git = run_in(&repo)?;
    let head = git.user_repo().head.clone();
    repo.git(["branch", "tree"])?;
    let error = git.set_place_ref(eval(1), &head).err().ok_or("kept")?;
    assert_eq!(error.to_string(), "`git update-ref` for e0001 failed");
    assert!(error.hint.as_deref().is_some_and(|hint| hint.contains("git branch -m tree")));
    assert!(error.cause.is_some_and(|cause| cause.to_string().starts_with("fatal: ")));
    git.checkout_worktree(eval(1), &head)?;
    fs::write(repo.path().join(".git/worktrees/tree-r1-e0001/index.lock"), "")?;
    let error = git.apply_to_worktree(eval(1), A_TO_B).err().ok_or("applied")?;
    assert!(error.hint.is_some_and(|hint| hint.contains("lock file")));
    let missing: Commit = "0123456789012345678901234567890123456789".parse()?;
    assert!(git.checkout_worktree(eval(2), &missing).is_err());
    assert!(!folder(&repo, eval(2)).exists());
    assert!(git.apply_to_worktree(eval(3), A_TO_B).is_err(), "there is no such worktree");
    Ok(())
}

#[test]
fn many_at_once_do_not_disturb_each_other() -> Outcome {
    let repo = files()?;
    let git = run_in(&repo)?;
    let before = users(&repo)?;
    let head = git.user_repo().head.clone();
    let cycle = |thread: u32| -> Result<(), String> {
        for round in 0..10 {
            let place = eval(1 + thread * 10 + round);
            let all = || -> Outcome {
                git.checkout_worktree(place, &head)?;
                assert_eq!(git.apply_to_worktree(place, A_TO_B)?, ApplyResult::Cleanly);
                git.commit_staged(place, &note(&format!("{place}"))?)?;
                git.discard_leftover(worktree(place), 1)?;
                Ok(git.discard_leftover(branch(place), 1)?)
            };
            all().map_err(|error| format!("{place}: {error} {:?}", error.source()))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|thread| scope.spawn(move || cycle(thread))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or(Err("panicked".into())))
    })?;
    assert_eq!(git.list_refs()?, []);
    assert_eq!(repo.git(["worktree", "list"])?.lines().count(), 1);
    assert_eq!(users(&repo)?, before);
    Ok(())
}

#[test]
#[cfg(unix)]
fn an_eval_takes_few_git_calls() -> Outcome {
    let repo = files()?;
    let (bin, log) = (repo.beside("bin"), repo.beside("log"));
    let path = std::env::var("PATH")?;
    fs::create_dir(&bin)?;
    let counting =
        format!("#!/bin/sh\necho >> '{}'\nPATH='{path}' exec git \"$@\"\n", log.display());
    script(&bin.join("git"), &counting)?;
    let calls = || fs::read_to_string(&log).map_or(0, |log| log.lines().count());
    let mut variables = repo.variables();
    variables.retain(|(name, _)| name != "PATH");
    variables.push(("PATH".into(), bin.into_os_string()));
    fs::create_dir_all(run_dir(&repo))?;
    let git =
        GitRepo::new(open_repo_with(repo.path(), variables)?, &run_dir(&repo), "r1".parse()?)?;
    assert_eq!(calls(), 4);
    git.checkout_worktree(eval(1), &git.user_repo().head)?;
    git.apply_to_worktree(eval(1), A_TO_B)?;
    git.staged_paths(eval(1))?;
    git.commit_staged(eval(1), &note("x")?)?;
    git.discard_leftover(worktree(eval(1)), 1)?;
    git.discard_leftover(branch(eval(1)), 1)?;
    assert_eq!(calls(), 4 + 7);
    Ok(())
}
