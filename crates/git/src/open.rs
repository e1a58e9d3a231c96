//! Finds and checks the user's repository. It only reads, but for removing what an interrupted `git
//! worktree add` of treebeam's left behind: git fails wherever it meets that.

use super::admin;
use super::call::{GitEnvironment, GitProgram};
use super::error_text::GitErrorText;
use super::identity::{GitIdentity, parse_filter_names};
use super::packed_refs::PackedRefs;
use jiff::Timestamp;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use treebeam_core::id::Commit;
use treebeam_process::ChildInput;
use treebeam_run::port::PortError;

/// Oldest usable version of git, the first with `--attr-source`.
const MIN_GIT_VERSION: (u32, u32) = (2, 41);

/// Reason why a repository cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Git is not installed.
    #[error("git was not found on `PATH`")]
    GitMissing,
    /// Git is too old.
    #[error("git {found} is too old: {}.{} or newer is needed", MIN_GIT_VERSION.0, MIN_GIT_VERSION.1)]
    GitTooOld {
        /// Version of the installed git.
        found: String,
    },
    /// Neither the folder nor one above it is a repository.
    #[error("`{dir}` is not in a git repository")]
    NotARepository {
        /// Folder where the search began.
        dir: String,
    },
    /// The repository has no checkout.
    #[error("`{dir}` is a bare git repository")]
    Bare {
        /// Folder that was given.
        dir: String,
    },
    /// The repository has no commit.
    #[error("the git repository of `{dir}` has no commit yet")]
    NoCommits {
        /// Folder that was given.
        dir: String,
    },
    /// The checked out commit is missing.
    #[error("the commit {commit} that is checked out in `{dir}` is missing from its repository")]
    HeadMissing {
        /// Folder that was given.
        dir: String,
        /// Missing commit.
        commit: Commit,
    },
    /// A path is not UTF-8, so it cannot be written into a file as text.
    #[error("`{dir}` lies at a path that is not UTF-8")]
    NotUtf8 {
        /// Path, as well as it can be shown.
        dir: String,
    },
    /// Git could not be run, or gave an unexpected answer.
    #[error("git could not be asked about `{dir}`")]
    Unanswered {
        /// Folder that was given.
        dir: String,
        /// Underlying error.
        #[source]
        cause: PortError,
    },
    /// No repository could be made.
    #[error("git cannot make a repository of `{dir}`")]
    Unmade {
        /// Folder that was to become a repository.
        dir: String,
        /// Underlying error.
        #[source]
        cause: PortError,
    },
    /// Git refused for another reason.
    #[error("git cannot use the repository of `{dir}`")]
    Refused {
        /// Folder that was given.
        dir: String,
        /// Git's error text.
        #[source]
        said: GitErrorText,
    },
}

impl OpenError {
    /// Returns advice for the user.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::GitMissing => "install git, or add its folder to `PATH`",
            Self::GitTooOld { .. } => "install a newer git",
            Self::NotARepository { .. } => {
                "change to your repository, name it with `-C DIR`, or make one with `git init`"
            }
            Self::Bare { .. } => "run treebeam in a clone or a worktree of it",
            Self::NoCommits { .. } => "commit first: `git add -A && git commit`",
            Self::HeadMissing { .. } => {
                "see what `git fsck` says; `git fetch` brings back what a remote has, or check out a commit that is there"
            }
            Self::NotUtf8 { .. } => "move the repository to a path of ordinary characters",
            Self::Unmade { .. } => "see whether `git init` works there",
            Self::Unanswered { .. } | Self::Refused { .. } => {
                "see whether `git status` works there"
            }
        }
    }
}

/// The user's repository, with everything that was read when it was opened.
#[derive(Clone, Debug)]
pub struct UserRepo {
    /// Top folder of the checkout.
    pub toplevel: PathBuf,
    /// Git folder that all worktrees share.
    pub common_dir: PathBuf,
    /// Checked out commit.
    pub head: Commit,
    /// Committer date of the checked out commit.
    pub head_time: Timestamp,
    /// True if the checked out commit has submodules.
    pub has_submodules: bool,
    /// Author and committer of treebeam's commits.
    pub identity: GitIdentity,
    pub(super) git: GitProgram,
    /// Waiting for the lock of the packed refs, shared by all runs of this process.
    pub(super) packed_refs: Arc<PackedRefs>,
}

/// Finds the repository that contains `dir`, as the user's own git would.
///
/// # Errors
/// When no usable repository is found.
pub fn open_repo(dir: &Path) -> Result<UserRepo, OpenError> {
    open_repo_with(dir, std::env::vars_os())
}

