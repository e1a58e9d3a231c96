//! Builds and runs one git command. It knows nothing of worktrees, refs or the meaning of an
//! answer.
//!
//! There are two kinds of calls. A *sealed* call gets its git folder and working tree explicitly
//! and reads no configuration but the repository's own: nothing that a candidate did to its folder
//! can redirect it. A *user* call sees what the user's own git would see, and only reads. Neither
//! runs a hook, a filter or any other configured command.

use super::error_text::{GitErrorText, hint_for, hint_for_signal};
use super::killed::{self, AbsentLocks, MAX_KILLED_TRIES};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;
use treebeam_process::free_space;
use treebeam_process::{CapturedOutput, ChildInput, ChildProgram, OutputLimits, ProcessError};
use treebeam_run::port::PortError;

/// Deadline of a git command; only a failed disk or network makes git take longer.
const GIT_CALL_TIMEOUT: Duration = Duration::from_mins(15);

/// Free space, in bytes, below which a failure of git is blamed on the full disk.
const LOW_DISK_BYTES: u64 = 1 << 20;

#[cfg(windows)]
pub(super) const NULL_DEVICE: &str = "NUL";
#[cfg(not(windows))]
pub(super) const NULL_DEVICE: &str = "/dev/null";

/// Variables that git cannot work without: paths of programs, the home and the temporary folder.
const NEEDED_VARIABLES: [&str; 18] = [
    "PATH",
    "HOME",
    "TMPDIR",
    "GIT_EXEC_PATH",
    "LD_LIBRARY_PATH",
    "USERPROFILE",
    "HOMEDRIVE",
    "HOMEPATH",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "WINDIR",
    "COMSPEC",
    "PATHEXT",
    "TEMP",
    "TMP",
];

/// Variables that decide what the user's own git sees, without those that redirect it (`GIT_DIR`).
const USER_VARIABLES: [&str; 6] = [
    "XDG_CONFIG_HOME",
    "USER",
    "USERNAME",
    "LOGNAME",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
];

/// Settings of every sealed call, which override the repository's own configuration.
const SEALED_SETTINGS: [&str; 23] = [
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.preloadIndex=false",
    "core.sparseCheckout=false",
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.longPaths=true",
    "core.quotePath=false",
    "core.logAllRefUpdates=false",
    "core.fsync=committed,loose-object,reference",
    "core.filesRefLockTimeout=10000",
    "core.packedRefsTimeout=10000",
    "index.threads=1",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "worktree.useRelativePaths=false",
    "commit.gpgSign=false",
    "i18n.commitEncoding=UTF-8",
    "advice.detachedHead=false",
    "apply.whitespace=nowarn",
    "color.ui=never",
];

/// Settings with a path as value, which are set to the null device.
const DISABLED_PATH_SETTINGS: [&str; 3] =
    ["core.hooksPath", "core.attributesFile", "core.excludesFile"];

/// Name of an environment variable that is set but empty, the value of every disabled filter.
const EMPTY_VARIABLE: &str = "TREEBEAM_NOTHING";
/// Configuration keys of a filter: its commands, and whether it must succeed.
const FILTER_KEYS: [&str; 4] = ["clean", "smudge", "process", "required"];

/// Environment variables with which the program was started.
#[derive(Clone, Debug)]
pub(super) struct GitEnvironment(Vec<(OsString, OsString)>);

impl GitEnvironment {
    pub(super) fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self(variables.into_iter().collect())
    }
    pub(super) fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.iter().find(|(key, _)| is_named(key, name)).map(|(_, value)| value.as_os_str())
    }
    fn pick_variables(&self, names: &[&str]) -> Vec<(OsString, OsString)> {
        let wanted = |key: &OsStr| names.iter().any(|name| is_named(key, name));
        self.0.iter().filter(|(key, _)| wanted(key)).cloned().collect()
    }
    fn config_variables(&self) -> impl Iterator<Item = (OsString, OsString)> {
        let chosen = |key: &OsStr| key.to_string_lossy().starts_with("GIT_CONFIG");
        self.0.iter().filter(move |(key, _)| chosen(key)).cloned()
    }
}

fn is_named(key: &OsStr, name: &str) -> bool {
    if cfg!(windows) { key.eq_ignore_ascii_case(name) } else { key == name }
}

/// Path of the git program, its environment and the filters that are disabled.
#[derive(Clone, Debug)]
pub(super) struct GitProgram {
    program: PathBuf,
    environment: GitEnvironment,
    filters: Vec<String>,
}

/// Git folder and working tree of a sealed call, both absolute; the call runs in the working tree.
#[derive(Clone, Debug)]
pub(super) struct GitTarget {
    pub(super) git_dir: String,
    pub(super) work_tree: String,
}

