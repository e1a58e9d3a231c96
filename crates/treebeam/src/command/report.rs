//! `treebeam report`: validates a run and rewrites its reports from the recorded state.

mod holdout;
pub(super) mod run_texts;

pub(super) use holdout::HoldoutComparison;

use super::{OutputFormat, validate};
use crate::failure::{CommandExit, CommandFailure};
use crate::run_location::RunLocation;
use crate::terminal;
use run_texts::RunTexts;
use serde_json::json;
use std::iter::once_with;
use treebeam_core::audit::AuditFinding;
use treebeam_core::facts::Facts;
use treebeam_core::id::RunPath;
use treebeam_run::port::FileStore as _;
use treebeam_store::{RunDir, RunFiles};
use treebeam_view::html::{ReportExtra, render_report};

/// File name of the HTML report.
pub(super) const REPORT_PAGE_FILE: &str = "report.html";

pub(super) fn run_report(
    found: &RunLocation,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let run = &found.run;
    let checked = validate::validate_and_report(found)?;
    let written = write_reports_with_findings(run, &checked.state, Some(&checked.findings))?;
    let names: Vec<_> = written.iter().map(RunPath::as_str).collect();
    match output {
        OutputFormat::Json => terminal::print_json(&json!({
            "schema": "treebeam.report/1",
            "run_id": checked.state.run,
            "written": names,
            "findings": checked.findings.len(),
        }))?,
        OutputFormat::Text => {
            let names = names.join(", ");
            terminal::print_line(&format!("wrote {names} in {}", run.root().display()));
        }
    }
    Ok(checked.show_and_exit(output))
}

/// Writes the reports of a state: the same state gives the same bytes.
pub(super) fn write_reports(run: &RunDir, facts: &Facts) -> Result<Vec<RunPath>, CommandFailure> {
    write_reports_with_findings(run, facts, None)
}

/// Writes the reports of a state, with the findings of a validation.
fn write_reports_with_findings(
    run: &RunDir,
    facts: &Facts,
    findings: Option<&[AuditFinding]>,
) -> Result<Vec<RunPath>, CommandFailure> {
    // Unreadable results are not shown.
    let holdout = HoldoutComparison::load(run, facts).ok().flatten();
    let holdout = holdout.as_ref().map(|judged| (&judged.seen, &judged.unseen));
    let extra = ReportExtra { findings, holdout };
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
        Ok::<_, CommandFailure>(())
    };
    // Rendered one after the other: reports of a long run are large.
    write("TREE_SUMMARY.md", &mut once_with(|| treebeam_view::render_tree_summary(facts)))?;
    write("TREE_GRAPH.md", &mut once_with(|| treebeam_view::render_graph(facts)))?;
    write("results.tsv", &mut once_with(|| treebeam_view::render_results_tsv(facts)))?;
    let mut texts = RunTexts::new(&files, facts);
    write(
        REPORT_PAGE_FILE,
        &mut render_report(facts, extra, &mut |eval| texts.eval_material(eval)),
    )?;
    files.sync_files()?;
    Ok(written)
}
