//! Tests the screen of `treebeam score`: colours only add colour, and foreign names stay on one
//! line.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use treebeam_core::gate::{GateVerdict, check_results};
use treebeam_core::num::Finite;
use treebeam_core::policy::{ChosenBy, Direction, FixedSettings, Metric, ScorePolicy};
use treebeam_core::rank;
use treebeam_score::compare::{compare_sweeps, score_candidate};
use treebeam_score::paired::PairCounts;
use treebeam_score::sweep_csv::Sweep;
use treebeam_view::holdout::{remaining_gain, render_holdout_table};
use treebeam_view::score::{ColourMode, ScoreReport, SweepSide, render_score};

/// Settings whose primary is `a`; `b` is guarded and lower is better.
fn meaning() -> FixedSettings {
    let metric = |column: &str, direction, guard| Metric {
        column: column.to_owned(),
        direction,
        weight: Finite::new(1.0).unwrap(),
        guard,
    };
    FixedSettings {
        score: ScorePolicy {
            primary: "a".to_owned(),
            primary_chosen_by: ChosenBy::User,
            metrics: vec![
                metric("a", Direction::Higher, false),
                metric("b", Direction::Lower, true),
            ],
            ..ScorePolicy::trading_preset()
        },
        ..FixedSettings::default()
    }
}

/// Returns the screen for a candidate, with these counts for `b`.
fn shown(candidate: &str, counts: Option<PairCounts>, colour: ColourMode) -> String {
    let meaning = meaning();
    let read = |text: &str, name: &str| {
        Sweep::read_csv(text.as_bytes(), name, None, &meaning.score).unwrap()
    };
    let baseline = read("config_id,a,b\n0,1,1\n1,2,1\n", "base\n.csv");
    let candidate = read(candidate, "cand.csv");
    show(&baseline, &candidate, &meaning, counts, colour)
}

fn show(
    baseline: &Sweep,
    candidate: &Sweep,
    meaning: &FixedSettings,
    counts: Option<PairCounts>,
    colour: ColourMode,
) -> String {
    let mut judgement = score_candidate(baseline, baseline, candidate, meaning, 2).unwrap();
    judgement.vs_parent.metrics[1].paired = counts;
    let verdict = GateVerdict {
        checks: check_results(&judgement.scored, meaning),
        rank_score: rank::rank_score(&judgement.scored.vs_root),
    };
    let scoring = ScoreReport {
        baseline: SweepSide::from_sweep(baseline, &meaning.score),
        candidate: SweepSide::from_sweep(candidate, &meaning.score),
        limit: None,
        policy: &meaning.score,
        judgement: &judgement,
        verdict: &verdict,
    };
    render_score(&scoring, colour)
}

#[test]
fn what_the_search_saw_stands_beside_what_it_never_saw() {
    let policy = meaning().score;
    let read = |text: &str| Sweep::read_csv(text.as_bytes(), "x.csv", None, &policy).unwrap();
    let details =
        |root: &str, best: &str| compare_sweeps(&read(root), &read(best), &policy).unwrap();
    let seen = details("config_id,a,b\n0,10,4\n", "config_id,a,b\n0,15,3\n");
    let unseen = details("config_id,a\n0,200\n", "config_id,a\n0,220\n");
    let expected = "   search                 hold-out\n   root  best     gain    root  best     gain\n\
                    a    10    15  +50.0 %     200   220  +10.0 %\n\
                    b     4     3  +25.0 %     n/a   n/a      n/a\n";
    assert_eq!(render_holdout_table(&seen, &unseen), expected);
    let left = |column| remaining_gain(&seen, &unseen, column).map(|kept| (100.0 * kept).round());
    assert_eq!((left("a"), left("b"), left("c")), (Some(20.0), None, None));
    assert_eq!(
        remaining_gain(&details("config_id,a\n0,2\n", "config_id,a\n0,1\n"), &unseen, "a"),
        None
    );
}

#[test]
fn colours_add_nothing_but_colour() {
    let candidate = "config_id,a,b\n0,2,2\n1,3,1\n";
    let (plain, painted) =
        (shown(candidate, None, ColourMode::Off), shown(candidate, None, ColourMode::On));
    assert!(painted.contains("\u{1b}[32m▲\u{1b}[0m a *"), "{painted}");
    assert!(painted.contains("\u{1b}[31m▼\u{1b}[0m b ! ↓"), "{painted}");
    let washed = ["\u{1b}[31m", "\u{1b}[32m", "\u{1b}[0m"]
        .iter()
        .fold(painted, |text, code| text.replace(code, ""));
    assert_eq!(washed, plain);
}

