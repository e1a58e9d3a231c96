//! Properties of all sweeps, from their text to figures and verdict. Single cases are in
//! `scoring.rs`, the selection of the beam in `places.rs`.

#![cfg(test)]

use proptest::prelude::*;
use std::num::NonZeroU32;
use treebeam_core::event::Approval;
use treebeam_core::evidence::{PairedDifference, Recommendation};
use treebeam_core::gate::{GateVerdict, judge_candidate};
use treebeam_core::num::Finite;
use treebeam_core::policy::{Direction, FixedSettings, Metric, ScorePolicy};
use treebeam_score::compare::{ComparisonDetails, ScoringDetails, compare_sweeps, score_candidate};
use treebeam_score::sweep_csv::Sweep;

/// Primary `m`, the lower-is-better `cost`, the guarded `risk`, `extra`; `p` is invariant.
fn meaning(limit: Option<u32>) -> FixedSettings {
    let metric = |column: &str, direction, weight, guard| Metric {
        column: column.to_owned(),
        direction,
        weight: Finite::new(weight).unwrap(),
        guard,
    };
    let score = ScorePolicy {
        primary: "m".to_owned(),
        metrics: vec![
            metric("m", Direction::Higher, 3.0, false),
            metric("cost", Direction::Lower, 1.0, false),
            metric("risk", Direction::Higher, 1.0, true),
            metric("extra", Direction::Higher, 0.5, false),
        ],
        invariant_columns: vec!["p".to_owned()],
        ..ScorePolicy::trading_preset()
    };
    FixedSettings {
        score,
        sweep_config_limit: limit.and_then(NonZeroU32::new),
        ..FixedSettings::default()
    }
}

const COLUMNS: [&str; 7] = ["config_id", "status", "m", "cost", "risk", "extra", "p"];

/// Cells that hold no number, or one that is hard to add.
const ODD: [&str; 11] = [
    "",
    "nan",
    "inf",
    "text",
    " 2.5 ",
    "1e16",
    "-1e16",
    "a,b",
    "he said \"no\"",
    "two\nlines",
    "1e400",
];

/// Table of cells below [`COLUMNS`]; a row may have one cell too many.
type Table = Vec<Vec<String>>;

fn number() -> impl Strategy<Value = String> {
    (-1000_i32..1000).prop_map(|n| (f64::from(n) / 16.0).to_string())
}

fn cell() -> impl Strategy<Value = String> {
    prop_oneof![12 => number(), 1 => prop::sample::select(&ODD[..]).prop_map(str::to_owned)]
}

/// Ids count up from 0, unless some may repeat; 0 is always present, so that a limit selects by id.
fn table(ids: impl Strategy<Value = Option<usize>>) -> impl Strategy<Value = Table> {
    let status = prop_oneof![8 => Just("ok"), 1 => Just("error")];
    let more = prop_oneof![15 => Just(None), 1 => Just(Some("more"))];
    let row = (ids, status, [cell(), cell(), cell(), cell()], 0..3_u8, more);
    prop::collection::vec(row, 1..8).prop_map(|rows| {
        let row = |(number, (id, status, numbers, p, more)): (usize, _)| {
            let (id, status, more): (Option<usize>, &str, Option<&str>) = (id, status, more);
            let numbers: [String; 4] = numbers;
            let p: u8 = p;
            let head = [id.filter(|_| number > 0).unwrap_or(number).to_string(), status.to_owned()];
            let tail = std::iter::once(p.to_string()).chain(more.map(str::to_owned));
            head.into_iter().chain(numbers).chain(tail).collect()
        };
        rows.into_iter().enumerate().map(row).collect()
    })
}

fn distinct() -> impl Strategy<Value = Table> {
    table(Just(None))
}

/// Layout in which a table is written.
#[derive(Clone, Debug)]
struct Writing {
    rows: Vec<prop::sample::Index>,
    columns: Vec<usize>,
    line_end: &'static str,
    mark: &'static str,
    quoted: u64,
}

fn writing() -> impl Strategy<Value = Writing> {
    let columns: Vec<usize> = (0..COLUMNS.len()).collect();
    (
        prop::collection::vec(any::<prop::sample::Index>(), 8),
        Just(columns).prop_shuffle(),
        prop::sample::select(&["\n", "\r\n", "\r", "\n\n", "\r\n \r\n"][..]),
        prop::sample::select(&["", "\u{feff}"][..]),
        any::<u64>(),
    )
        .prop_map(|(rows, columns, line_end, mark, quoted)| Writing {
            rows,
            columns,
            line_end,
            mark,
            quoted,
        })
}

