//! Reference scoring: SPEC section 8 implemented slowly and plainly. The accidents of the old
//! system's language can be turned on or off: with all it must equal the oracle, with none
//! treebeam, which shows the accident that separates the two.

use crate::figures::Figures;
use std::collections::BTreeMap;

/// Behaviour of the old system that is due only to its language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Accident {
    /// A byte-order mark is part of the first column's name.
    ByteOrderMark,
    /// A blank line is a row; as the first line it is the header.
    BlankLines,
    /// `1_000` and digits of other scripts are numbers.
    OtherDigits,
}

pub(crate) const ALL: [Accident; 3] =
    [Accident::ByteOrderMark, Accident::BlankLines, Accident::OtherDigits];

/// Metrics: column, higher is better, weight, guarded.
const METRICS: [(&str, bool, f64, bool); 15] = [
    (PRIMARY, true, 3.0, false),
    ("core_topN_cagr", true, 2.0, false),
    ("core_topN_sharpe", true, 1.5, false),
    ("core_topN_sortino", true, 1.5, false),
    ("core_topN_calmar", true, 1.5, false),
    ("rel_equity_ratio_end", true, 1.5, false),
    ("rel_equity_ratio_cagr", true, 1.0, false),
    ("rel_pct_outperform", true, 1.0, false),
    ("rel_pct_underperform", false, 1.0, false),
    ("core_topN_volatility", false, 0.75, false),
    ("core_topN_max_drawdown", true, 1.0, true),
    ("core_topN_cvar_05", true, 0.75, true),
    ("sig_t_stat", true, 0.5, false),
    ("sig_t_p_value", false, 0.5, false),
    ("sig_bootstrap_prob_mean_gt0", true, 0.5, false),
];
const PRIMARY: &str = "mean_topN_avg_return_per_trade_pct_oos";

/// Computes the figures of a candidate against a baseline.
pub(crate) fn compare(
    baseline: &[u8],
    candidate: &[u8],
    limit: Option<u32>,
    accidents: &[Accident],
) -> Figures {
    let (baseline_rows, baseline) = means(baseline, limit, accidents);
    let (candidate_rows, candidate) = means(candidate, limit, accidents);
    let mut figures = Figures::default();
    figures.number("baseline_rows_used".to_owned(), baseline_rows);
    figures.number("candidate_rows_used".to_owned(), candidate_rows);
    let mut shared = 0;
    for (column, before) in &baseline {
        let Some(after) = candidate.get(column) else { continue };
        shared += 1;
        let of = |key: &str| format!("column_deltas/{column}/{key}");
        figures.number(of("baseline_mean"), *before);
        figures.number(of("candidate_mean"), *after);
        figures.number(of("delta"), after - before);
    }
    figures.number("n_numeric_columns_compared".to_owned(), shared);
    recommend(&mut figures, &baseline, &candidate);
    figures
}

fn recommend(
    figures: &mut Figures,
    baseline: &BTreeMap<String, f64>,
    candidate: &BTreeMap<String, f64>,
) {
    let (mut sum, mut weights, mut up, mut down) = (0.0, 0.0, 0, 0);
    let (mut reasons, mut risks) = (Vec::new(), Vec::new());
    for (column, higher, weight, guarded) in METRICS {
        let (Some(before), Some(after)) = (baseline.get(column), candidate.get(column)) else {
            continue;
        };
        let size = before.abs();
        let raw = if higher { after - before } else { -(after - before) };
        let relative = raw / if size <= 1e-12 { 1.0 } else { size };
        sum += weight * relative.clamp(-2.0, 2.0);
        weights += weight;
        up += u32::from(raw > 0.0);
        down += u32::from(raw < 0.0);
        if column == PRIMARY && raw < -(0.05 * size) {
            reasons.push("primary_metric_regressed".to_owned());
        }
        if guarded && size > 1e-12 && raw < -(0.10 * size) {
            risks.push(column);
        }
        let of = |key: &str| format!("recommendation/metrics_used/{column}/{key}");
        figures.word(of("direction"), if higher { "higher" } else { "lower" });
        figures.number(of("weight"), weight);
        figures.number(of("baseline_mean"), *before);
        figures.number(of("candidate_mean"), *after);
        figures.number(of("raw_improvement"), raw);
        figures.number(of("relative_improvement"), relative);
    }
    if !risks.is_empty() {
        reasons.push(format!("risk_regressed: {}", risks.join(", ")));
    }
    let score = if weights == 0.0 { 0.0 } else { sum / weights };
    let explore = reasons.is_empty() && (score >= 0.03 || up >= (down + 2).max(2));
    reasons.push(if explore { "net_improvement" } else { "insufficient_signal" }.to_owned());
    let grades = [(0.10, "strong"), (0.03, "promising"), (-0.02, "mixed")];
    let grade = grades.iter().find(|(from, _)| score >= *from).map_or("weak", |(_, grade)| grade);
    let of = |key: &str| format!("recommendation/{key}");
    figures.number(of("score"), score);
    figures.word(of("grade"), grade);
    figures.word(of("should_explore"), &explore.to_string());
    figures.number(of("positive_signals"), up);
    figures.number(of("negative_signals"), down);
    for (at, reason) in reasons.iter().enumerate() {
        figures.word(of(&format!("reasons/{at}")), reason);
    }
}

