//! Renders `VALIDATION_REPORT.md`: the findings of a validation, for people. It finds none itself.

use crate::markdown::{MarkdownTable, MarkdownText};
use crate::words::format_count;
use treebeam_core::audit::{AuditFinding, FindingSeverity};

/// Renders the report: errors first, otherwise in the order of the findings.
#[must_use]
pub fn render_validation_report(run: &str, findings: &[AuditFinding]) -> String {
    let title = format!("# Validation of run {}\n\n", MarkdownText::from_text(run));
    if findings.is_empty() {
        return format!(
            "{title}**Nothing found.** Files, digests, commits and decisions are as recorded.\n"
        );
    }
    let mut table = MarkdownTable::new(["what", "where", "how serious", "what to do"]);
    for finding in sort_findings(findings) {
        table.add_row([
            MarkdownText::from_text(&finding.what),
            MarkdownText::from_text(&finding.place),
            MarkdownText::from_text(&finding.severity.to_string()),
            MarkdownText::from_text(&finding.advice),
        ]);
    }
    format!("{title}{}\n\n{table}", format_finding_counts(findings))
}

pub(crate) fn sort_findings(findings: &[AuditFinding]) -> Vec<&AuditFinding> {
    let mut sorted: Vec<_> = findings.iter().collect();
    sorted.sort_by_key(|finding| finding.severity);
    sorted
}

pub(crate) fn format_finding_counts(findings: &[AuditFinding]) -> String {
    let errors =
        findings.iter().filter(|finding| finding.severity == FindingSeverity::Error).count();
    let warnings = format_count(findings.len() - errors, "warning");
    match errors {
        0 => format!("**{warnings}**, no error: the results stand."),
        _ => format!(
            "**{}**, {warnings}: look at the errors before you use a result.",
            format_count(errors, "error")
        ),
    }
}
