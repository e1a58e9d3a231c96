//! Two sweeps compared, from text to figures: by table, and by what may change without changing the result.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use proptest::prelude::*;
use std::num::NonZeroU32;
use treebeam_core::evidence::Recommendation;
use treebeam_core::num::Finite;
use treebeam_core::policy::{Direction, Meaning, Metric, ScorePolicy};
use treebeam_core::score::{Details, Judgement, ScoreError, compare, judge};
use treebeam_core::sweep::Sweep;

fn metric(column: &str, direction: Direction, weight: f64, guard: bool) -> Metric {
    Metric { column: column.to_owned(), direction, weight: Finite::new(weight).unwrap(), guard }
}

/// Primary `m` (weight 3), `cost` (lower is better, 1), the guarded `risk` (1) and `extra` (0.5).
fn policy() -> ScorePolicy {
    ScorePolicy {
        primary: "m".to_owned(),
        metrics: vec![
            metric("m", Direction::Higher, 3.0, false),
            metric("cost", Direction::Lower, 1.0, false),
            metric("risk", Direction::Higher, 1.0, true),
            metric("extra", Direction::Higher, 0.5, false),
        ],
        ..ScorePolicy::trading()
    }
}

fn sweep(text: &str) -> Sweep {
    Sweep::read(text.as_bytes(), "sweep.csv", None, &policy()).unwrap()
}

/// One row of `m`, `cost`, `risk`, `extra`.
fn row(values: &str) -> Sweep {
    sweep(&format!("config_id,m,cost,risk,extra\n0,{}\n", values.replace(' ', ",")))
}

fn verdict(recommendation: &Recommendation) -> String {
    let Recommendation {
        should_explore,
        grade,
        score,
        positive_signals,
        negative_signals,
        reasons,
        ..
    } = recommendation;
    let explore = if *should_explore { "explore" } else { "leave" };
    let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
    format!(
        "{explore} {grade} {score:.4} +{positive_signals} -{negative_signals} {}",
        reasons.join("; ")
    )
}

#[track_caller]
fn check(baseline: &str, candidate: &str, expect: &str) {
    let details = compare(&row(baseline), &row(candidate), &policy()).unwrap();
    assert_eq!(verdict(&details.comparison.recommendation), expect, "{baseline} → {candidate}");
}

#[test]
fn recommendations() {
    check("1 1 -1 1", "1 1 -1 1", "leave mixed 0.0000 +0 -0 insufficient_signal");
    check("1 1 -1 1", "1.5 1 -1 1", "explore strong 0.2727 +1 -0 net_improvement");
    check("1 1 -1 1", "1 1.5 -1 1", "leave weak -0.0909 +0 -1 insufficient_signal");
    check("1 1 -1 1", "1.01 0.99 -1 1", "explore mixed 0.0073 +2 -0 net_improvement");
    check("1 1 -1 1", "1.01 0.99 -1 0.99", "leave mixed 0.0064 +2 -1 insufficient_signal");
    check("1 1 -1 1", "9 1 -1 1", "explore strong 1.0909 +1 -0 net_improvement");
    check(
        "1 1 -1 1",
        "1 1 -1.5 3",
        "leave promising 0.0909 +1 -1 risk_regressed: risk; insufficient_signal",
    );
    check(
        "1 1 -1 1",
        "0.5 1 -2 1",
        "leave weak -0.4545 +0 -2 primary_metric_regressed; risk_regressed: risk; insufficient_signal",
    );
}

#[test]
fn thresholds_are_held_at_and_broken_beyond() {
    let regressed = |baseline: &str, candidate: &str| {
        let recommendation =
            compare(&row(baseline), &row(candidate), &policy()).unwrap().comparison.recommendation;
        (recommendation.primary_regressed(), recommendation.risk_regressed())
    };
    for (baseline, candidate, expect) in [
        ("100 1 -100 1", "95 1 -110 1", (false, false)),
        ("100 1 -100 1", "94.99 1 -110.01 1", (true, true)),
        // In floating point 0.019 is worse than 0.02 by a little more than 5 %.
        ("0.02 1 -0.25 1", "0.019 1 -0.275 1", (true, true)),
        ("0 1 0 1", "-1e-300 1 -5 1", (true, false)),
        ("1e-13 1 1e-13 1", "-1e-13 1 -1e-13 1", (true, false)),
    ] {
        assert_eq!(regressed(baseline, candidate), expect, "{baseline} → {candidate}");
    }
}