/// Counts the rows that the limit selects, and averages each column over them; of two columns with
/// one name the first counts.
fn means(file: &[u8], limit: Option<u32>, accidents: &[Accident]) -> (u32, BTreeMap<String, f64>) {
    let mut text = std::str::from_utf8(file).unwrap();
    if !accidents.contains(&Accident::ByteOrderMark) {
        text = text.strip_prefix('\u{feff}').unwrap_or(text);
    }
    let mut rows = rows(text);
    if !accidents.contains(&Accident::BlankLines) {
        rows.retain(|row| row.len() > 1 || row.iter().any(|cell| !cell.trim().is_empty()));
    }
    let digits = accidents.contains(&Accident::OtherDigits);
    let header = if rows.is_empty() { Vec::new() } else { rows.remove(0) };
    let rows = select(&header, rows, limit, digits);
    let mut means = BTreeMap::new();
    for (at, column) in header.iter().enumerate() {
        let cells = rows.iter().filter_map(|row| row.get(at));
        let numbers: Vec<f64> =
            cells.filter_map(|cell| number(cell.trim_matches(is_space), digits)).collect();
        if !numbers.is_empty() {
            means.entry(column.clone()).or_insert_with(|| mean(&numbers));
        }
    }
    (u32::try_from(rows.len()).unwrap(), means)
}

fn select(
    header: &[String],
    rows: Vec<Vec<String>>,
    limit: Option<u32>,
    digits: bool,
) -> Vec<Vec<String>> {
    let Some(limit) = limit else { return rows };
    let id = header.iter().position(|column| column == "config_id");
    let below = |row: &&Vec<String>| {
        let cell = id.and_then(|at| row.get(at));
        let is_edge = |c: char| is_space(c) || ('\x1c'..='\x1f').contains(&c);
        let number = cell.and_then(|cell| number(cell.trim_matches(is_edge), digits));
        number.is_some_and(|number| number.trunc() < f64::from(limit))
    };
    let selected: Vec<Vec<String>> = rows.iter().filter(below).cloned().collect();
    if !selected.is_empty() {
        return selected;
    }
    rows.into_iter().take(usize::try_from(limit).unwrap()).collect()
}

fn is_space(c: char) -> bool {
    c.is_whitespace()
}

fn number(text: &str, digits: bool) -> Option<f64> {
    let number: Option<f64> =
        if digits { spelled_out(text).parse().ok() } else { text.parse().ok() };
    number.filter(|number| number.is_finite())
}

/// Converts digits to ASCII, and removes each `_` between two of them.
fn spelled_out(text: &str) -> String {
    let ascii = |c: char| match c {
        '\u{660}'..='\u{669}' => char::from_digit(u32::from(c) - 0x660, 10).unwrap(),
        other => other,
    };
    let text: Vec<char> = text.chars().map(ascii).collect();
    let digit =
        |at: Option<usize>| at.and_then(|at| text.get(at)).is_some_and(char::is_ascii_digit);
    let kept = text
        .iter()
        .enumerate()
        .filter(|(at, c)| !(**c == '_' && digit(at.checked_sub(1)) && digit(Some(at + 1))));
    kept.map(|(_, c)| *c).collect()
}

/// Divides the exact sum by the number of terms, rounded once to the nearest number. Large terms
/// are halved so often that no sum overflows.
fn mean(numbers: &[f64]) -> f64 {
    let large = numbers.iter().any(|number| number.abs() > 1e290);
    let scale = if large { 2_f64.powi(-64) } else { 1.0 };
    let count = f64::from(u32::try_from(numbers.len()).unwrap());
    let parts = numbers.iter().fold(Vec::new(), |parts, number| with(parts, number * scale));
    let quotient = parts.iter().sum::<f64>() / count;
    let rest = |mean: f64| {
        let product = mean * count;
        let without = with(parts.clone(), -product);
        with(without, -mean.mul_add(count, -product)).iter().sum::<f64>().abs()
    };
    let mut near = [quotient.next_down(), quotient, quotient.next_up()];
    near.sort_by(|a, b| {
        rest(*a).total_cmp(&rest(*b)).then((a.to_bits() & 1).cmp(&(b.to_bits() & 1)))
    });
    near[0] / scale
}

/// Adds a term to an exact sum, kept as parts that do not overlap, smallest first.
fn with(parts: Vec<f64>, term: f64) -> Vec<f64> {
    let (mut rest, mut kept) = (term, Vec::new());
    for part in parts {
        let (large, small) = if rest.abs() < part.abs() { (part, rest) } else { (rest, part) };
        let sum = large + small;
        let lost = small - (sum - large);
        if lost != 0.0 {
            kept.push(lost);
        }
        rest = sum;
    }
    kept.push(rest);
    kept
}

/// Splits a CSV into rows, including blank ones, which have no cell.
fn rows(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let (mut quoted, mut anything) = (false, false);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' if quoted && rest.peek() == Some(&'"') => cell.extend(rest.next()),
            '"' if quoted => quoted = false,
            _ if quoted => cell.push(c),
            '"' if cell.is_empty() => (quoted, anything) = (true, true),
            ',' => {
                row.push(std::mem::take(&mut cell));
                anything = true;
            }
            '\r' | '\n' => {
                if c == '\r' && rest.peek() == Some(&'\n') {
                    rest.next();
                }
                if anything {
                    row.push(std::mem::take(&mut cell));
                }
                rows.push(std::mem::take(&mut row));
                anything = false;
            }
            _ => {
                cell.push(c);
                anything = true;
            }
        }
    }
    if anything {
        row.push(cell);
        rows.push(row);
    }
    rows
}
