//! The days that the search never saw: root and best are judged on them once, when it is over. Decides nothing.

use crate::command::report::Holdout;
use crate::failure::Failure;
use serde_json::{Value, json};
use std::env;
use std::path::Path;
use std::time::Duration;
use treebeam_core::facts::Facts;
use treebeam_core::id::{NodeId, Place};
use treebeam_core::path;
use treebeam_edge::executor::variables;
use treebeam_edge::input;
use treebeam_edge::process::{Ended, Program};
use treebeam_edge::store::{RunDir, RunFiles};
use treebeam_run::figures;
use treebeam_run::port::{Files as _, PortError};
use treebeam_view::holdout::{holdout, kept};

const PYTHON: &str = "python3";
/// Succeeds with a Python that the example runs with.
const IS_NEW_ENOUGH: &str = "import sys; sys.exit(sys.version_info < (3, 8))";
/// The judge takes a second.
const DEADLINE: Duration = Duration::from_mins(5);
/// The judge writes some rows.
const MOST_BYTES: u64 = 1 << 20;
/// Where the results are put, in the example's folder.
const RESULTS: [&str; 2] = ["holdout-root.csv", "holdout-best.csv"];

/// Refuses to begin without the language that the example is written in.
pub(super) fn must_have_python(here: &Path) -> Result<(), Failure> {
    if !here.is_dir() {
        let what = format!("there is no folder `{}`", here.display());
        return Err(Failure::usage(what).hint("name one that is there with `-C DIR`"));
    }
    let what = match python(here).args(["-c", IS_NEW_ENOUGH]).run() {
        Ok(ended) if ended.status.success() => return Ok(()),
        Ok(_) => format!("`{PYTHON}` does not work, or is older than 3.8"),
        Err(_) => format!("`{PYTHON}` was not found on `PATH`"),
    };
    Err(Failure::environment(what)
        .hint("install Python 3.8 or later: the demo's example is written in it"))
}

fn python(folder: &Path) -> Program {
    let variables = variables(&[], |name| env::var_os(name));
    Program::new(Path::new(PYTHON), folder).envs(variables).deadline(DEADLINE)
}

/// Judges root and best, and keeps the results with the run: its reports show them whenever they are written.
pub(super) fn judge(folder: &Path, run: &RunDir, facts: &Facts) -> Result<Holdout, Failure> {
    let folder = folder.canonicalize()?;
    let files = RunFiles::new(run.clone());
    for (node, name) in [NodeId::ROOT, facts.best()].into_iter().zip(RESULTS) {
        let out = folder.join(name);
        sweep(&run.root().join(Place::Node(node).worktree().as_str()), &out)?;
        let text = input::text(&out, name, MOST_BYTES)?;
        files.write(&path::holdout(node), text.as_bytes())?;
    }
    files.settle()?;
    let lost = || Failure::failed("the run has lost the results of its root or its best node");
    Holdout::read(run, facts)?.ok_or_else(lost)
}

/// For programs.
pub(super) fn document(judged: &Holdout) -> Value {
    let [root, best] = RESULTS;
    json!({
        "root_results": root,
        "best_results": best,
        "metrics": figures::recommendation(&judged.unseen)["metrics_used"],
        "primary_delta": judged.unseen.comparison.primary_delta,
    })
}

/// For people.
pub(super) fn in_words(judged: &Holdout, program: &str, facts: &Facts) -> String {
    let primary = &facts.meaning.score.primary;
    let [root, best] = RESULTS;
    let mut text =
        "Is it really better? Judged on the days that the search saw, and on the hold-out: \
         later days, which it never saw:\n\n"
            .to_owned();
    text.push_str(&holdout(&judged.seen, &judged.unseen));
    if let Some(kept) = kept(&judged.seen, &judged.unseen, primary) {
        let kept = 100.0 * kept;
        text.push_str(&format!(
            "\nOf the relative gain in {primary} on the search's days, {kept:.0} % is there on the hold-out.\n"
        ));
    }
    text.push_str(&format!("In full: {program} score {root} {best}\n"));
    text
}

/// Runs the judge in a worktree.
fn sweep(worktree: &Path, out: &Path) -> Result<(), Failure> {
    if !worktree.is_dir() {
        let what = format!("the worktree `{}` is gone", worktree.display());
        return Err(Failure::failed(what).hint("`treebeam demo` makes a new one"));
    }
    let asked = python(worktree).args(["-B", "sweep.py", "--holdout", "--out"]).args([out]);
    let failed = || PortError::new("the hold-out could not be judged");
    let Ended { status, stderr, .. } = asked.run().map_err(|error| failed().caused_by(error))?;
    if status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&stderr.bytes);
    let last = said.lines().last().unwrap_or_default();
    Err(Failure::failed(format!("`{PYTHON} sweep.py --holdout` ended with {status}: {last}")))
}
