//! Evaluates root and best node once on days that the search never used. Decides nothing.

use crate::command::report::HoldoutComparison;
use crate::failure::CommandFailure;
use serde_json::{Value, json};
use std::env;
use std::path::Path;
use std::time::Duration;
use treebeam_core::facts::Facts;
use treebeam_core::id::{CodePlace, NodeId};
use treebeam_core::path;
use treebeam_executor::collect_variables;
use treebeam_process::{ChildProgram, EndedChild};
use treebeam_run::figures;
use treebeam_run::port::{FileStore as _, PortError};
use treebeam_store::input;
use treebeam_store::{RunDir, RunFiles};
use treebeam_view::holdout::{remaining_gain, render_holdout_table};

const PYTHON_PROGRAM: &str = "python3";
/// Python script that succeeds with a version that the example supports.
const PYTHON_VERSION_CHECK: &str = "import sys; sys.exit(sys.version_info < (3, 8))";
/// Maximum time of the judge, which usually takes a second.
const JUDGE_DEADLINE: Duration = Duration::from_mins(5);
/// Maximum size of the judge's results, which have a few rows.
const MAX_RESULTS_BYTES: u64 = 1 << 20;
/// Names of the results files in the example's folder.
const RESULTS_FILES: [&str; 2] = ["holdout-root.csv", "holdout-best.csv"];

/// Refuses to start without a suitable Python.
pub(super) fn must_have_python(here: &Path) -> Result<(), CommandFailure> {
    if !here.is_dir() {
        let what = format!("there is no folder `{}`", here.display());
        return Err(CommandFailure::usage(what).with_hint("name one that is there with `-C DIR`"));
    }
    let what = match python_command(here).args(["-c", PYTHON_VERSION_CHECK]).run() {
        Ok(ended) if ended.status.success() => return Ok(()),
        Ok(_) => format!("`{PYTHON_PROGRAM}` does not work, or is older than 3.8"),
        Err(_) => format!("`{PYTHON_PROGRAM}` was not found on `PATH`"),
    };
    Err(CommandFailure::environment(what)
        .with_hint("install Python 3.8 or later: the demo's example is written in it"))
}

fn python_command(folder: &Path) -> ChildProgram {
    let variables = collect_variables(&[], |name| env::var_os(name));
    ChildProgram::new(Path::new(PYTHON_PROGRAM), folder).envs(variables).deadline(JUDGE_DEADLINE)
}

/// Judges root and best node, and keeps the results with the run for its reports.
pub(super) fn judge_holdout(
    folder: &Path,
    run: &RunDir,
    facts: &Facts,
) -> Result<HoldoutComparison, CommandFailure> {
    let folder = folder.canonicalize()?;
    let files = RunFiles::new(run.clone());
    for (node, name) in [NodeId::ROOT, facts.best_node()].into_iter().zip(RESULTS_FILES) {
        let out = folder.join(name);
        sweep_holdout(&run.root().join(CodePlace::Node(node).worktree_path().as_str()), &out)?;
        let text = input::read_text(&out, name, MAX_RESULTS_BYTES)?;
        files.write_file(&path::holdout_file(node), text.as_bytes())?;
    }
    files.sync_files()?;
    let lost =
        || CommandFailure::failed("the run has lost the results of its root or its best node");
    HoldoutComparison::load(run, facts)?.ok_or_else(lost)
}

/// Renders the comparison as JSON.
pub(super) fn render_holdout_json(judged: &HoldoutComparison) -> Value {
    let [root, best] = RESULTS_FILES;
    json!({
        "root_results": root,
        "best_results": best,
        "metrics": figures::recommendation_json(&judged.unseen)["metrics_used"],
        "primary_delta": judged.unseen.comparison.primary_delta,
    })
}

/// Renders the comparison as text.
pub(super) fn render_holdout_text(
    judged: &HoldoutComparison,
    program: &str,
    facts: &Facts,
) -> String {
    let primary = &facts.settings.score.primary;
    let [root, best] = RESULTS_FILES;
    let mut text =
        "Is it really better? Judged on the days that the search saw, and on the hold-out: \
         later days, which it never saw:\n\n"
            .to_owned();
    text.push_str(&render_holdout_table(&judged.seen, &judged.unseen));
    if let Some(kept) = remaining_gain(&judged.seen, &judged.unseen, primary) {
        let kept = 100.0 * kept;
        text.push_str(&format!(
            "\nOf the relative gain in {primary} on the search's days, {kept:.0} % is there on the hold-out.\n"
        ));
    }
    text.push_str(&format!("In full: {program} score {root} {best}\n"));
    text
}

/// Runs the judge in a worktree.
fn sweep_holdout(worktree: &Path, out: &Path) -> Result<(), CommandFailure> {
    if !worktree.is_dir() {
        let what = format!("the worktree `{}` is gone", worktree.display());
        return Err(CommandFailure::failed(what).with_hint("`treebeam demo` makes a new one"));
    }
    let asked = python_command(worktree).args(["-B", "sweep.py", "--holdout", "--out"]).args([out]);
    let failed = || PortError::new("the hold-out could not be judged");
    let EndedChild { status, stderr, .. } =
        asked.run().map_err(|error| failed().with_cause(error))?;
    if status.success() {
        return Ok(());
    }
    let error_text = String::from_utf8_lossy(&stderr.bytes);
    let last = error_text.lines().last().unwrap_or_default();
    Err(CommandFailure::failed(format!(
        "`{PYTHON_PROGRAM} sweep.py --holdout` ended with {status}: {last}"
    )))
}
