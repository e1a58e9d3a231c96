//! Where the workspace is, and how a chore runs a command in it: announced, timed, and ending the
//! chore where it fails.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Instant;

use anyhow::Context as _;

/// The project's directories, absolute.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
}

impl Workspace {
    pub(crate) fn find() -> anyhow::Result<Self> {
        let xtask = std::env::var_os("CARGO_MANIFEST_DIR").context("call this as `cargo xtask`")?;
        let root =
            Path::new(&xtask).parent().context("xtask lies below the workspace's root")?.to_owned();
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(dir) => {
                std::path::absolute(dir).context("`CARGO_TARGET_DIR` names no directory")?
            }
            None => root.join("target"),
        };
        Ok(Self { root, target })
    }

    /// A command that runs in the workspace's root and builds below its target directory.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        command
    }

    pub(crate) fn cargo(&self) -> Command {
        self.command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
    }
}

/// Runs a command as one step of a chore: says what runs and how long it took.
pub(crate) fn step(name: &'static str, command: &mut Command) -> anyhow::Result<()> {
    let line = line(command);
    eprintln!("==> {name}: {line}");
    let start = Instant::now();
    let status = command.status().with_context(|| format!("{name}: could not start `{line}`"))?;
    let took = start.elapsed().as_secs_f64();
    if status.success() {
        eprintln!("==> {name}: ok, {took:.1} s");
        return Ok(());
    }
    Err(StepFailed { name, line, status, took }.into())
}

/// A step whose command ran and did not succeed.
#[derive(Debug)]
pub(crate) struct StepFailed {
    name: &'static str,
    line: String,
    status: ExitStatus,
    took: f64,
}

impl StepFailed {
    /// The command's own exit code, or 1 where a signal ended it.
    pub(crate) fn exit_code(&self) -> u8 {
        self.status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
    }
}

impl fmt::Display for StepFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, line, status, took } = self;
        write!(f, "{name} failed after {took:.1} s: `{line}` ended with {status}")
    }
}

impl std::error::Error for StepFailed {}

/// The command as a person would type it.
fn line(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_stem().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}
