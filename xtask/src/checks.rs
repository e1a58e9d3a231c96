//! `cargo xtask test`: every check that a change has to pass, the quick ones first.

use std::time::Instant;

use crate::counterparts::{self, Group};
use crate::tools;
use crate::workspace::{Workspace, step};

pub(crate) fn run(workspace: &Workspace) -> anyhow::Result<()> {
    let start = Instant::now();
    tools::add_missing_components(workspace)?;
    step("format", workspace.cargo().args(["fmt", "--all", "--check"]))?;
    step(
        "lints",
        workspace.cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    )?;
    let deny = tools::cargo_deny(workspace)?;
    step("dependencies", workspace.command(deny).args(["check", "bans", "licenses", "sources"]))?;
    step("tests", workspace.cargo().args(["test", "--workspace"]))?;
    let folder = counterparts::install(workspace, &Group::ALL)?;
    // Named, so that no other test that is ignored begins; of the workspace, as before, so that nothing is built again.
    let real =
        ["test", "--workspace", "--test", "counterparts", "--test", "in_place", "--", "--ignored"];
    step("counterparts", workspace.cargo().args(real).env("TREEBEAM_COUNTERPARTS", &folder))?;
    eprintln!("==> all checks passed, {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}
