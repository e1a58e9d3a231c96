//! Renders the table of `treebeam score`: a line per metric that both sides have, and the missing
//! ones.

use super::{ColourMode, ScoreReport, ScoreTone};
use crate::figure::{NOT_AVAILABLE, format_change, format_figure};
use crate::safe_text::{first_few, format_field, one_line, shorten_text};
use crate::words::format_count;
use treebeam_core::num::Finite;
use treebeam_core::policy::{Direction, Metric, ScorePolicy};
use treebeam_score::compare::MetricUse;
use treebeam_score::paired::PairCounts;
use unicode_width::UnicodeWidthStr as _;

const TABLE_HEAD: [&str; 7] =
    ["metric", "baseline", "candidate", "change", "relative", "weight", "wins:losses"];
const TABLE_LEGEND: &str =
    "▲ better, ▼ worse, = equal; * primary, ! guarded, ↓ lower is better; █ won, · drawn, ░ lost";
/// Maximum length of a metric's name.
const MAX_NAME_CHARS: usize = 60;
/// Maximum number of missing metrics named.
const MAX_MISSING_METRICS: usize = 4;
/// Length of the bar of wins and losses.
const BAR_LENGTH: u32 = 10;

pub(super) fn metric_table_lines(scoring: &ScoreReport<'_>, colour: ColourMode) -> Vec<String> {
    let details = &scoring.judgement.vs_parent;
    let missing = missing_metrics(scoring.policy, &details.metrics);
    let mut lines = Vec::new();
    if !details.metrics.is_empty() {
        lines.extend(metric_row_lines(scoring, &details.metrics, colour));
        lines.push(String::new());
        lines.push(TABLE_LEGEND.to_owned());
    }
    lines.extend(missing.map(|missing| format_field("missing", &missing)));
    lines
}

fn metric_row_lines(
    scoring: &ScoreReport<'_>,
    metrics: &[MetricUse],
    colour: ColourMode,
) -> Vec<String> {
    let cells: Vec<_> = metrics.iter().map(|metric| metric_cells(scoring, metric)).collect();
    let mut widths = TABLE_HEAD.map(text_columns);
    for row in &cells {
        for (most, cell) in widths.iter_mut().zip(row) {
            *most = (*most).max(text_columns(cell));
        }
    }
    let mut lines = vec![format!("  {}", format_row(&TABLE_HEAD.map(str::to_owned), &widths))];
    lines.extend(metrics.iter().zip(&cells).map(|(metric, row)| {
        let (mark, tone) = metric_mark(metric);
        format!("{} {}", colour.paint(tone, mark), format_row(row, &widths))
    }));
    lines
}

fn metric_cells(scoring: &ScoreReport<'_>, metric: &MetricUse) -> [String; 7] {
    let mut columns = scoring.judgement.vs_parent.columns.iter();
    let column = columns.find(|column| column.column == metric.column);
    [
        metric_name(scoring.policy, metric),
        format_figure(Finite::new(metric.baseline_mean)),
        format_figure(Finite::new(metric.candidate_mean)),
        format_change(column.and_then(|column| Finite::new(column.delta))),
        relative_change(metric),
        format_figure(Some(metric.weight)),
        pair_counts(scoring, metric).map_or_else(|| NOT_AVAILABLE.to_owned(), render_pair_bar),
    ]
}

/// Formats a row: name left-aligned, numbers right-aligned.
fn format_row(cells: &[String; 7], widths: &[usize; 7]) -> String {
    let [name, numbers @ .., paired] = cells;
    let [name_width, number_widths @ .., _] = widths;
    let room = name_width.saturating_sub(text_columns(name));
    let mut line = format!("{name}{}", " ".repeat(room));
    for (number, width) in numbers.iter().zip(number_widths) {
        line.push_str(&format!("  {number:>width$}"));
    }
    format!("{line}  {paired}")
}

/// Returns the width of a text on a terminal, in columns.
fn text_columns(text: impl AsRef<str>) -> usize {
    text.as_ref().width()
}

