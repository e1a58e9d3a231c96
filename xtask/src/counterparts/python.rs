//! Installs Python packages into a folder: `PYTHONPATH` is all that using them takes.
//!
//! The python3 of the machine runs them; it gets nothing installed.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use super::system;
use crate::workspace::{Workspace, step};

/// The versions of all packages that come along.
pub(super) const PIP_CONSTRAINTS: &str = include_str!("../../counterparts/constraints.txt");

/// Prints the version of Python, and the machine that packages have to be for.
const VERSION_SCRIPT: &str = "import sys, sysconfig; print('python', '%d.%d' % sys.version_info[:2], sysconfig.get_platform())";
/// Oldest version of Python that the counterparts run on.
const MIN_PYTHON_VERSION: (u32, u32) = (3, 11);

/// A python3 and a pip.
pub(super) struct Python {
    /// Its version and platform: packages are for these alone.
    pub(super) kind: String,
    /// The interpreter whose pip is used.
    with_pip: PathBuf,
}

impl Python {
    pub(super) fn find(workspace: &Workspace, folder: &Path) -> anyhow::Result<Self> {
        let kind = said("python3", &["-c", VERSION_SCRIPT])
            .context("`python3` is not there, and tests against real counterparts need it\nhint: install Python 3.11 or later")?;
        anyhow::ensure!(
            version(&kind).is_some_and(|version| version >= MIN_PYTHON_VERSION),
            "`python3` is {kind}, and the counterparts need {}.{}\nhint: put a later one first in `PATH`",
            MIN_PYTHON_VERSION.0,
            MIN_PYTHON_VERSION.1
        );
        fs::create_dir_all(folder)
            .with_context(|| format!("could not make `{}`", folder.display()))?;
        let with_pip = if said("python3", &["-m", "pip", "--version"]).is_some() {
            PathBuf::from("python3")
        } else {
            own_pip(workspace, folder)?
        };
        Ok(Self { kind, with_pip })
    }

    pub(super) fn install(
        &self,
        workspace: &Workspace,
        packages: &[&str],
        into: &Path,
    ) -> anyhow::Result<()> {
        let constraints = into.with_extension("txt");
        fs::write(&constraints, PIP_CONSTRAINTS)?;
        let mut pip = self.pip(workspace, packages, into);
        let installed = step("set-up", pip.arg("--constraint").arg(&constraints));
        fs::remove_file(constraints)?;
        installed
    }

    pub(super) fn install_alone(
        &self,
        workspace: &Workspace,
        packages: &[&str],
        into: &Path,
    ) -> anyhow::Result<()> {
        step("set-up", self.pip(workspace, packages, into).arg("--no-deps"))
    }

    fn pip(&self, workspace: &Workspace, packages: &[&str], into: &Path) -> Command {
        let mut pip = workspace.command(&self.with_pip);
        // What a user's own settings say about where to install would contradict `--target`.
        pip.env("PIP_USER", "0").env("PIP_REQUIRE_VIRTUALENV", "0");
        pip.env("PIP_ROOT_USER_ACTION", "ignore").env("PIP_DISABLE_PIP_VERSION_CHECK", "1");
        pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--no-warn-conflicts"]);
        pip.args(["--only-binary", ":all:"]).args(packages).arg("--target").arg(into);
        pip
    }
}

/// A pip in a virtual environment, for a python3 that came without.
fn own_pip(workspace: &Workspace, folder: &Path) -> anyhow::Result<PathBuf> {
    let home = folder.join("pip");
    let python = home.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    if said(&python, &["-m", "pip", "--version"]).is_some() {
        return Ok(python);
    }
    let make = || {
        let mut make = workspace.command("python3");
        step("set-up", make.args(["-m", "venv", "--clear"]).arg(&home))
    };
    if make().is_err() {
        system::install(workspace, PIP_PACKAGE);
        make().map_err(|_| NoPip)?;
    }
    Ok(python)
}

/// Debian's package of what its python3 lacks to make itself a pip.
const PIP_PACKAGE: &str = "python3-venv";

/// There is no pip, and none can be had: nothing is installed.
#[derive(Debug)]
pub(crate) struct NoPip;

impl fmt::Display for NoPip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`python3` has neither pip nor ensurepip, and counterparts are installed with pip\nhint: on Debian and Ubuntu, `apt install {PIP_PACKAGE}`"
        )
    }
}

impl std::error::Error for NoPip {}

/// Output of a program, or `None` if it is missing or fails.
fn said(program: impl AsRef<OsStr>, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

/// The version in `python 3.11 linux-x86_64`.
fn version(kind: &str) -> Option<(u32, u32)> {
    let (major, minor) = kind.split(' ').nth(1)?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(version("python 3.11 linux-x86_64"), Some((3, 11)));
        assert!(version("python 3.9 win-amd64") < Some(MIN_PYTHON_VERSION));
        assert_eq!(version("what"), None);
    }
}
