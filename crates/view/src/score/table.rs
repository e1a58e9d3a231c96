//! The table of `treebeam score`: a line per metric that both sides have, and a word on those that they have not.

use super::{Colour, Scoring, Tone};
use crate::figure::{NONE, change, figure};
use crate::line::{field, first_few, one_line, shorten};
use crate::words::count;
use treebeam_core::num::Finite;
use treebeam_core::paired::PairCounts;
use treebeam_core::policy::{Direction, Metric, ScorePolicy};
use treebeam_core::score::MetricUse;
use unicode_width::UnicodeWidthStr as _;

const HEAD: [&str; 7] =
    ["metric", "baseline", "candidate", "change", "relative", "weight", "wins:losses"];
const LEGEND: &str =
    "▲ better, ▼ worse, = equal; * primary, ! guarded, ↓ lower is better; █ won, · drawn, ░ lost";
/// The longest name of a metric.
const NAME_CHARS: usize = 60;
/// How many missing metrics are named.
const MOST: usize = 4;
/// How long the bar of wins and losses is.
const BAR: u32 = 10;

pub(super) fn table(scoring: &Scoring<'_>, colour: Colour) -> Vec<String> {
    let details = &scoring.judgement.vs_parent;
    let missing = missing(scoring.policy, &details.metrics);
    let mut lines = Vec::new();
    if !details.metrics.is_empty() {
        lines.extend(rows(scoring, &details.metrics, colour));
        lines.push(String::new());
        lines.push(LEGEND.to_owned());
    }
    lines.extend(missing.map(|missing| field("missing", &missing)));
    lines
}

fn rows(scoring: &Scoring<'_>, metrics: &[MetricUse], colour: Colour) -> Vec<String> {
    let cells: Vec<_> = metrics.iter().map(|metric| cells(scoring, metric)).collect();
    let mut widths = HEAD.map(width);
    for row in &cells {
        for (most, cell) in widths.iter_mut().zip(row) {
            *most = (*most).max(width(cell));
        }
    }
    let mut lines = vec![format!("  {}", line(&HEAD.map(str::to_owned), &widths))];
    lines.extend(metrics.iter().zip(&cells).map(|(metric, row)| {
        let (mark, tone) = mark(metric);
        format!("{} {}", colour.paint(tone, mark), line(row, &widths))
    }));
    lines
}

fn cells(scoring: &Scoring<'_>, metric: &MetricUse) -> [String; 7] {
    let mut columns = scoring.judgement.vs_parent.columns.iter();
    let column = columns.find(|column| column.column == metric.column);
    [
        name(scoring.policy, metric),
        figure(Finite::new(metric.baseline_mean)),
        figure(Finite::new(metric.candidate_mean)),
        change(column.and_then(|column| Finite::new(column.delta))),
        relative(metric),
        figure(Some(metric.weight)),
        counts(scoring, metric).map_or_else(|| NONE.to_owned(), bar),
    ]
}

/// Names to the left, numbers to the right.
fn line(cells: &[String; 7], widths: &[usize; 7]) -> String {
    let [name, numbers @ .., paired] = cells;
    let [name_width, number_widths @ .., _] = widths;
    let room = name_width.saturating_sub(width(name));
    let mut line = format!("{name}{}", " ".repeat(room));
    for (number, width) in numbers.iter().zip(number_widths) {
        line.push_str(&format!("  {number:>width$}"));
    }
    format!("{line}  {paired}")
}

/// How many places it takes on a terminal.
fn width(text: impl AsRef<str>) -> usize {
    text.as_ref().width()
}

/// Its name, with a sign for what is special about it.
pub(crate) fn name(policy: &ScorePolicy, metric: &MetricUse) -> String {
    let guarded = |known: &Metric| known.guard && known.column == metric.column;
    let flags = [
        (metric.column == policy.primary, " *"),
        (policy.metrics.iter().any(guarded), " !"),
        (metric.direction == Direction::Lower, " ↓"),
    ];
    let name = shorten(&one_line(&metric.column), NAME_CHARS);
    flags.iter().filter(|(set, _)| *set).fold(name, |name, (_, flag)| name + flag)
}

/// Marks whether a metric got better, worse, or is equal but for rounding.
pub(crate) fn mark(metric: &MetricUse) -> (&'static str, Tone) {
    match metric.gain() {
        gain if gain > 0.0 => ("▲", Tone::Good),
        gain if gain < 0.0 => ("▼", Tone::Bad),
        _ => ("=", Tone::Even),
    }
}

/// The change as a part of the baseline, with the change's own sign.
pub(crate) fn relative(metric: &MetricUse) -> String {
    const LARGE: f64 = 1e6;
    let percent = match metric.direction {
        Direction::Higher => metric.relative_improvement * 100.0,
        Direction::Lower => metric.relative_improvement * -100.0,
    };
    match Finite::new(percent) {
        None => NONE.to_owned(),
        Some(Finite::ZERO) => "0 %".to_owned(),
        Some(percent) if percent.get().abs() < LARGE => format!("{:+.2} %", percent.get()),
        percent => format!("{} %", change(percent)),
    }
}

/// The metric's own counts; the primary is compared pair by pair anyway.
fn counts(scoring: &Scoring<'_>, metric: &MetricUse) -> Option<PairCounts> {
    let primary = scoring.judgement.vs_parent.comparison.paired;
    let primary = primary.filter(|_| metric.column == scoring.policy.primary);
    let of_primary = primary.map(|paired| PairCounts {
        pairs: paired.pairs,
        wins: paired.wins,
        losses: paired.losses,
    });
    metric.paired.or(of_primary)
}

/// `███████·░░ 7:2`
fn bar(PairCounts { pairs, wins, losses }: PairCounts) -> String {
    let share = |part: u32| {
        let (part, whole) = (u64::from(part), u64::from(pairs.max(1)));
        let rounded = (part * u64::from(BAR) * 2 + whole) / (whole * 2);
        usize::try_from(rounded).unwrap_or_default()
    };
    let length = BAR as usize;
    let won = share(wins).min(length);
    let lost = share(losses).min(length - won);
    let bar = ["█".repeat(won), "·".repeat(length - won - lost), "░".repeat(lost)].concat();
    format!("{bar} {wins}:{losses}")
}

/// The configured metrics that cannot be compared, if there are any.
fn missing(policy: &ScorePolicy, used: &[MetricUse]) -> Option<String> {
    let is_used = |metric: &&Metric| used.iter().any(|used| used.column == metric.column);
    let missing: Vec<&Metric> = policy.metrics.iter().filter(|metric| !is_used(metric)).collect();
    if missing.is_empty() {
        return None;
    }
    let names = missing.iter().map(|metric| shorten(&one_line(&metric.column), NAME_CHARS));
    let (some, all) = (missing.len(), count(policy.metrics.len(), "metric"));
    let names = first_few(names, MOST);
    Some(format!("{some} of {all} without numbers on both sides: {names}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_wins_draws_and_losses() {
        let check = |pairs, wins, losses, expect: &str| {
            assert_eq!(bar(PairCounts { pairs, wins, losses }), expect);
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
