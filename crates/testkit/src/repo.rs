//! Creates git repositories for tests, by real git in a temporary folder.
//!
//! They do not depend on the machine's git configuration, and two of them made alike have the same
//! commits.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A repository, or a folder that is to become one.
#[derive(Debug)]
pub struct TempRepo {
    folder: TempDir,
    path: PathBuf,
}

impl TempRepo {
    /// Creates an empty folder at `name` in a fresh place; no repository yet.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn folder(name: &str) -> io::Result<Self> {
        Self::folder_in(tempfile::tempdir()?, name)
    }

    fn folder_in(folder: TempDir, name: &str) -> io::Result<Self> {
        let path = folder.path().canonicalize()?.join(name);
        fs::create_dir_all(&path)?;
        fs::create_dir_all(folder.path().join("home"))?;
        Ok(Self { folder, path })
    }

    /// Creates a repository without a commit.
    ///
    /// # Errors
    /// When git fails.
    pub fn empty() -> io::Result<Self> {
        let repo = Self::folder("repo")?;
        repo.git(["init", "--quiet", "--initial-branch=main"])?;
        Ok(repo)
    }

    /// Creates a repository with one commit of these files.
    ///
    /// # Errors
    /// When git fails.
    pub fn with(files: &[(&str, &str)]) -> io::Result<Self> {
        Self::empty()?.filled(files)
    }

    /// Creates a repository with one commit of these files below a folder, on another disk for
    /// example.
    ///
    /// # Errors
    /// When git fails.
    pub fn with_in(above: &Path, files: &[(&str, &str)]) -> io::Result<Self> {
        let repo = Self::folder_in(tempfile::tempdir_in(above)?, "repo")?;
        repo.git(["init", "--quiet", "--initial-branch=main"])?;
        repo.filled(files)
    }

    fn filled(self, files: &[(&str, &str)]) -> io::Result<Self> {
        for (path, text) in files {
            self.write(path, text)?;
        }
        self.commit("first")?;
        Ok(self)
    }

    /// Returns the path of the repository.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a path beside the repository, outside of it.
    #[must_use]
    pub fn beside(&self, name: &str) -> PathBuf {
        self.path.with_file_name(name)
    }

    /// Writes a file, and creates the folders above it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, path: &str, text: &str) -> io::Result<()> {
        let path = self.path.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&self.path))?;
        fs::write(path, text)
    }

    /// Commits all files, and returns the commit's name.
    ///
    /// # Errors
    /// When git fails.
    pub fn commit(&self, title: &str) -> io::Result<String> {
        self.git(["add", "--all"])?;
        self.git(["commit", "--quiet", "--allow-empty", "--message", title])?;
        self.git(["rev-parse", "HEAD"])
    }

    /// Runs git in the repository and returns its output.
    ///
    /// # Errors
    /// When it fails, with git's message.
    pub fn git<const N: usize>(&self, arguments: [&str; N]) -> io::Result<String> {
        self.git_in(&self.path, &arguments)
    }

    /// Runs git in another folder and returns its output.
    ///
    /// # Errors
    /// When it fails, with git's message.
    pub fn git_in(&self, folder: &Path, arguments: &[&str]) -> io::Result<String> {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(folder).env_clear().envs(self.variables());
        for (role, date) in [("AUTHOR", "@1700000000 +0000"), ("COMMITTER", "@1700000000 +0000")] {
            command.env(format!("GIT_{role}_NAME"), "Test").env(format!("GIT_{role}_DATE"), date);
            command.env(format!("GIT_{role}_EMAIL"), "test@example.org");
        }
        let output = command.output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        if output.status.success() {
            return Ok(text(&output.stdout));
        }
        Err(io::Error::other(format!("git {arguments:?}: {}", text(&output.stderr))))
    }

    /// Runs git in the repository while other processes commit and remove worktrees. Some of git's
    /// commands read all worktrees, and fail when one is removed at that very moment, also by
    /// `git worktree remove`; some cache which objects exist, and fail at a ref to a newer one.
    /// Such commands are repeated.
    ///
    /// # Errors
    /// When git fails for another reason, or again and again.
    pub fn git_beside(&self, arguments: &[&str]) -> io::Result<String> {
        const RACE_ERRORS: [&str; 3] = [
            "fatal: Invalid path",
            "/commondir: No such file or directory",
            "fatal: bad object refs/heads/tree/",
        ];
        let git = || self.git_in(self.path(), arguments);
        let own =
            |error: &io::Error| RACE_ERRORS.iter().any(|words| error.to_string().contains(words));
        let mut last = git();
        for _ in 0..3 {
            if !last.as_ref().is_err_and(own) {
                break;
            }
            last = git();
        }
        last
    }

    /// Returns the environment of a user with an empty home folder (`home` beside the repository)
    /// and no identity.
    #[must_use]
    pub fn variables(&self) -> Vec<(OsString, OsString)> {
        let inherited = ["PATH", "SYSTEMROOT", "TEMP", "TMP"];
        let kept =
            inherited.iter().filter_map(|name| Some(((*name).into(), std::env::var_os(name)?)));
        let home = self.home().into_os_string();
        let fixed =
            [("HOME", home.clone()), ("USERPROFILE", home), ("GIT_CONFIG_NOSYSTEM", "1".into())];
        kept.chain(fixed.map(|(name, value)| (name.into(), value))).collect()
    }

    /// Returns the home folder of [`Self::variables`].
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }
}

/// Creates a shell script that can be run at once. Another process writes it: while this one had it
/// open for writing, a child forked by another thread would have it open too, and running it would
/// fail.
///
/// # Errors
/// When it cannot be written.
#[cfg(unix)]
pub fn script(path: &Path, text: &str) -> io::Result<()> {
    let write = "printf %s \"$2\" > \"$1\" && chmod 755 \"$1\"";
    let mut shell = Command::new("sh");
    let written = shell.args(["-c", write, "sh"]).arg(path).arg(text).status()?;
    if written.success() { Ok(()) } else { Err(io::Error::other("the script was not written")) }
}

/// Creates a named pipe, on which opening for reading waits for a writer.
///
/// # Errors
/// When it cannot be created.
#[cfg(unix)]
pub fn pipe(path: &Path) -> io::Result<()> {
    let made = Command::new("mkfifo").arg(path).status()?;
    if made.success() { Ok(()) } else { Err(io::Error::other("the pipe was not made")) }
}