#[test]
fn nothing_wins_by_being_no_number() {
    for bad in ["nan", "inf", "-inf", "", "1e400", "None"] {
        let details = compare(&row("1 1 -1 1"), &row(&format!("{bad} 1 -1 1")), &policy()).unwrap();
        assert_eq!(details.comparison.primary_delta, None, "{bad}");
        assert_eq!(details.comparison.recommendation.metrics_used, 3, "{bad}");
        assert!(!details.comparison.recommendation.should_explore, "{bad}");
    }
    let huge = compare(&row("-1.7e308 1 -1 1"), &row("1.7e308 1 -1 1"), &policy()).unwrap();
    assert_eq!(huge.comparison.primary_delta, None, "a delta that is no number");
    assert!(huge.metrics[0].raw_improvement.is_infinite());
    assert!(huge.comparison.recommendation.score.get() <= 2.0);
}

#[test]
fn columns_come_in_the_order_of_the_baseline() {
    let details =
        compare(&sweep("z,m,a\n1,2,x\n"), &sweep("a,m,z,new\n1,3,4,5\n"), &policy()).unwrap();
    let columns: Vec<_> = details.columns.iter().map(|c| (c.column.as_str(), c.delta)).collect();
    assert_eq!(columns, [("z", 3.0), ("m", 1.0)]);
}

#[test]
fn without_a_shared_column_there_is_nothing_to_compare() {
    let error = compare(&sweep("m\n1\n"), &sweep("config_id;m\n0;1\n"), &policy()).unwrap_err();
    assert!(matches!(error, ScoreError::NothingShared { .. }));
    let none = |text: &str| Sweep::read(text.as_bytes(), "none.csv", Some(0), &policy()).unwrap();
    let empty = compare(&none("m\n1\n"), &none("m\n1\n"), &policy()).unwrap();
    assert_eq!(
        verdict(&empty.comparison.recommendation),
        "leave mixed 0.0000 +0 -0 insufficient_signal"
    );
}

#[test]
fn lower_can_be_better_for_the_primary() {
    let policy = ScorePolicy { primary: "cost".to_owned(), ..policy() };
    let details = compare(&row("1 1 -1 1"), &row("1 0.5 -1 1"), &policy).unwrap();
    assert_eq!(details.comparison.primary_delta, Finite::new(0.5));
    assert!(!details.comparison.recommendation.primary_regressed());
}

fn judged(parent: &str, candidate: &str) -> Judgement {
    let mut meaning =
        Meaning { score: policy(), sweep_config_limit: NonZeroU32::new(2), ..Meaning::default() };
    meaning.score.invariant_columns = vec!["seed".to_owned(), "periods".to_owned()];
    let read = |text: &str| {
        let text = format!("config_id,m,seed,periods\n{}\n", text.replace(' ', "\n"));
        Sweep::read(text.as_bytes(), "sweep.csv", Some(2), &meaning.score).unwrap()
    };
    judge(&read(parent), &read("0,1,7,24 1,2,8,24"), &read(candidate), &meaning, 2).unwrap()
}

#[test]
fn a_judgement_says_what_changed() {
    for (parent, candidate, effect, invariants) in [
        ("0,1,7,24 1,2,8,24", "1,2.0,8,24 0,1,7,24.0", false, &[][..]),
        ("0,1,7,24 1,2,8,24", "0,1,7,24 1,2.5,8,24", true, &[]),
        ("0,1,7,24 1,2,8,24", "0,1,7,24", true, &[]),
        ("0,1,7,24 1,2,8,24", "0,2,7,24 1,1,8,24", true, &[]),
        ("0,1,7,24 1,2,8,24", "0,1,7,12 1,2,8,24", false, &["periods"]),
        ("0,1,9,24 1,2,9,24", "0,1,9,12 1,2,9,24", false, &["seed", "periods"]),
    ] {
        let scored = judged(parent, candidate).scored;
        assert_eq!(scored.has_effect, effect, "{parent} → {candidate}");
        assert_eq!(scored.form.changed_invariants, invariants, "{parent} → {candidate}");
    }
}

#[test]
fn a_judgement_counts_what_is_there() {
    let scored = judged("0,1,7,24 1,2,8,24", "0,1,7,24 0,1,7,24 1,nan,8").scored;
    let complete = scored.completeness;
    assert_eq!((complete.expected_count, complete.ok_count, complete.error_count), (2, 1, 1));
    assert_eq!((scored.form.ragged_rows, scored.form.duplicate_ids), (1, 1));
    assert_eq!(scored.vs_parent.candidate_rows_used, 3);
    assert_eq!(scored.vs_root.paired, None);
}