fn plain() -> Writing {
    let columns = (0..COLUMNS.len()).collect();
    Writing { rows: Vec::new(), columns, line_end: "\n", mark: "", quoted: 0 }
}

impl Writing {
    fn text(&self, table: &Table) -> String {
        let mut rows = table.clone();
        for (at, to) in self.rows.iter().enumerate().take(rows.len()) {
            let to = to.index(rows.len());
            rows.swap(at, to);
        }
        let header: Vec<String> = COLUMNS.map(str::to_owned).to_vec();
        let lines = std::iter::once(&header).chain(&rows).enumerate();
        let lines = lines.map(|(line, cells)| self.line(line, cells) + self.line_end);
        self.mark.to_owned() + &lines.collect::<String>()
    }

    fn line(&self, line: usize, cells: &[String]) -> String {
        let beyond = COLUMNS.len()..cells.len();
        let cells = self.columns.iter().copied().chain(beyond).map(|at| {
            let (cell, asked) = (&cells[at], self.quoted >> ((line * 8 + at) % 64) & 1 == 1);
            let needed = cell.contains([',', '"', '\n']);
            if asked || needed {
                format!("\"{}\"", cell.replace('"', "\"\""))
            } else {
                cell.clone()
            }
        });
        cells.collect::<Vec<_>>().join(",")
    }
}

fn read(text: &str, meaning: &FixedSettings) -> Sweep {
    Sweep::read_csv(text.as_bytes(), "sweep.csv", meaning.config_limit(), &meaning.score).unwrap()
}

/// Scores and judges a candidate from three texts; columns are sorted by name.
fn judged(
    [parent, root, candidate]: [&str; 3],
    meaning: &FixedSettings,
) -> (ScoringDetails, GateVerdict) {
    let [parent, root, candidate] = [parent, root, candidate].map(|text| read(text, meaning));
    let mut judged =
        score_candidate(&parent, &root, &candidate, meaning, root.rows_used()).unwrap();
    for details in [&mut judged.vs_parent, &mut judged.vs_root] {
        details.columns.sort_by(|a, b| a.column.cmp(&b.column));
    }
    // The lines of a file depend on how it is written.
    judged.scored.form.ragged_lines = Vec::new();
    let verdict = judge_candidate(&judged.scored, 1, Approval::Unreviewed, meaning);
    (judged, verdict)
}

fn compared(baseline: &Table, candidate: &Table) -> ComparisonDetails {
    let meaning = meaning(None);
    let read = |table: &Table| read(&plain().text(table), &meaning);
    compare_sweeps(&read(baseline), &read(candidate), &meaning.score).unwrap()
}

fn with(table: &Table, replace: impl Fn(usize, usize, &str) -> Option<String>) -> Table {
    let cell = |row, at, cell: &String| replace(row, at, cell).unwrap_or_else(|| cell.clone());
    let rows = table.iter().enumerate();
    rows.map(|(row, cells)| {
        cells.iter().enumerate().map(|(at, text)| cell(row, at, text)).collect()
    })
    .collect()
}

