//! The best code state against the root on the results that a search saw and on those that it never saw: a table, and how
//! much of the gain is left. Compares nothing itself.

use crate::figure::{NONE, figure};
use crate::line::{one_line, shorten};
use treebeam_core::num::Finite;
use treebeam_core::score::{Details, MetricUse};

/// The longest name of a metric.
const NAME_CHARS: usize = 40;
const HEAD: [&str; 7] = ["", "root", "best", "gain", "root", "best", "gain"];

/// A line for each metric, first with what the search saw and then with what it never saw.
#[must_use]
pub fn holdout(seen: &Details, unseen: &Details) -> String {
    let rows: Vec<_> = seen.metrics.iter().map(|metric| cells(metric, unseen)).collect();
    let mut widths = HEAD.map(|head| head.chars().count());
    for row in &rows {
        for (most, cell) in widths.iter_mut().zip(row) {
            *most = (*most).max(cell.chars().count());
        }
    }
    let [name, root, best, gain, ..] = widths;
    let seen_width = root + best + gain + 4;
    let above = format!("{:name$}  {:<seen_width$}    hold-out", "", "search");
    let lines = [HEAD.map(str::to_owned)].into_iter().chain(rows).map(|row| line(&row, &widths));
    let lines: Vec<_> = std::iter::once(above).chain(lines).collect();
    lines.join("\n") + "\n"
}

/// How much of a metric's relative gain is left on what the search never saw; none where there was no gain.
#[must_use]
pub fn kept(seen: &Details, unseen: &Details, column: &str) -> Option<f64> {
    let gain = |details: &Details| find(details, column).map(|metric| metric.relative_improvement);
    let (seen, unseen) = (gain(seen)?, gain(unseen)?);
    (seen > 0.0).then_some(unseen / seen).filter(|kept| kept.is_finite())
}

fn find<'a>(details: &'a Details, column: &str) -> Option<&'a MetricUse> {
    details.metrics.iter().find(|metric| metric.column == column)
}

fn cells(seen: &MetricUse, unseen: &Details) -> [String; 7] {
    let name = shorten(&one_line(&seen.column), NAME_CHARS);
    let [root, best, gain] = figures(Some(seen));
    let [held_root, held_best, held_gain] = figures(find(unseen, &seen.column));
    [name, root, best, gain, held_root, held_best, held_gain]
}

fn figures(metric: Option<&MetricUse>) -> [String; 3] {
    let Some(metric) = metric else { return [NONE; 3].map(str::to_owned) };
    [
        figure(Finite::new(metric.baseline_mean)),
        figure(Finite::new(metric.candidate_mean)),
        format!("{:+.1} %", 100.0 * metric.relative_improvement),
    ]
}

/// The name to the left, numbers to the right, and a wider gap between what was seen and what was not.
fn line(cells: &[String; 7], widths: &[usize; 7]) -> String {
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
