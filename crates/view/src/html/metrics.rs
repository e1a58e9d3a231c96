//! The table of metrics: a candidate's means beside those of what it is compared with. Computes no figure.

use crate::figure::{NONE, figure};
use crate::score::{Tone, table};
use maud::{Markup, html};
use treebeam_core::num::Finite;
use treebeam_core::policy::ScorePolicy;
use treebeam_core::score::{Details, MetricUse};

/// One side of the table: what the candidate is compared with.
pub(crate) struct Column<'a> {
    pub(crate) name: &'a str,
    pub(crate) details: &'a Details,
}

/// A row for each metric that counts, in the policy's order.
pub(crate) fn metrics(policy: &ScorePolicy, columns: &[Column<'_>]) -> Markup {
    if columns.iter().all(|column| column.details.metrics.is_empty()) {
        return html! { p.note { "No configured metric has numbers on both sides." } };
    }
    html! {
        div.scroll tabindex="0" role="group" aria-label="Metrics" {
            table.figures {
                thead { tr {
                    th scope="col" { "metric" }
                    th scope="col" { "candidate" }
                    @for column in columns { th scope="col" { (column.name) } th scope="col" { "change" } }
                } }
                tbody {
                    @for metric in &policy.metrics { (row(policy, &metric.column, columns)) }
                }
            }
        }
        p.note { "▲ better, ▼ worse, = equal; * primary, ! guarded, ↓ lower is better" }
    }
}

fn row(policy: &ScorePolicy, name: &str, columns: &[Column<'_>]) -> Markup {
    let Some(known) = columns.iter().find_map(|column| find(column, name)) else { return html! {} };
    html! {
        tr {
            th scope="row" { (table::name(policy, known)) }
            td { (figure(Finite::new(known.candidate_mean))) }
            @for column in columns { (side(find(column, name))) }
        }
    }
}

fn find<'a>(column: &Column<'a>, name: &str) -> Option<&'a MetricUse> {
    column.details.metrics.iter().find(|metric| metric.column == name)
}

fn side(metric: Option<&MetricUse>) -> Markup {
    let Some(metric) = metric else { return html! { td { (NONE) } td { (NONE) } } };
    let (mark, tone) = table::mark(metric);
    html! {
        td { (figure(Finite::new(metric.baseline_mean))) }
        td class=(class(tone)) { (mark) " " (table::relative(metric)) }
    }
}

const fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "up",
        Tone::Bad => "down",
        Tone::Even => "even",
    }
}
