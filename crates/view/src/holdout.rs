//! Renders a table of the best against the root, on results that the search saw and on hold-out
//! results, with the remaining gain. Compares nothing itself.

use crate::figure::{NOT_AVAILABLE, format_figure};
use crate::safe_text::{one_line, shorten_text};
use treebeam_core::num::Finite;
use treebeam_score::compare::{ComparisonDetails, MetricUse};

/// Maximum length of a metric's name.
const MAX_NAME_CHARS: usize = 40;
const TABLE_HEAD: [&str; 7] = ["", "root", "best", "gain", "root", "best", "gain"];

/// Renders a line for each metric, with the search's results first, hold-out results second.
#[must_use]
pub fn render_holdout_table(seen: &ComparisonDetails, unseen: &ComparisonDetails) -> String {
    let rows: Vec<_> = seen.metrics.iter().map(|metric| row_cells(metric, unseen)).collect();
    let mut widths = TABLE_HEAD.map(|head| head.chars().count());
    for row in &rows {
        for (most, cell) in widths.iter_mut().zip(row) {
            *most = (*most).max(cell.chars().count());
        }
    }
    let [name, root, best, gain, ..] = widths;
    let seen_width = root + best + gain + 4;
    let above = format!("{:name$}  {:<seen_width$}    hold-out", "", "search");
    let lines = [TABLE_HEAD.map(str::to_owned)]
        .into_iter()
        .chain(rows)
        .map(|row| format_row(&row, &widths));
    let lines: Vec<_> = std::iter::once(above).chain(lines).collect();
    lines.join("\n") + "\n"
}

/// Returns the part of a metric's relative gain that remains on hold-out results; `None` without a
/// gain.
#[must_use]
pub fn remaining_gain(
    seen: &ComparisonDetails,
    unseen: &ComparisonDetails,
    column: &str,
) -> Option<f64> {
    let gain = |details: &ComparisonDetails| {
        find_metric(details, column).map(|metric| metric.relative_improvement)
    };
    let (seen, unseen) = (gain(seen)?, gain(unseen)?);
    (seen > 0.0).then_some(unseen / seen).filter(|kept| kept.is_finite())
}

fn find_metric<'a>(details: &'a ComparisonDetails, column: &str) -> Option<&'a MetricUse> {
    details.metrics.iter().find(|metric| metric.column == column)
}

fn row_cells(seen: &MetricUse, unseen: &ComparisonDetails) -> [String; 7] {
    let name = shorten_text(&one_line(&seen.column), MAX_NAME_CHARS);
    let [root, best, gain] = format_metric_figures(Some(seen));
    let [held_root, held_best, held_gain] =
        format_metric_figures(find_metric(unseen, &seen.column));
    [name, root, best, gain, held_root, held_best, held_gain]
}

fn format_metric_figures(metric: Option<&MetricUse>) -> [String; 3] {
    let Some(metric) = metric else { return [NOT_AVAILABLE; 3].map(str::to_owned) };
    [
        format_figure(Finite::new(metric.baseline_mean)),
        format_figure(Finite::new(metric.candidate_mean)),
        format!("{:+.1} %", 100.0 * metric.relative_improvement),
    ]
}

/// Formats a row: name left-aligned, numbers right-aligned, a wider gap before the hold-out
/// results.
fn format_row(cells: &[String; 7], widths: &[usize; 7]) -> String {
    let mut line = String::new();
    for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
        match at {
            0 => line.push_str(&format!("{cell:<width$}")),
            4 => line.push_str(&format!("    {cell:>width$}")),
            _ => line.push_str(&format!("  {cell:>width$}")),
        }
    }
    line
}