impl GitProgram {
    /// Finds git in the absolute folders of `PATH`; the meaning of a relative one would depend on
    /// where a call runs.
    pub(super) fn find(surroundings: GitEnvironment) -> Option<Self> {
        let name = format!("git{}", std::env::consts::EXE_SUFFIX);
        let path = surroundings.get("PATH")?.to_owned();
        let program = std::env::split_paths(&path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(&name))
            .find(|program| program.is_file())?;
        Some(Self { program, environment: surroundings, filters: Vec::new() })
    }

    pub(super) fn environment(&self) -> &GitEnvironment {
        &self.environment
    }

    /// Returns this program with these filters disabled: files then have the bytes of the commit.
    pub(super) fn without_filters(self, filters: Vec<String>) -> Self {
        Self { filters, ..self }
    }

    /// Returns the names of the disabled filters.
    pub(super) fn filters(&self) -> &[String] {
        &self.filters
    }

    /// Returns the arguments that disable the filters. A filter's name may hold any character,
    /// which `-c` cannot express.
    fn filter_overrides(&self) -> impl Iterator<Item = String> {
        let off = |name| {
            FILTER_KEYS.map(|key| format!("--config-env=filter.{name}.{key}={EMPTY_VARIABLE}"))
        };
        self.filters.iter().flat_map(off)
    }

    /// Builds a sealed call: explicit git folder and working tree, no configuration of the user.
    pub(super) fn sealed_call(&self, target: &GitTarget, arguments: &[&str]) -> GitCall {
        let nowhere = DISABLED_PATH_SETTINGS.iter().map(|name| format!("{name}={NULL_DEVICE}"));
        let settings = SEALED_SETTINGS.iter().map(|&setting| setting.to_owned()).chain(nowhere);
        let program = ChildProgram::new(&self.program, Path::new(&target.work_tree))
            .args(["--no-pager".to_owned(), format!("--git-dir={}", target.git_dir)])
            .args([format!("--work-tree={}", target.work_tree)])
            .args(settings.flat_map(|setting| ["-c".to_owned(), setting]))
            .args(self.filter_overrides())
            .envs(self.environment.pick_variables(&NEEDED_VARIABLES))
            .envs([
                ("GIT_CONFIG_NOSYSTEM", "1"),
                ("GIT_CONFIG_GLOBAL", NULL_DEVICE),
                ("GIT_ATTR_NOSYSTEM", "1"),
                ("GIT_CEILING_DIRECTORIES", &target.work_tree),
            ]);
        let locks = ["index.lock", "HEAD.lock"].map(|name| Path::new(&target.git_dir).join(name));
        GitCall::new(program, Path::new(&target.work_tree), arguments).with_locks(locks)
    }

    /// Builds a call in a folder that is no repository yet. It reads no configuration at all.
    pub(super) fn fresh_call(&self, folder: &Path, arguments: &[&str]) -> GitCall {
        let program = ChildProgram::new(&self.program, folder)
            .envs(self.environment.pick_variables(&NEEDED_VARIABLES))
            .envs([("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", NULL_DEVICE)]);
        GitCall::new(program, folder, arguments)
    }

    /// Builds a call that sees what the user's own git sees in `folder`, except hooks, filters and
    /// a file system monitor.
    pub(super) fn user_call(&self, folder: &Path, arguments: &[&str]) -> GitCall {
        let program = ChildProgram::new(&self.program, folder)
            .args(["--no-pager", "-c", "core.fsmonitor=false", "-c"])
            .args([format!("core.hooksPath={NULL_DEVICE}")])
            .args(self.filter_overrides())
            .envs(self.environment.pick_variables(&NEEDED_VARIABLES))
            .envs(self.environment.pick_variables(&USER_VARIABLES))
            .envs(self.environment.config_variables());
        GitCall::new(program, folder, arguments)
    }
}

/// A git command that is ready to run.
#[derive(Debug)]
pub(super) struct GitCall {
    program: ChildProgram,
    folder: PathBuf,
    what: String,
    /// Lock files that the command may create, and leave behind if it is killed.
    locks: Vec<PathBuf>,
    tries: u32,
}