const COLUMNS: [&str; 5] = ["config_id", "m", "cost", "risk", "extra"];

/// A table of cells, mostly numbers.
fn table() -> impl Strategy<Value = Vec<[String; 5]>> {
    let cell = prop_oneof![
        12 => (-1000_i32..1000).prop_map(|n| (f64::from(n) / 16.0).to_string()),
        1 => prop::sample::select(vec!["", "nan", "inf", "text", " 2.5 ", "1e16", "-1e16"]).prop_map(str::to_owned),
    ];
    prop::collection::vec([cell.clone(), cell.clone(), cell.clone(), cell], 1..8).prop_map(|rows| {
        let numbered = rows.into_iter().enumerate();
        numbered.map(|(id, [a, b, c, d])| [id.to_string(), a, b, c, d]).collect()
    })
}

fn csv(rows: &[[String; 5]], order: &[usize], line_end: &str) -> String {
    let line =
        |cells: &[&str]| order.iter().map(|at| cells[*at]).collect::<Vec<_>>().join(",") + line_end;
    let cells = rows.iter().map(|row| line(&row.each_ref().map(String::as_str)));
    line(&COLUMNS) + &cells.collect::<String>()
}

fn details(baseline: &str, candidate: &str) -> Details {
    let mut details = compare(&sweep(baseline), &sweep(candidate), &policy()).unwrap();
    details.columns.sort_by(|a, b| a.column.cmp(&b.column));
    details
}

const PLAIN: [usize; 5] = [0, 1, 2, 3, 4];

proptest! {
    #[test]
    fn neither_order_nor_line_ends_nor_a_byte_order_mark_matter(
        baseline in table(),
        (candidate, shuffled) in table().prop_flat_map(|rows| (Just(rows.clone()), Just(rows).prop_shuffle())),
        order in Just(PLAIN.to_vec()).prop_shuffle(),
        line_end in prop::sample::select(vec!["\n", "\r\n", "\r", "\n\n"]),
        mark in prop::sample::select(vec!["", "\u{feff}"]),
    ) {
        let baseline = csv(&baseline, &PLAIN, "\n");
        let plain = details(&baseline, &csv(&candidate, &PLAIN, "\n"));
        let other = details(&baseline, &(mark.to_owned() + &csv(&shuffled, &order, line_end)));
        prop_assert_eq!(plain, other);
    }

    #[test]
    fn a_metric_in_other_units_says_the_same(
        rows in prop::collection::vec((1_i32..10_000, 1_i32..10_000), 1..8),
        power in -30_i32..30,
    ) {
        let text = |scale: f64, of: fn(&(i32, i32)) -> i32| {
            let lines = rows.iter().enumerate().map(|(id, row)| format!("{id},{:?}\n", f64::from(of(row)) / 8.0 * scale));
            format!("config_id,m\n{}", lines.collect::<String>())
        };
        let at = |scale: f64| details(&text(scale, |row| row.0), &text(scale, |row| row.1));
        let (plain, scaled) = (at(1.0), at(2_f64.powi(power)));
        let relative = |details: &Details| details.metrics[0].relative_improvement.to_bits();
        prop_assert_eq!(relative(&plain), relative(&scaled));
        prop_assert_eq!(plain.comparison.recommendation, scaled.comparison.recommendation);
    }

    #[test]
    fn the_same_against_itself_is_no_change(rows in table()) {
        let text = csv(&rows, &PLAIN, "\n");
        let same = details(&text, &text);
        prop_assert_eq!(same.comparison.recommendation.score, Finite::ZERO);
        prop_assert!(same.columns.iter().all(|column| column.delta == 0.0));
        prop_assert!(same.comparison.paired.is_none_or(|paired| paired.wins + paired.losses == 0));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(prop_oneof![
        4 => prop::sample::select(b"01,\"\n\r. -e\0m".to_vec()),
        1 => any::<u8>(),
    ], 0..60)) {
        let mut text = b"config_id,m\n".to_vec();
        text.extend(bytes);
        if let Ok(read) = Sweep::read(text.as_slice(), "any.csv", None, &policy()) {
            prop_assert!(read.means().all(|(_, mean)| mean.is_finite()));
        }
    }
}