/// Returns the name of a metric, with signs for primary, guarded and lower-is-better.
pub(crate) fn metric_name(policy: &ScorePolicy, metric: &MetricUse) -> String {
    let guarded = |known: &Metric| known.guard && known.column == metric.column;
    let flags = [
        (metric.column == policy.primary, " *"),
        (policy.metrics.iter().any(guarded), " !"),
        (metric.direction == Direction::Lower, " ↓"),
    ];
    let name = shorten_text(&one_line(&metric.column), MAX_NAME_CHARS);
    flags.iter().filter(|(set, _)| *set).fold(name, |name, (_, flag)| name + flag)
}

/// Returns the mark of a better, worse or (but for rounding) equal metric.
pub(crate) fn metric_mark(metric: &MetricUse) -> (&'static str, ScoreTone) {
    match metric.gain() {
        gain if gain > 0.0 => ("▲", ScoreTone::Good),
        gain if gain < 0.0 => ("▼", ScoreTone::Bad),
        _ => ("=", ScoreTone::Even),
    }
}

/// Formats the change relative to the baseline, with the sign of the change.
pub(crate) fn relative_change(metric: &MetricUse) -> String {
    const LARGE_PERCENT: f64 = 1e6;
    let percent = match metric.direction {
        Direction::Higher => metric.relative_improvement * 100.0,
        Direction::Lower => metric.relative_improvement * -100.0,
    };
    match Finite::new(percent) {
        None => NOT_AVAILABLE.to_owned(),
        Some(Finite::ZERO) => "0 %".to_owned(),
        Some(percent) if percent.get().abs() < LARGE_PERCENT => format!("{:+.2} %", percent.get()),
        percent => format!("{} %", format_change(percent)),
    }
}

/// Returns the metric's own counts; those of the primary are in the comparison anyway.
fn pair_counts(scoring: &ScoreReport<'_>, metric: &MetricUse) -> Option<PairCounts> {
    let primary = scoring.judgement.vs_parent.comparison.paired;
    let primary = primary.filter(|_| metric.column == scoring.policy.primary);
    let of_primary = primary.map(|paired| PairCounts {
        pairs: paired.pairs,
        wins: paired.wins,
        losses: paired.losses,
    });
    metric.paired.or(of_primary)
}

/// Formats wins and losses as `███████·░░ 7:2`.
fn render_pair_bar(PairCounts { pairs, wins, losses }: PairCounts) -> String {
    let share = |part: u32| {
        let (part, whole) = (u64::from(part), u64::from(pairs.max(1)));
        let rounded = (part * u64::from(BAR_LENGTH) * 2 + whole) / (whole * 2);
        usize::try_from(rounded).unwrap_or_default()
    };
    let length = BAR_LENGTH as usize;
    let won = share(wins).min(length);
    let lost = share(losses).min(length - won);
    let bar = ["█".repeat(won), "·".repeat(length - won - lost), "░".repeat(lost)].concat();
    format!("{bar} {wins}:{losses}")
}

/// Names the configured metrics that cannot be compared, if any.
fn missing_metrics(policy: &ScorePolicy, used: &[MetricUse]) -> Option<String> {
    let is_used = |metric: &&Metric| used.iter().any(|used| used.column == metric.column);
    let missing: Vec<&Metric> = policy.metrics.iter().filter(|metric| !is_used(metric)).collect();
    if missing.is_empty() {
        return None;
    }
    let names =
        missing.iter().map(|metric| shorten_text(&one_line(&metric.column), MAX_NAME_CHARS));
    let (some, all) = (missing.len(), format_count(policy.metrics.len(), "metric"));
    let names = first_few(names, MAX_MISSING_METRICS);
    Some(format!("{some} of {all} without numbers on both sides: {names}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_wins_draws_and_losses() {
        let check = |pairs, wins, losses, expect: &str| {
            assert_eq!(render_pair_bar(PairCounts { pairs, wins, losses }), expect);
        };
        check(10, 7, 2, "███████·░░ 7:2");
        check(2, 1, 1, "█████░░░░░ 1:1");
        check(3, 0, 0, "·········· 0:0");
        check(4, 1, 3, "███░░░░░░░ 1:3");
        check(100, 1, 99, "░░░░░░░░░░ 1:99");
        check(u32::MAX, u32::MAX, 0, "██████████ 4294967295:0");
        check(0, 0, 0, "·········· 0:0");
    }
}