proptest! {
    #[test]
    fn how_it_is_written_does_not_matter(
        mut tables in [
            table(prop::option::weighted(0.2, 0..6_usize)).boxed(),
            distinct().boxed(),
            table(prop::option::weighted(0.2, 0..6_usize)).boxed(),
        ],
        writings in [writing(), writing(), writing()],
        limit in prop::option::of(1..8_u32),
        has_effect in any::<bool>(),
    ) {
        if !has_effect {
            tables[2] = tables[0].clone();
        }
        let meaning = meaning(limit);
        let written = |writings: [&Writing; 3]| -> Vec<String> {
            writings.iter().zip(&tables).map(|(writing, table)| writing.text(table)).collect()
        };
        let plain = plain();
        let (one, other) = (written([&plain; 3]), written(writings.each_ref()));
        let judged = |texts: &[String]| judged([&texts[0], &texts[1], &texts[2]], &meaning);
        prop_assert_eq!(judged(&one), judged(&other), "{:?}", other);
    }

    #[test]
    fn metrics_in_other_units_say_the_same(
        rows in prop::collection::vec([[1_i32..10_000, 1..10_000, 1..10_000, 1..10_000], [1..10_000, 1..10_000, 1..10_000, 1..10_000]], 1..8),
        powers in [-30_i32..30, -30..30, -30..30, -30..30],
    ) {
        let text = |side: usize, powers: [i32; 4]| -> Table {
            let row = |(id, row): (usize, &[[i32; 4]; 2])| {
                let numbers = row[side].iter().zip(powers).enumerate().map(|(at, (number, power))| {
                    let sign = if at == 2 { -1.0 } else { 1.0 };
                    format!("{:e}", sign * f64::from(*number) / 8.0 * 2_f64.powi(power))
                });
                let head = [id.to_string(), "ok".to_owned()];
                head.into_iter().chain(numbers).chain(["0".to_owned()]).collect()
            };
            rows.iter().enumerate().map(row).collect()
        };
        let at = |powers| compared(&text(0, powers), &text(1, powers));
        let (plain, scaled) = (at([0; 4]), at(powers));
        let relative = |details: &ComparisonDetails| -> Vec<u64> {
            details.metrics.iter().map(|metric| metric.relative_improvement.to_bits()).collect()
        };
        prop_assert_eq!(relative(&plain), relative(&scaled));
        prop_assert_eq!(&plain.comparison.recommendation, &scaled.comparison.recommendation);
        let paired = |details: &ComparisonDetails, scale: f64| {
            let ends = |p: PairedDifference| [p.mean_difference, p.low, p.high].map(|end| end.get() * scale);
            details.comparison.paired.map(|p| (p.pairs, p.wins, p.losses, ends(p)))
        };
        prop_assert_eq!(paired(&plain, 2_f64.powi(powers[0])), paired(&scaled, 1.0));
    }

    #[test]
    fn the_other_way_round_every_improvement_turns(baseline in distinct(), candidate in distinct()) {
        let (there, back) = (compared(&baseline, &candidate), compared(&candidate, &baseline));
        let raw = |details: &ComparisonDetails, sign: f64| -> Vec<(String, f64)> {
            details.metrics.iter().map(|metric| (metric.column.clone(), sign * metric.raw_improvement)).collect()
        };
        prop_assert_eq!(raw(&there, 1.0), raw(&back, -1.0));
        for (there, back) in there.metrics.iter().zip(&back.metrics) {
            let (there, back) = (there.relative_improvement, back.relative_improvement);
            let turned = there > 0.0 && back < 0.0 || there < 0.0 && back > 0.0;
            prop_assert!(turned || there == 0.0 && back == 0.0, "{} {}", there, back);
        }
        let signals = |r: &Recommendation| (r.positive_signals, r.negative_signals);
        let (positive, negative) = signals(&there.comparison.recommendation);
        prop_assert_eq!(signals(&back.comparison.recommendation), (negative, positive));
        let delta = |details: &ComparisonDetails, sign: f64| details.comparison.primary_delta.map(|delta| sign * delta.get());
        prop_assert_eq!(delta(&there, 1.0), delta(&back, -1.0));
        let paired = |details: &ComparisonDetails, sign: f64| details.comparison.paired.map(|p| (p.pairs, sign * p.mean_difference.get()));
        prop_assert_eq!(paired(&there, 1.0), paired(&back, -1.0));
        let wins = |details: &ComparisonDetails| details.comparison.paired.map(|p| (p.wins, p.losses));
        prop_assert_eq!(wins(&there), wins(&back).map(|(wins, losses)| (losses, wins)));
    }

    #[test]
    fn the_same_against_itself_is_no_change(table in distinct()) {
        let same = compared(&table, &table);
        prop_assert_eq!(same.comparison.recommendation.score, Finite::ZERO);
        prop_assert!(same.columns.iter().all(|column| column.delta == 0.0));
        prop_assert!(same.comparison.paired.is_none_or(|paired| paired.wins + paired.losses == 0));
        let text = plain().text(&table);
        prop_assert!(!judged([&text; 3], &meaning(None)).1.has_passed());
    }

    #[test]
    fn minus_zero_is_zero(tables in [distinct(), distinct()], zeros in any::<u64>(), spelling in prop::sample::select(&["-0.0", "-0", "-0e5", " -0.00 "][..])) {
        let is_zero = |row: usize, at: usize| (2..6).contains(&at) && zeros >> ((row * 4 + at) % 64) & 1 == 1;
        let spelled = |zero: &str| -> Vec<String> {
            let table = |table: &Table| with(table, |row, at, _| is_zero(row, at).then(|| zero.to_owned()));
            tables.iter().map(|one| plain().text(&table(one))).collect()
        };
        let (one, other) = (spelled("0"), spelled(spelling));
        let meaning = meaning(None);
        let of = |parent: &String, candidate: &String| judged([parent, &one[0], candidate], &meaning);
        prop_assert_eq!(of(&one[0], &one[1]), of(&other[0], &other[1]));
        prop_assert!(!of(&one[1], &other[1]).0.scored.has_effect);
        let bits = |text: &String| -> Vec<u64> { read(text, &meaning).column_means().map(|(_, mean)| (mean + 0.0).to_bits()).collect() };
        prop_assert_eq!(bits(&one[1]), bits(&other[1]));
    }
}
