//! Programs that tests look at treebeam with, and that no registry has.
//!
//! Those of the machine are used, or Debian's where they may be installed.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use crate::workspace::Workspace;

/// A program of the system.
#[derive(Debug)]
pub(crate) struct SystemProgram {
    /// Names that it has on one system or another.
    names: &'static [&'static str],
    /// Debian's package of it.
    package: &'static str,
    /// Things that cannot be tested without it.
    what: &'static str,
}

/// Shows the pages of `treebeam serve`.
pub(crate) const WEB_BROWSER: SystemProgram = SystemProgram {
    names: &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"],
    package: "chromium",
    what: "the pages of `treebeam serve` in a browser",
};

/// Shows the screens of `treebeam watch`.
pub(crate) const TMUX_PROGRAM: SystemProgram = SystemProgram {
    names: &["tmux"],
    package: "tmux",
    what: "the screens of `treebeam watch` in tmux",
};

/// The program, if it is there or can be had; where not, it is said what is left out.
pub(crate) fn find(workspace: &Workspace, program: &SystemProgram) -> Option<PathBuf> {
    let found = on_path(program).or_else(|| {
        install(workspace, program.package);
        on_path(program)
    });
    if found.is_none() {
        let SystemProgram { package, what, .. } = program;
        eprintln!(
            "==> LEFT OUT: {what}, because there is no {package}\nhint: install {package}, and call this again"
        );
    }
    found
}

fn on_path(program: &SystemProgram) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let folders: Vec<_> = env::split_paths(&path).collect();
    let in_folders = |name| folders.iter().map(move |folder| folder.join(name));
    program.names.iter().flat_map(in_folders).find(|found| found.is_file())
}

/// Asks the system's package manager, on a machine that is there for tests alone.
///
/// The caller sees by looking again if that has worked.
pub(super) fn install(workspace: &Workspace, package: &str) {
    if env::var_os("CI").is_none() {
        return;
    }
    let root = Command::new("id").arg("-u").output();
    if !root.is_ok_and(|said| said.stdout.trim_ascii() == b"0") {
        return;
    }
    eprintln!("==> no {package}: trying to install Debian's");
    for arguments in
        [&["update", "-q"][..], &["install", "-qy", "--no-install-recommends", package]]
    {
        let mut apt = workspace.command("apt-get");
        let done = apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").status();
        if !done.is_ok_and(|status| status.success()) {
            return;
        }
    }
}
