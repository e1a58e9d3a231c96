//! Tests the detection of changed files in a worktree, whatever was done to the worktree.

#![cfg(unix)]

use std::error::Error;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use treebeam_core::id::{CodePlace, Commit, EvalId};
use treebeam_core::protect::ProtectedPaths;
use treebeam_git::{GitRepo, open_repo_with};
use treebeam_run::port::{Repo as _, TouchedFiles};
use treebeam_testkit::repo::TempRepo;

type Outcome = Result<(), Box<dyn Error>>;

const PLACE: CodePlace = CodePlace::Candidate(EvalId::FIRST);
const ODD: &str = "tests/a\n\"b\".py";

struct Bench {
    repo: TempRepo,
    git: GitRepo,
    commit: Commit,
}

impl Bench {
    fn new() -> Result<Self, Box<dyn Error>> {
        let repo = TempRepo::with(&[
            (".gitattributes", "*.txt text eol=crlf\n*.auto text=auto\n"),
            ("model.py", "x\n"),
            ("tests/check.py", "assert True\n"),
            ("tests/deep/er.py", "assert 1\n"),
            (ODD, "assert 2\n"),
            ("tests/lines.txt", "a\nb\n"),
        ])?;
        symlink("check.py", repo.path().join("tests/link.py"))?;
        repo.commit("a link")?;
        // Line ends that git would not commit today: the file still equals its commit.
        fs::write(repo.path().join("tests/old.auto"), "a\r\nb\r\n")?;
        repo.git(["-c", "core.attributesFile=/dev/null", "add", "--renormalize", "."])?;
        let blob = repo.git(["hash-object", "-w", "--no-filters", "tests/old.auto"])?;
        let entry = format!("100644,{},tests/old.auto", blob.trim());
        repo.git(["update-index", "--add", "--cacheinfo", &entry])?;
        repo.git(["commit", "--quiet", "-m", "old line ends"])?;
        let run_dir = repo.path().join(".treebeam/runs/r1");
        fs::create_dir_all(&run_dir)?;
        let user = open_repo_with(repo.path(), repo.variables())?;
        let commit = user.head.clone();
        let git = GitRepo::new(user, &run_dir, "r1".parse()?)?;
        Ok(Self { repo, git, commit })
    }

    fn worktree(&self) -> PathBuf {
        self.repo.path().join(".treebeam/runs/r1").join(PLACE.worktree_path().as_str())
    }

    /// Returns the protected files that count as touched after a sabotage of a fresh worktree.
    fn after(
        &self,
        sabotage: impl FnOnce(&Path) -> std::io::Result<()>,
    ) -> Result<Vec<String>, Box<dyn Error>> {
        Ok(self.all_after(sabotage)?.protected)
    }

    /// Returns all files that count as touched after a sabotage of a fresh worktree. A process that
    /// did not make the worktree sees the same.
    fn all_after(
        &self,
        sabotage: impl FnOnce(&Path) -> std::io::Result<()>,
    ) -> Result<TouchedFiles, Box<dyn Error>> {
        self.git.checkout_worktree(PLACE, &self.commit)?;
        sabotage(&self.worktree())?;
        let protected = ProtectedPaths::new(&["tests/**".to_owned()])?;
        let touched = self.git.find_touched_files(PLACE, &self.commit, &protected)?;
        let user = open_repo_with(self.repo.path(), self.repo.variables())?;
        let later = GitRepo::new(user, &self.repo.path().join(".treebeam/runs/r1"), "r1".parse()?)?;
        assert_eq!(touched, later.find_touched_files(PLACE, &self.commit, &protected)?);
        Ok(touched)
    }
}

#[test]
fn what_is_not_protected_or_not_changed_is_not_touched() -> Outcome {
    let bench = Bench::new()?;
    let lines = |folder: &Path| fs::read(folder.join("tests/lines.txt"));
    assert_eq!(bench.after(|_| Ok(()))?, Vec::<String>::new());
    assert_eq!(lines(&bench.worktree())?, b"a\r\nb\r\n", "as its attributes want it");
    let harmless = bench.after(|folder| {
        fs::write(folder.join("model.py"), "y\n")?;
        fs::write(folder.join("tests/new.py"), "a cache\n")?;
        fs::write(folder.join("tests/check.py"), "assert True\n")?;
        fs::remove_file(folder.join(".gitattributes"))
    })?;
    assert_eq!(harmless, Vec::<String>::new());
    Ok(())
}