#[test]
fn a_metric_shows_its_own_pairs() {
    let counts = PairCounts { pairs: 2, wins: 0, losses: 1 };
    let text = shown("config_id,a,b\n0,2,2\n1,3,1\n", Some(counts), ColourMode::Off);
    assert!(text.contains("·····░░░░░ 0:1"), "{text}");
    assert!(text.contains("██████████ 2:0"), "{text}");
}

#[test]
fn what_rounding_leaves_is_marked_as_equal() {
    let text = shown("config_id,a,b\n0,1.0000000000000002,1\n1,2,1\n", None, ColourMode::Off);
    let line = text.lines().find(|line| line.contains(" a *")).unwrap_or(&text);
    assert!(line.contains('=') && !line.contains('▲'), "{text}");
}

#[test]
fn foreign_text_stays_on_its_line() {
    let text = shown("config_id,a,b\n0,2,2\n1,3,1\n", None, ColourMode::Off);
    assert!(text.starts_with("baseline    base .csv: 2 rows used\n"), "{text}");
}

#[test]
fn wide_names_leave_the_columns_in_line() {
    let meaning = {
        let mut meaning = meaning();
        meaning.score.metrics[1].column = "損失".to_owned();
        meaning
    };
    let read = |text: &str, name: &str| {
        Sweep::read_csv(text.as_bytes(), name, None, &meaning.score).unwrap()
    };
    let sweep = read("config_id,a,損失\n0,1,1\n1,2,1\n", "base.csv");
    let text = show(&sweep, &sweep, &meaning, None, ColourMode::Off);
    // Each of the two letters takes two places: the figures end in one column on a terminal.
    assert!(text.contains("\n= a *            1.5        1.5 "), "{text}");
    assert!(text.contains("\n= 損失 ! ↓         1          1 "), "{text}");
}

#[test]
fn mixed_passes_and_says_why() {
    let text = shown("config_id,a,b\n0,1,1\n1,2.01,1\n", None, ColourMode::Off);
    assert!(text.contains("verdict     mixed, "), "{text}");
    assert!(text.contains("gate        would pass: mixed "), "{text}");
    assert!(
        text.contains("            mixed is enough for the gate while the primary holds"),
        "{text}"
    );
}

/// Describes the rows that a limit selects on each side.
fn limit_of(limit: Option<u32>, baseline: &str, candidate: &str) -> String {
    let meaning = meaning();
    let read =
        |text: &str| Sweep::read_csv(text.as_bytes(), "a.csv", limit, &meaning.score).unwrap();
    let (baseline, candidate) = (read(baseline), read(candidate));
    let judgement = score_candidate(&baseline, &baseline, &candidate, &meaning, 2).unwrap();
    let verdict =
        GateVerdict { checks: check_results(&judgement.scored, &meaning), rank_score: None };
    let scoring = ScoreReport {
        baseline: SweepSide::from_sweep(&baseline, &meaning.score),
        candidate: SweepSide::from_sweep(&candidate, &meaning.score),
        limit,
        policy: &meaning.score,
        judgement: &judgement,
        verdict: &verdict,
    };
    let text = render_score(&scoring, ColourMode::Off);
    let line = text.lines().find_map(|line| line.strip_prefix("limit "));
    line.unwrap_or_default().trim().to_owned()
}

#[test]
fn the_rows_that_a_limit_selects_are_said() {
    let ids = "config_id,a,b\n0,1,1\n1,2,1\n5,2,1\n";
    let high = "config_id,a,b\n7,1,1\n8,2,1\n9,2,1\n";
    let none = "a,b\n1,1\n2,1\n2,1\n";
    let first = "the first 2 rows, as none has a `config_id` below it";
    assert_eq!(limit_of(None, ids, none), "none: all rows");
    assert_eq!(limit_of(Some(0), ids, none), "0: no rows");
    assert_eq!(limit_of(Some(2), ids, ids), "rows with `config_id` below 2");
    assert_eq!(limit_of(Some(2), none, none), first);
    assert_eq!(limit_of(Some(2), high, high), first);
    let both = format!("{first}; of the baseline rows with `config_id` below 2");
    assert_eq!(limit_of(Some(2), ids, none), both);
}
