//! What a validation of the run found. Finding it is not done here.

use super::text::{Shown, brief};
use crate::validation::{sorted, tally};
use maud::{Markup, html};
use treebeam_core::audit::{Finding, Severity};

/// At most so many findings are shown; all stand in `VALIDATION_REPORT.md`.
const MOST: usize = 200;
/// The longest text of a finding.
const CHARS: usize = 400;

/// The findings, errors first; none where nobody has looked yet.
#[must_use]
pub fn checked(run: &str, findings: Option<&[Finding]>) -> Markup {
    let Some(findings) = findings else {
        return html! {
            p { "Not checked yet: " code { "treebeam report " (Shown(run)) } " checks files, digests, commits and decisions, and writes this page again." }
        };
    };
    if findings.is_empty() {
        return html! { p { strong { "Nothing found." } " Files, digests, commits and decisions are as recorded." } };
    }
    let rows = sorted(findings);
    html! {
        p { (tally(findings).replace("**", "")) }
        div.scroll tabindex="0" role="group" aria-label="Findings" {
            table {
                thead { tr { @for head in ["how serious", "what", "where", "what to do"] { th scope="col" { (head) } } } }
                tbody { @for finding in rows.iter().take(MOST) { (row(finding)) } }
            }
        }
        @if rows.len() > MOST { p.note { (rows.len() - MOST) " more in VALIDATION_REPORT.md." } }
    }
}

fn row(finding: &Finding) -> Markup {
    let class = match finding.severity {
        Severity::Error => "down",
        Severity::Warning => "even",
    };
    html! {
        tr {
            th scope="row" class=(class) { (finding.severity) }
            @for text in [&finding.what, &finding.place, &finding.advice] { td { (brief(text, CHARS)) } }
        }
    }
}