/// Finds the repository that contains `dir`, with these environment variables.
///
/// # Errors
/// When no usable repository is found.
pub fn open_repo_with(
    dir: &Path,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<UserRepo, OpenError> {
    let git = GitProgram::find(GitEnvironment::new(variables)).ok_or(OpenError::GitMissing)?;
    let shown = dir.display().to_string();
    if !dir.is_dir() {
        return Err(OpenError::NotARepository { dir: shown });
    }
    let asked = OpenQueries { git, dir, shown };
    asked.check_version()?;
    let (common_dir, toplevel) = asked.query_folders()?;
    // If something cannot be repaired, git's next call fails with its own error text.
    drop(admin::remove_half_made(&common_dir));
    let (head, head_time, has_submodules) = asked.query_head()?;
    let (identity, filters) = asked.query_settings()?;
    let git = asked.git.without_filters(filters);
    let packed_refs = Arc::default();
    Ok(UserRepo {
        toplevel,
        common_dir,
        head,
        head_time,
        has_submodules,
        identity,
        git,
        packed_refs,
    })
}

/// Finds a usable git for a folder that is no repository yet.
pub(super) fn find_usable_git(dir: &Path) -> Result<GitProgram, OpenError> {
    let git =
        GitProgram::find(GitEnvironment::new(std::env::vars_os())).ok_or(OpenError::GitMissing)?;
    let asked = OpenQueries { git, dir, shown: dir.display().to_string() };
    asked.check_version()?;
    Ok(asked.git)
}

/// The git queries that open a repository.
struct OpenQueries<'a> {
    git: GitProgram,
    dir: &'a Path,
    shown: String,
}

impl OpenQueries<'_> {
    fn shown_dir(&self) -> String {
        self.shown.clone()
    }

    fn unanswered_error(&self) -> impl FnOnce(PortError) -> OpenError {
        let dir = self.shown_dir();
        |cause| OpenError::Unanswered { dir, cause }
    }

    fn check_version(&self) -> Result<(), OpenError> {
        let answer = self
            .git
            .user_call(self.dir, &["version"])
            .run_checked()
            .map_err(self.unanswered_error())?;
        let text = answer.kept_text();
        let found = text.trim().trim_start_matches("git version ").to_owned();
        let mut numbers = found.split('.').map_while(|part| part.parse().ok());
        match (numbers.next(), numbers.next()) {
            (Some(major), Some(minor)) if (major, minor) >= MIN_GIT_VERSION => Ok(()),
            _ => Err(OpenError::GitTooOld { found }),
        }
    }

    /// Returns the common git folder and the top of the checkout.
    fn query_folders(&self) -> Result<(PathBuf, PathBuf), OpenError> {
        let question = [
            "rev-parse",
            "--is-bare-repository",
            "--path-format=absolute",
            "--git-common-dir",
            "--show-toplevel",
        ];
        let answer =
            self.git.user_call(self.dir, &question).run().map_err(self.unanswered_error())?;
        let not_utf8 = |_| OpenError::NotUtf8 { dir: self.shown_dir() };
        let text = std::str::from_utf8(&answer.stdout.bytes).map_err(not_utf8)?;
        let lines: Vec<&str> = text.lines().collect();
        match (answer.code, lines.as_slice()) {
            (Some(0), ["false", common, top]) => {
                Ok((self.real_path(common)?, self.real_path(top)?))
            }
            (_, ["true", ..]) => Err(OpenError::Bare { dir: self.shown_dir() }),
            _ if answer.stderr.contains("not a git repository") => {
                Err(OpenError::NotARepository { dir: self.shown_dir() })
            }
            _ => Err(OpenError::Refused { dir: self.shown_dir(), said: answer.error_text() }),
        }
    }

    fn real_path(&self, path: &str) -> Result<PathBuf, OpenError> {
        super::paths::real_path(Path::new(path)).map(PathBuf::from).map_err(self.unanswered_error())
    }

    /// Returns the checked out commit, its time, and whether it has submodules.
    fn query_head(&self) -> Result<(Commit, Timestamp, bool), OpenError> {
        let question = ChildInput::from_bytes(b"info HEAD:.gitmodules\ncontents HEAD\n".to_vec());
        let call = self.git.user_call(self.dir, &["cat-file", "--batch-command"]).input(question);
        let answer = call.run_checked().map_err(self.unanswered_error())?;
        let text = answer.kept_text();
        let mut lines = text.lines();
        let has_submodules = lines.next().is_some_and(|line| !line.ends_with(" missing"));
        let head = lines.next().filter(|line| !line.ends_with(" missing"));
        let Some(head) = head else { return Err(self.missing_head_error()) };
        let odd = || OpenError::Refused { dir: self.shown_dir(), said: answer.error_text() };
        let commit = head.split(' ').next().and_then(|name| name.parse().ok()).ok_or_else(odd)?;
        let time =
            lines.find_map(|line| line.strip_prefix("committer ")).and_then(parse_commit_time);
        Ok((commit, time.ok_or_else(odd)?, has_submodules))
    }

    /// Explains why the checked out commit cannot be read.
    fn missing_head_error(&self) -> OpenError {
        let dir = self.shown_dir();
        let name = self.git.user_call(self.dir, &["rev-parse", "--verify", "--quiet", "HEAD"]);
        match name.run() {
            Err(cause) => OpenError::Unanswered { dir, cause },
            Ok(answer) => match answer.kept_text().trim().parse() {
                Ok(commit) if answer.code == Some(0) => OpenError::HeadMissing { dir, commit },
                Ok(_) | Err(_) => OpenError::NoCommits { dir },
            },
        }
    }

    /// Returns the committer's identity and the filters that must not run.
    fn query_settings(&self) -> Result<(GitIdentity, Vec<String>), OpenError> {
        let call = self.git.user_call(self.dir, &GitIdentity::CONFIG_QUERY).keep_stdout(1 << 20);
        let answer = call.run().map_err(self.unanswered_error())?;
        let filters = parse_filter_names(&answer).map_err(self.unanswered_error())?;
        Ok((GitIdentity::find(&answer, self.git.environment()), filters))
    }
}

