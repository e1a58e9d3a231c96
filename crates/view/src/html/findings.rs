//! Renders the findings of a validation of the run. It finds none itself.

use super::visible_text::{VisibleText, short_line};
use crate::validation::{format_finding_counts, sort_findings};
use maud::{Markup, html};
use treebeam_core::audit::{AuditFinding, FindingSeverity};

/// Maximum number of findings shown; `VALIDATION_REPORT.md` has all.
const MAX_FINDINGS: usize = 200;
/// Maximum length of a finding's text.
const MAX_FINDING_CHARS: usize = 400;

/// Renders the findings, errors first; `None` if the run was not validated yet.
#[must_use]
pub fn render_findings(run: &str, findings: Option<&[AuditFinding]>) -> Markup {
    let Some(findings) = findings else {
        return html! {
            p { "Not checked yet: " code { "treebeam report " (VisibleText(run)) } " checks files, digests, commits and decisions, and writes this page again." }
        };
    };
    if findings.is_empty() {
        return html! { p { strong { "Nothing found." } " Files, digests, commits and decisions are as recorded." } };
    }
    let rows = sort_findings(findings);
    html! {
        p { (format_finding_counts(findings).replace("**", "")) }
        div.scroll tabindex="0" role="group" aria-label="Findings" {
            table {
                thead { tr { @for head in ["how serious", "what", "where", "what to do"] { th scope="col" { (head) } } } }
                tbody { @for finding in rows.iter().take(MAX_FINDINGS) { (render_finding_row(finding)) } }
            }
        }
        @if rows.len() > MAX_FINDINGS { p.note { (rows.len() - MAX_FINDINGS) " more in VALIDATION_REPORT.md." } }
    }
}

fn render_finding_row(finding: &AuditFinding) -> Markup {
    let class = match finding.severity {
        FindingSeverity::Error => "down",
        FindingSeverity::Warning => "even",
    };
    html! {
        tr {
            th scope="row" class=(class) { (finding.severity) }
            @for text in [&finding.what, &finding.place, &finding.advice] { td { (short_line(text, MAX_FINDING_CHARS)) } }
        }
    }
}
