//! `cargo xtask test`: every check that a change has to pass, the quick ones first.

use std::path::Path;
use std::time::Instant;

use crate::counterparts::{self, CounterpartGroup, NoPip, system};
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
    step("tests", workspace.cargo().args(["test", "--workspace", "--no-fail-fast"]))?;
    match counterparts::install(workspace, &CounterpartGroup::ALL) {
        Err(error) if error.is::<NoPip>() => {
            eprintln!(
                "==> LEFT OUT: what is tested with real counterparts, a browser and tmux: {error}"
            );
        }
        folder => with_counterparts(workspace, &folder?)?,
    }
    eprintln!("==> all checks passed, {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Runs the tests that talk to real servers, models and agents, and those that look at the program
/// as a person does.
fn with_counterparts(workspace: &Workspace, folder: &Path) -> anyhow::Result<()> {
    // Named, so that no other test that is ignored begins; of the workspace, as before, so that
    // nothing is built again.
    let mut real = vec!["test", "--workspace", "--test", "counterparts", "--test", "in_place"];
    let programs = [
        (system::WEB_BROWSER, "browser", "TREEBEAM_BROWSER"),
        (system::TMUX_PROGRAM, "watch", "TREEBEAM_TMUX"),
    ];
    let mut variables = Vec::new();
    for (program, test, variable) in programs {
        if let Some(found) = system::find(workspace, &program) {
            real.extend(["--test", test]);
            variables.push((variable, found));
        }
    }
    real.extend(["--", "--ignored"]);
    let mut tests = workspace.cargo();
    tests.args(real).env("TREEBEAM_COUNTERPARTS", folder).envs(variables);
    step("counterparts", &mut tests)
}
