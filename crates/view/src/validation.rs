//! `VALIDATION_REPORT.md`: what a check of a run found, for people. Finding it is not done here.

use crate::markdown::{Md, Table};
use crate::words::count;
use treebeam_core::audit::{Finding, Severity};

/// The report: errors first, otherwise in the order in which they were found.
#[must_use]
pub fn report(run: &str, findings: &[Finding]) -> String {
    let title = format!("# Validation of run {}\n\n", Md::text(run));
    if findings.is_empty() {
        return format!(
            "{title}**Nothing found.** Files, digests, commits and decisions are as recorded.\n"
        );
    }
    let mut table = Table::new(["what", "where", "how serious", "what to do"]);
    for finding in sorted(findings) {
        table.row([
            Md::text(&finding.what),
            Md::text(&finding.place),
            Md::text(&finding.severity.to_string()),
            Md::text(&finding.advice),
        ]);
    }
    format!("{title}{}\n\n{table}", tally(findings))
}

pub(crate) fn sorted(findings: &[Finding]) -> Vec<&Finding> {
    let mut sorted: Vec<_> = findings.iter().collect();
    sorted.sort_by_key(|finding| finding.severity);
    sorted
}

pub(crate) fn tally(findings: &[Finding]) -> String {
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    let warnings = count(findings.len() - errors, "warning");
    match errors {
        0 => format!("**{warnings}**, no error: the results stand."),
        _ => format!(
            "**{}**, {warnings}: look at the errors before you use a result.",
            count(errors, "error")
        ),
    }
}