/// Returns the time in `Name <email> 1700000000 +0100`.
fn parse_commit_time(committer: &str) -> Option<Timestamp> {
    let seconds = committer.rsplit(' ').nth(1)?.parse().ok()?;
    Timestamp::from_second(seconds).ok()
}

/// Paths at the top of the checkout that treebeam itself asks users to create.
const TREEBEAM_FILES: [&str; 4] = ["treebeam.toml", ".treebeam", ".treebeam/", ".env"];

impl UserRepo {
    /// Resolves a commit by name: an id, a branch, a tag, or anything else that git understands.
    ///
    /// # Errors
    /// When git fails.
    pub fn find_commit(&self, name: &str) -> Result<Option<Commit>, PortError> {
        let name = format!("{name}^{{commit}}");
        let question = ["rev-parse", "--verify", "--quiet", "--end-of-options", &name];
        let answer = self.git.user_call(&self.toplevel, &question).run()?;
        Ok(answer.kept_text().trim().parse().ok().filter(|_| answer.code == Some(0)))
    }

    /// Returns the changed and untracked paths of the user's checkout, as the user's own `git
    /// status` lists them, without `treebeam.toml`, `.treebeam/` and `.env`. A very long list is
    /// truncated.
    ///
    /// # Errors
    /// When git fails.
    pub fn dirty_paths(&self) -> Result<Vec<String>, PortError> {
        self.dirty_paths_except(&[])
    }

    /// Returns [`Self::dirty_paths`] without these files, named from the top of the checkout.
    ///
    /// # Errors
    /// When git fails.
    pub fn dirty_paths_except(&self, files: &[String]) -> Result<Vec<String>, PortError> {
        let question = [
            "status",
            "--porcelain=v1",
            "-z",
            "--untracked-files=normal",
            "--no-renames",
            "--",
            ".",
        ];
        let without: Vec<String> =
            files.iter().map(|file| format!(":(exclude,top,literal){file}")).collect();
        let question: Vec<&str> =
            question.into_iter().chain(without.iter().map(String::as_str)).collect();
        let answer =
            self.git.user_call(&self.toplevel, &question).keep_stdout(1 << 20).run_checked()?;
        let text = answer.kept_text();
        let whole = text.rsplit_once('\0').map_or("", |(whole, _)| whole);
        let path = |entry: &str| entry.get(3..).map(str::to_owned);
        Ok(whole.split('\0').filter_map(path).filter(|path| !is_treebeam_file(path)).collect())
    }
}

/// Returns true if a path does not count as a change of the user's.
pub(super) fn is_treebeam_file(path: &str) -> bool {
    TREEBEAM_FILES.contains(&path) || path.starts_with(".treebeam/")
}
