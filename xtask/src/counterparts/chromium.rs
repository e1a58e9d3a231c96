//! The browser that tests look at pages with: one that is there, or Debian's, where it may be installed.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use crate::workspace::Workspace;

/// What it is called, here and there.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// The browser, if there is one or one can be had.
pub(crate) fn find(workspace: &Workspace) -> Option<PathBuf> {
    on_path().or_else(|| {
        install(workspace);
        on_path()
    })
}

fn on_path() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let folders: Vec<_> = env::split_paths(&path).collect();
    let mut all = NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    all.find(|browser| browser.is_file())
}

/// Asks the system's own package manager, on a machine that is there for tests alone. Whether that has worked is seen by
/// looking again.
fn install(workspace: &Workspace) {
    if env::var_os("CI").is_none() {
        return;
    }
    let root = Command::new("id").arg("-u").output();
    if !root.is_ok_and(|said| said.stdout.trim_ascii() == b"0") {
        return;
    }
    eprintln!("==> no browser: trying to install Debian's chromium");
    for arguments in
        [&["update", "-q"][..], &["install", "-qy", "--no-install-recommends", "chromium"]]
    {
        let mut apt = workspace.command("apt-get");
        let done = apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").status();
        if !done.is_ok_and(|status| status.success()) {
            return;
        }
    }
}
