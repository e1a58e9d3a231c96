//! Tools that the checks need: looked for first, installed below `target/tools` where missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::workspace::{Workspace, step};

/// Pinned, so that the same dependencies pass or fail everywhere. Built from source: the Python
/// index has nothing newer than 0.14, which panics on the package ids of today's cargo.
const DENY_VERSION: &str = "0.20.2";

/// The path or name of a cargo-deny of the pinned version.
pub(crate) fn cargo_deny(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    let tools = workspace.target.join("tools");
    let own = tools.join("bin").join(format!("cargo-deny{}", std::env::consts::EXE_SUFFIX));
    for candidate in [Path::new("cargo-deny"), &own] {
        if is_cargo_deny(candidate) {
            return Ok(candidate.to_owned());
        }
    }
    eprintln!("==> set-up: cargo-deny {DENY_VERSION} is built once, about a minute on 2 cores");
    install_cargo_deny(workspace, &tools)?;
    Ok(own)
}

fn is_cargo_deny(program: &Path) -> bool {
    let output = Command::new(program).arg("--version").output();
    output.is_ok_and(|output| {
        let said = String::from_utf8_lossy(&output.stdout);
        said.split_whitespace().eq(["cargo-deny", DENY_VERSION])
    })
}

/// Unoptimised: a third of the build time, and the check takes under a second all the same.
fn install_cargo_deny(workspace: &Workspace, tools: &Path) -> anyhow::Result<()> {
    let build = workspace.target.join("tools-build");
    let mut install = workspace.cargo();
    install
        .args(["install", "cargo-deny", "--version", DENY_VERSION, "--locked", "--force"])
        .args(["--quiet", "--debug", "--root"])
        .arg(tools)
        .env("CARGO_TARGET_DIR", &build)
        .env("CARGO_PROFILE_DEV_DEBUG", "none");
    step("set-up", &mut install)?;
    fs::remove_dir_all(&build).with_context(|| format!("could not remove `{}`", build.display()))
}

/// Adds rustfmt and clippy to a toolchain that came without them.
pub(crate) fn add_missing_components(workspace: &Workspace) -> anyhow::Result<()> {
    for (component, subcommand) in [("rustfmt", "fmt"), ("clippy", "clippy")] {
        let found = workspace.cargo().args([subcommand, "--version"]).output();
        if !found.is_ok_and(|output| output.status.success()) {
            step("set-up", workspace.command("rustup").args(["component", "add", component]))?;
        }
    }
    Ok(())
}
