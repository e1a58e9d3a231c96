//! Renders the table of metrics: a candidate's means beside those of its baselines. Computes no
//! figure.

use crate::figure::{NOT_AVAILABLE, format_figure};
use crate::score::{ScoreTone, table};
use maud::{Markup, html};
use treebeam_core::num::Finite;
use treebeam_core::policy::ScorePolicy;
use treebeam_score::compare::{ComparisonDetails, MetricUse};

/// A baseline of the candidate, as a column of the table.
pub(crate) struct MetricsColumn<'a> {
    pub(crate) name: &'a str,
    pub(crate) details: &'a ComparisonDetails,
}

/// Renders a row for each metric of the policy that has numbers, in the policy's order.
pub(crate) fn render_metrics(policy: &ScorePolicy, columns: &[MetricsColumn<'_>]) -> Markup {
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
                    @for metric in &policy.metrics { (render_metric_row(policy, &metric.column, columns)) }
                }
            }
        }
        p.note { "▲ better, ▼ worse, = equal; * primary, ! guarded, ↓ lower is better" }
    }
}

fn render_metric_row(policy: &ScorePolicy, name: &str, columns: &[MetricsColumn<'_>]) -> Markup {
    let Some(known) = columns.iter().find_map(|column| find_metric(column, name)) else {
        return html! {};
    };
    html! {
        tr {
            th scope="row" { (table::metric_name(policy, known)) }
            td { (format_figure(Finite::new(known.candidate_mean))) }
            @for column in columns { (render_side_cells(find_metric(column, name))) }
        }
    }
}

fn find_metric<'a>(column: &MetricsColumn<'a>, name: &str) -> Option<&'a MetricUse> {
    column.details.metrics.iter().find(|metric| metric.column == name)
}

fn render_side_cells(metric: Option<&MetricUse>) -> Markup {
    let Some(metric) = metric else {
        return html! { td { (NOT_AVAILABLE) } td { (NOT_AVAILABLE) } };
    };
    let (mark, tone) = table::metric_mark(metric);
    html! {
        td { (format_figure(Finite::new(metric.baseline_mean))) }
        td class=(tone_class(tone)) { (mark) " " (table::relative_change(metric)) }
    }
}

const fn tone_class(tone: ScoreTone) -> &'static str {
    match tone {
        ScoreTone::Good => "up",
        ScoreTone::Bad => "down",
        ScoreTone::Even => "even",
    }
}
