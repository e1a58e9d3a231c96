//! Tests the switch of the user's own checkout from one commit to another. [`checkout`] tests
//! results and refusals, [`kill`] that the next switch completes one that was interrupted anywhere.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod checkout;
#[cfg(target_os = "linux")]
mod kill;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use treebeam_core::id::Commit;
use treebeam_git::{UserRepo, open_repo_with};
use treebeam_testkit::repo::TempRepo;

/// A repository on `main` at the first of two commits, whose difference has every kind of change.
pub(crate) struct Ground {
    pub(crate) repo: TempRepo,
    pub(crate) from: Commit,
    pub(crate) to: Commit,
}

impl Ground {
    pub(crate) fn new() -> Self {
        let files = [
            ("changed.txt", "old\n"),
            ("same.txt", "same\n"),
            ("gone/deep/file", "old\n"),
            ("with data/gone", "old\n"),
            ("becomes folder", "old\n"),
            ("becomes file/a", "old\n"),
            ("becomes file/b/c", "old\n"),
            ("run.sh", "#!/bin/sh\n"),
            ("link", "a file\n"),
            (".gitignore", "*.data\n"),
        ];
        let repo = TempRepo::with(&files).unwrap();
        let from = repo.git(["rev-parse", "HEAD"]).unwrap().parse().unwrap();
        let path = |name: &str| repo.path().join(name);
        repo.write("changed.txt", "new\n").unwrap();
        repo.write("new/é/file", "new\n").unwrap();
        for gone in ["gone", "with data", "becomes file"] {
            fs::remove_dir_all(path(gone)).unwrap();
        }
        for gone in ["becomes folder", "link"] {
            fs::remove_file(path(gone)).unwrap();
        }
        repo.write("becomes folder/x", "new\n").unwrap();
        repo.write("becomes file", "new\n").unwrap();
        fs::set_permissions(path("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("changed.txt", path("link")).unwrap();
        let to = repo.commit("second\n\nTreebeam-Run: r1").unwrap().parse().unwrap();
        repo.git(["reset", "--quiet", "--hard", "HEAD~"]).unwrap();
        repo.write("with data/my.data", "mine\n").unwrap();
        repo.write("my.data", "mine\n").unwrap();
        Self { repo, from, to }
    }

    pub(crate) fn user(&self) -> UserRepo {
        open_repo_with(self.repo.path(), self.repo.variables()).unwrap()
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.repo.path().join(path)).unwrap()
    }

    pub(crate) fn status(&self) -> String {
        self.repo.git(["status", "--porcelain", "--untracked-files=all"]).unwrap()
    }

    /// Checks that the checkout is wholly at this commit, that the user's files are kept, and that
    /// no temporary file is left.
    pub(crate) fn must_be_at(&self, commit: &Commit, what: &str) {
        assert_eq!(self.repo.git(["rev-parse", "HEAD"]).unwrap(), commit.as_str(), "{what}");
        assert_eq!(self.status(), "", "{what}");
        self.repo.git(["diff", "--quiet", "--no-ext-diff", "HEAD"]).unwrap();
        assert_eq!(self.repo.git(["rev-parse", "main"]).unwrap(), self.from.as_str(), "{what}");
        for data in ["with data/my.data", "my.data"] {
            assert_eq!(self.read(data), "mine\n", "{what}");
        }
        let git = self.repo.path().join(".git");
        let left =
            ["index.lock", "HEAD.lock", "treebeam.index", "treebeam.input", "treebeam.words"];
        let left: Vec<&str> = left.into_iter().filter(|name| git.join(name).exists()).collect();
        assert_eq!(left, [""; 0], "{what}");
        assert!(!self.repo.path().join(".treebeam").exists(), "{what}");
    }
}