#[test]
fn what_is_changed_is_named_whatever_hides_it() -> Outcome {
    let bench = Bench::new()?;
    let check =
        |name: &str, expect: &[&str], sabotage: &dyn Fn(&Path) -> std::io::Result<()>| -> Outcome {
            assert_eq!(bench.after(sabotage)?, expect, "{name}");
            Ok(())
        };
    let one = &["tests/check.py"];
    check("another text", one, &|at| fs::write(at.join("tests/check.py"), "assert 1\n"))?;
    check("gone", one, &|at| fs::remove_file(at.join("tests/check.py")))?;
    check("another line", &["tests/lines.txt"], &|at| {
        fs::write(at.join("tests/lines.txt"), "a\r\nc\r\n")
    })?;
    check("of an odd name", &[ODD], &|at| fs::write(at.join(ODD), "assert 3\n"))?;
    check("another link", &["tests/link.py"], &|at| {
        fs::remove_file(at.join("tests/link.py"))?;
        symlink("deep/er.py", at.join("tests/link.py"))
    })?;
    check("a link to the same text", one, &|at| {
        fs::rename(at.join("tests/check.py"), at.join("same.py"))?;
        symlink("../same.py", at.join("tests/check.py"))
    })?;
    check("a folder that is a link to the same", &["tests/deep/er.py"], &|at| {
        fs::rename(at.join("tests/deep"), at.join("deep"))?;
        symlink("../deep", at.join("tests/deep"))
    })?;
    check("a folder", one, &|at| {
        fs::remove_file(at.join("tests/check.py"))?;
        fs::create_dir(at.join("tests/check.py"))
    })?;
    check("without a `.git`", one, &|at| {
        fs::remove_file(at.join(".git"))?;
        fs::write(at.join("tests/check.py"), "assert 1\n")
    })?;
    let other = TempRepo::with(&[("tests/check.py", "assert 1\n")])?;
    check("with a `.git` of somebody who has it so", one, &|at| {
        fs::write(at.join(".git"), format!("gitdir: {}\n", other.path().join(".git").display()))?;
        fs::write(at.join("tests/check.py"), "assert 1\n")
    })?;
    check("with attributes that hide it", &["tests/lines.txt"], &|at| {
        fs::write(at.join(".gitattributes"), "* filter=none -text\n")?;
        fs::write(at.join("tests/lines.txt"), "a\r\nb\n\n")
    })?;
    let all = [
        ODD,
        "tests/check.py",
        "tests/deep/er.py",
        "tests/lines.txt",
        "tests/link.py",
        "tests/old.auto",
    ];
    check("no worktree at all", &all, &|at| fs::remove_dir_all(at))?;
    check("a link to another one", &all, &|at| {
        fs::rename(at, at.with_extension("away"))?;
        symlink(at.with_extension("away"), at)
    })?;
    Ok(())
}

/// Files that are not protected are compared too.
#[test]
fn all_tracked_files_are_compared_with_the_commit() -> Outcome {
    let bench = Bench::new()?;
    let check =
        |name: &str, expect: &[&str], sabotage: &dyn Fn(&Path) -> std::io::Result<()>| -> Outcome {
            let touched = bench.all_after(sabotage)?;
            assert_eq!(
                (touched.protected, touched.other),
                (Vec::new(), expect.iter().copied().map(str::to_owned).collect()),
                "{name}"
            );
            Ok(())
        };
    let model = &["model.py"];
    check("nothing", &[], &|_| Ok(()))?;
    check("the same text", &[], &|at| fs::write(at.join("model.py"), "x\n"))?;
    check("new files", &[], &|at| fs::write(at.join("new.py"), "x\n"))?;
    check("another text", model, &|at| fs::write(at.join("model.py"), "y\n"))?;
    check("gone", model, &|at| fs::remove_file(at.join("model.py")))?;
    check("attributes", &[".gitattributes"], &|at| fs::remove_file(at.join(".gitattributes")))?;
    check("another text with the time of before", model, &|at| {
        let path = at.join("model.py");
        let then = fs::metadata(&path)?.modified()?;
        fs::write(&path, "y\n")?;
        fs::File::options().append(true).open(&path)?.set_modified(then)
    })?;
    check("a link", model, &|at| {
        fs::rename(at.join("model.py"), at.join("same.py"))?;
        symlink("same.py", at.join("model.py"))
    })?;
    check("with an index that says otherwise", model, &|at| {
        fs::write(at.join("model.py"), "y\n")?;
        let add = bench.repo.git_in(at, &["add", "model.py"]);
        add.map(drop).map_err(std::io::Error::other)
    })?;
    check("without a `.git`", model, &|at| {
        fs::write(at.join("model.py"), "y\n")?;
        fs::remove_file(at.join(".git"))
    })?;
    Ok(())
}

/// An unreadable file fails its eval by name and ends no run. Where tests run as root, every file
/// can be read.
#[test]
fn a_file_that_cannot_be_read_counts_as_changed() -> Outcome {
    let bench = Bench::new()?;
    let files = ["model.py", "tests/check.py"];
    let touched = bench.all_after(|at| {
        let unreadable = || fs::Permissions::from_mode(0o000);
        files.iter().try_for_each(|file| fs::set_permissions(at.join(file), unreadable()))
    })?;
    let is_root = fs::File::open(bench.worktree().join("model.py")).is_ok();
    let [other, protected] = files.map(|file| vec![file.to_owned()]);
    let expect = if is_root { TouchedFiles::default() } else { TouchedFiles { protected, other } };
    assert_eq!(touched, expect);
    Ok(())
}

#[test]
fn files_are_restored_as_they_were_committed() -> Outcome {
    let bench = Bench::new()?;
    let touched = bench.all_after(|at| {
        fs::remove_file(at.join("model.py"))?;
        fs::create_dir(at.join("model.py"))?;
        fs::write(at.join("tests/lines.txt"), "other\n")
    })?;
    assert_eq!(touched.other, ["model.py"]);
    let paths = ["model.py", "tests/lines.txt"].map(str::to_owned);
    bench.git.restore_paths(PLACE, &bench.commit, &paths)?;
    assert_eq!(fs::read(bench.worktree().join("model.py"))?, b"x\n");
    assert_eq!(fs::read(bench.worktree().join("tests/lines.txt"))?, b"a\r\nb\r\n");
    let protected = ProtectedPaths::new(&["tests/**".to_owned()])?;
    assert_eq!(
        bench.git.find_touched_files(PLACE, &bench.commit, &protected)?,
        TouchedFiles::default()
    );
    Ok(())
}