impl GitCall {
    fn new(program: ChildProgram, folder: &Path, arguments: &[&str]) -> Self {
        let name = arguments.iter().find(|argument| !argument.starts_with('-'));
        // No lazy fetch: it would run commands from the remote's settings.
        let fixed = [
            ("LC_ALL", "C"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            (EMPTY_VARIABLE, ""),
        ];
        Self {
            program: program.args(arguments).envs(fixed).deadline(GIT_CALL_TIMEOUT),
            folder: folder.to_owned(),
            what: format!("`git {}`", name.unwrap_or(&"")),
            locks: Vec::new(),
            tries: MAX_KILLED_TRIES,
        }
    }
    /// Adds lock files that the command may create.
    pub(super) fn with_locks(mut self, locks: impl IntoIterator<Item = PathBuf>) -> Self {
        self.locks.extend(locks);
        self
    }
    /// Disables the repetition after a kill, for commands that cannot be repeated unchanged.
    pub(super) fn without_retry(mut self) -> Self {
        self.tries = 1;
        self
    }
    /// Names the subject of the command in messages, such as `e0012`.
    pub(super) fn with_subject(mut self, subject: impl std::fmt::Display) -> Self {
        self.what = format!("{} for {subject}", self.what);
        self
    }
    pub(super) fn input(mut self, input: ChildInput) -> Self {
        self.program = self.program.input(input);
        self
    }
    pub(super) fn envs<'a>(
        mut self,
        variables: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let variables: Vec<_> = variables.into_iter().collect();
        let index = variables.iter().filter(|(name, _)| *name == "GIT_INDEX_FILE");
        self.locks.extend(index.map(|(_, index)| PathBuf::from(format!("{index}.lock"))));
        self.program = self.program.envs(variables);
        self
    }
    /// Sets how many bytes of standard output are kept.
    pub(super) fn keep_stdout(mut self, stdout: usize) -> Self {
        self.program = self.program.keep_output(OutputLimits { stdout, stderr: 64 << 10 });
        self
    }

    /// Runs the command, whatever its exit code. If git is killed, removes the locks that it left
    /// and runs it again.
    pub(super) fn run(self) -> Result<GitAnswer, PortError> {
        let unfinished = |what: &str| PortError::new(format!("{what} did not finish"));
        for tries_left in (0..self.tries).rev() {
            let absent = AbsentLocks::note(&self.locks);
            let answer =
                self.run_once().map_err(|error| unfinished(&self.what).with_cause(error))?;
            if !answer.was_killed() {
                return Ok(answer);
            }
            absent.remove_left().map_err(|error| unfinished(&self.what).with_cause(error))?;
            if tries_left == 0 {
                return Ok(answer);
            }
        }
        Err(unfinished(&self.what))
    }

    fn run_once(&self) -> Result<GitAnswer, ProcessError> {
        let Self { program, folder, what, .. } = self;
        let program = program
            .duplicate()
            .map_err(|source| ProcessError::Start { program: what.clone(), source })?;
        let ended = program.run()?;
        Ok(GitAnswer {
            what: what.clone(),
            folder: folder.clone(),
            code: ended.status.code(),
            signal: killed::ending_signal(ended.status),
            stderr: String::from_utf8_lossy(&ended.stderr.bytes).into_owned(),
            stdout: ended.stdout,
        })
    }

    /// Runs the command and returns an error unless it succeeds.
    pub(super) fn run_checked(self) -> Result<GitAnswer, PortError> {
        let answer = self.run()?;
        if answer.code == Some(0) { Ok(answer) } else { Err(answer.to_error()) }
    }
}

/// The result of a git command: exit code or signal, and output.
#[derive(Debug)]
pub(super) struct GitAnswer {
    what: String,
    /// Folder that the command ran in.
    folder: PathBuf,
    pub(super) code: Option<i32>,
    /// Signal that ended git.
    signal: Option<i32>,
    pub(super) stdout: CapturedOutput,
    pub(super) stderr: String,
}

impl GitAnswer {
    /// Returns true if git was killed before it finished.
    pub(super) fn was_killed(&self) -> bool {
        self.signal.is_some_and(killed::is_kill)
    }
    /// Returns the complete output as text; truncated output is an error.
    pub(super) fn full_text(&self) -> Result<String, PortError> {
        if self.stdout.dropped > 0 {
            let kept = self.stdout.bytes.len();
            return Err(PortError::new(format!("{} said more than {kept} bytes", self.what)));
        }
        Ok(self.kept_text())
    }
    /// Returns the kept part of the output as text.
    pub(super) fn kept_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout.bytes).into_owned()
    }
    /// Parses the output, a single word, as a `T`.
    pub(super) fn parse_word<T: std::str::FromStr>(&self) -> Result<T, PortError> {
        let text = self.full_text()?;
        let odd = || PortError::new(format!("{} said something unexpected", self.what));
        text.trim().parse().map_err(|_| odd().with_cause(self.error_text()))
    }
    pub(super) fn to_error(&self) -> PortError {
        let error = PortError::new(format!("{} failed", self.what)).with_cause(self.error_text());
        let by_signal = || Some(hint_for_signal(self.signal?)?.to_owned());
        let hint = hint_for(&self.stderr).map(str::to_owned).or_else(by_signal);
        match hint.or_else(|| self.low_disk_hint()) {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
    /// Returns a hint if the disk is full; git often reports only that it could not write.
    fn low_disk_hint(&self) -> Option<String> {
        let left = free_space(&self.folder).filter(|left| *left < LOW_DISK_BYTES)?;
        Some(format!("the disk is full ({left} bytes are left): make room, then resume the run"))
    }
    pub(super) fn error_text(&self) -> GitErrorText {
        GitErrorText::new(self.code, self.signal, &self.stderr)
    }
}
