//! `treebeam report`: validates a run and rewrites its reports from the recorded state. Runs nothing.

mod holdout;
pub(super) mod material;

pub(super) use holdout::Holdout;

use super::{Output, validate};
use crate::failure::{Exit, Failure};
use crate::terminal;
use crate::wiring::Found;
use material::Shelf;
use serde_json::json;
use std::iter::once_with;
use treebeam_core::audit::Finding;
use treebeam_core::facts::Facts;
use treebeam_core::id::RunPath;
use treebeam_edge::store::{RunDir, RunFiles};
use treebeam_run::port::Files as _;
use treebeam_view::html::{Extra, report};

/// The report that is a page.
pub(super) const PAGE: &str = "report.html";

pub(super) fn run(found: &Found, output: Output) -> Result<Exit, Failure> {
    let run = &found.run;
    let checked = validate::check(found)?;
    let written = write_with(run, &checked.state, Some(&checked.findings))?;
    let names: Vec<_> = written.iter().map(RunPath::as_str).collect();
    match output {
        Output::Json => terminal::json(&json!({
            "schema": "treebeam.report/1",
            "run_id": checked.state.run,
            "written": names,
            "findings": checked.findings.len(),
        }))?,
        Output::Text => {
            let names = names.join(", ");
            terminal::say(&format!("wrote {names} in {}", run.root().display()));
        }
    }
    Ok(checked.exit(output))
}

/// Writes the reports of a state: the same state gives the same bytes.
pub(super) fn write(run: &RunDir, facts: &Facts) -> Result<Vec<RunPath>, Failure> {
    write_with(run, facts, None)
}

/// The same with what a validation found.
fn write_with(
    run: &RunDir,
    facts: &Facts,
    findings: Option<&[Finding]>,
) -> Result<Vec<RunPath>, Failure> {
    // What cannot be read is not shown.
    let holdout = Holdout::read(run, facts).ok().flatten();
    let holdout = holdout.as_ref().map(|judged| (&judged.seen, &judged.unseen));
    let extra = Extra { findings, holdout };
    let files = RunFiles::new(run.clone());
    let mut written = Vec::new();
    let mut write = |name: &str, pieces: &mut dyn Iterator<Item = String>| {
        let path: RunPath = name.parse()?;
        files.write_with(&path, |file| {
            for piece in pieces {
                file.write_all(piece.as_bytes())?;
            }
            Ok(())
        })?;
        written.push(path);
        Ok::<_, Failure>(())
    };
    // One after the other: a long run has large ones.
    write("TREE_SUMMARY.md", &mut once_with(|| treebeam_view::summary(facts)))?;
    write("TREE_GRAPH.md", &mut once_with(|| treebeam_view::graph(facts)))?;
    write("results.tsv", &mut once_with(|| treebeam_view::results_tsv(facts)))?;
    let mut shelf = Shelf::new(&files, facts);
    write(PAGE, &mut report(facts, extra, &mut |eval| shelf.material(eval)))?;
    files.settle()?;
    Ok(written)
}
