//! Comparisons of two sweeps, from text to figures, by table. For properties see `properties.rs`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::num::NonZeroU32;
use treebeam_core::event::Approval;
use treebeam_core::evidence::{LostNumbers, Recommendation};
use treebeam_core::gate::judge_candidate;
use treebeam_core::num::Finite;
use treebeam_core::policy::{ChosenBy, Direction, FixedSettings, Metric, ScorePolicy};
use treebeam_core::rules_version::RulesVersion;
use treebeam_score::compare::{
    ScoreError, ScoringDetails, compare_sweeps, score_candidate, score_candidate_by,
};
use treebeam_score::sweep_csv::Sweep;

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
        ..ScorePolicy::trading_preset()
    }
}

fn sweep(text: &str) -> Sweep {
    Sweep::read_csv(text.as_bytes(), "sweep.csv", None, &policy()).unwrap()
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
    let details = compare_sweeps(&row(baseline), &row(candidate), &policy()).unwrap();
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
        let recommendation = compare_sweeps(&row(baseline), &row(candidate), &policy())
            .unwrap()
            .comparison
            .recommendation;
        (recommendation.has_primary_regression(), recommendation.has_risk_regression())
    };
    for (baseline, candidate, expect) in [
        ("100 1 -100 1", "95 1 -110 1", (false, false)),
        ("100 1 -100 1", "94.99 1 -110.01 1", (true, true)),
        // In floating point 0.019 is worse than 0.02 by a little more than 5 %.
        ("0.02 1 -0.25 1", "0.019 1 -0.275 1", (true, true)),
        // By a product, as specified; a quotient of the same numbers is beyond the threshold.
        ("1.53 1 -1.51 1", "1.4535 1 -1.661 1", (false, false)),
        ("0 1 0 1", "-1e-300 1 -5 1", (true, false)),
        ("1e-13 1 1e-13 1", "-1e-13 1 -1e-13 1", (true, false)),
    ] {
        assert_eq!(regressed(baseline, candidate), expect, "{baseline} → {candidate}");
    }
}

#[test]
fn nothing_wins_by_being_no_number() {
    for bad in ["nan", "inf", "-inf", "", "1e400", "None"] {
        let details =
            compare_sweeps(&row("1 1 -1 1"), &row(&format!("{bad} 1 -1 1")), &policy()).unwrap();
        assert_eq!(details.comparison.primary_delta, None, "{bad}");
        assert_eq!(details.comparison.recommendation.metrics_used, 3, "{bad}");
        assert!(!details.comparison.recommendation.should_explore, "{bad}");
    }
    let huge = compare_sweeps(&row("-1.7e308 1 -1 1"), &row("1.7e308 1 -1 1"), &policy()).unwrap();
    assert_eq!(huge.comparison.primary_delta, None, "a delta that is no number");
    assert!(huge.metrics[0].raw_improvement.is_infinite());
    assert!(huge.comparison.recommendation.score.get() <= 2.0);
}

#[test]
fn columns_come_in_the_order_of_the_baseline() {
    let details =
        compare_sweeps(&sweep("z,m,a\n1,2,x\n"), &sweep("a,m,z,new\n1,3,4,5\n"), &policy())
            .unwrap();
    let columns: Vec<_> = details.columns.iter().map(|c| (c.column.as_str(), c.delta)).collect();
    assert_eq!(columns, [("z", 3.0), ("m", 1.0)]);
}

#[test]
fn without_a_shared_column_there_is_nothing_to_compare() {
    let error = compare_sweeps(&sweep("m\n1\n"), &sweep("n\n1\n"), &policy()).unwrap_err();
    assert!(matches!(error, ScoreError::NothingShared { .. }));
    let none =
        |text: &str| Sweep::read_csv(text.as_bytes(), "none.csv", Some(0), &policy()).unwrap();
    let empty = compare_sweeps(&none("m\n1\n"), &none("m\n1\n"), &policy()).unwrap();
    assert_eq!(
        verdict(&empty.comparison.recommendation),
        "leave mixed 0.0000 +0 -0 insufficient_signal"
    );
}

#[test]
fn lower_can_be_better_for_the_primary() {
    let policy = ScorePolicy { primary: "cost".to_owned(), ..policy() };
    let details = compare_sweeps(&row("1 1 -1 1"), &row("1 0.5 -1 1"), &policy).unwrap();
    assert_eq!(details.comparison.primary_delta, Finite::new(0.5));
    assert!(!details.comparison.recommendation.has_primary_regression());
}

fn judged(parent: &str, candidate: &str) -> ScoringDetails {
    let mut meaning = FixedSettings {
        score: policy(),
        sweep_config_limit: NonZeroU32::new(2),
        ..FixedSettings::default()
    };
    meaning.score.invariant_columns = vec!["seed".to_owned(), "periods".to_owned()];
    let read = |text: &str| {
        let text = format!("config_id,m,seed,periods\n{}\n", text.replace(' ', "\n"));
        Sweep::read_csv(text.as_bytes(), "sweep.csv", Some(2), &meaning.score).unwrap()
    };
    score_candidate(&read(parent), &read("0,1,7,24 1,2,8,24"), &read(candidate), &meaning, 2)
        .unwrap()
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

#[test]
fn a_parent_that_is_the_root_is_compared_once_with_the_same_result() {
    let (meaning, candidate) =
        (FixedSettings { score: policy(), ..FixedSettings::default() }, row("2 1 -1 1"));
    let (parent, root) = (row("1 1 -1 1"), row("1 1 -1 1"));
    let once = score_candidate(&parent, &parent, &candidate, &meaning, 1).unwrap();
    let twice = score_candidate(&parent, &root, &candidate, &meaning, 1).unwrap();
    assert_eq!(once, twice);
}

/// First failed check of the gate; no limit, primary and only metric `m`, invariant `seed`.
fn gated(parent: &str, candidate: &str, min_ok_rate: f64) -> String {
    let mut meaning = FixedSettings { score: policy(), ..FixedSettings::default() };
    meaning.score.invariant_columns = vec!["seed".to_owned()];
    meaning.gate.min_ok_rate = Finite::new(min_ok_rate).unwrap();
    let read = |rows: &str| {
        let text = format!("config_id,status,m,cost,seed\n{}\n", rows.replace(' ', "\n"));
        Sweep::read_csv(text.as_bytes(), "sweep.csv", None, &meaning.score).unwrap()
    };
    let (parent, candidate) = (read(parent), read(candidate));
    let judged =
        score_candidate(&parent, &parent, &candidate, &meaning, parent.rows_used()).unwrap();
    let verdict = judge_candidate(&judged.scored, 1, Approval::Unreviewed, &meaning);
    verdict.first_failed_check().map_or("passed".to_owned(), |_| verdict.reason())
}

#[test]
fn what_is_left_out_does_not_make_it_better() {
    let parent = "0,ok,1,1,7 1,ok,2,1,7 2,ok,3,,7 3,error,,,7";
    let lost = "numbers_missing: no number where its parent has one:";
    for (candidate, min_ok_rate, expect) in [
        ("0,ok,2,1,7 1,ok,3,1,7 2,ok,4,,7 3,error,,,7", 0.5, "passed"),
        ("0,ok,nan,1,7 1,ok,3,1,7 2,ok,4,,7 3,error,,,7", 0.5, &format!("{lost} m (rows: 1)")),
        ("0,ok,2,,7 1,ok,3,,7 2,ok,4,,7 3,ok,9,,7", 0.5, &format!("{lost} cost (rows: 2)")),
        // A failed configuration counts in the ok-rate…
        ("0,error,,,7 1,ok,3,1,7 2,ok,4,,7 3,error,,,7", 0.5, "passed"),
        (
            "0,error,,,7 1,ok,3,1,7 2,ok,4,,7 3,error,,,7",
            0.6,
            "incomplete: 2 of 4 ok, 4 rows used, 2 not ok",
        ),
        // …and another one does not replace it.
        (
            "1,ok,3,1,7 2,ok,4,,7 3,error,,,7 9,ok,9,9,7",
            0.5,
            "malformed: ragged rows: 0, repeated ids: 0, ids that the root does not have: 1",
        ),
        (
            "10,ok,2,1,8 11,ok,3,1,8 12,ok,4,,8 13,error,,,8",
            0.5,
            "malformed: ragged rows: 0, repeated ids: 0, ids that the root does not have: 4",
        ),
    ] {
        assert_eq!(gated(parent, candidate, min_ok_rate), expect, "{candidate}");
    }
}

#[test]
fn what_rounding_leaves_of_equal_numbers_decides_nothing() {
    let parent = "0,ok,0.3,2,7 1,ok,3.1,2,7";
    for (candidate, expect) in [
        ("0,ok,0.29999999999999993,1,7 1,ok,3.0999999999999996,1,7", "passed"),
        (
            "0,ok,0.29999999999,1,7 1,ok,3.1,1,7",
            "primary_regressed: primary gain -5e-12, tolerance 0",
        ),
    ] {
        assert_eq!(gated(parent, candidate, 1.0), expect, "{candidate}");
    }
}

#[test]
fn a_mean_over_other_configurations_does_not_hide_that_each_got_worse() {
    let regressed = |delta: &str, mean: &str, pairs: u32| {
        let both = format!("{mean} over the {pairs} configurations that both have");
        format!("primary_regressed: primary gain {delta}, tolerance 0, {both}")
    };
    for (parent, candidate, expect) in [
        // The worst configuration fails now: the others have a higher mean, and each is worse.
        (
            "0,ok,1,1,7 1,ok,2,1,7 2,ok,3,1,7",
            "0,error,,1,7 1,ok,1.9,1,7 2,ok,2.9,1,7",
            &regressed("0.4", "-0.1", 2)[..],
        ),
        // A value in a row that is not ok is not used.
        (
            "0,ok,1,1,7 1,ok,2,1,7 2,ok,3,1,7",
            "0,error,9,1,7 1,ok,1.9,1,7 2,ok,2.9,1,7",
            &regressed("2.6", "-0.1", 2),
        ),
        // The parent has no number where the candidate is best.
        (
            "0,ok,1,1,7 1,ok,2,1,7 2,ok,nan,1,7",
            "0,ok,0.9,1,7 1,ok,1.9,1,7 2,ok,3,1,7",
            &regressed("0.433333", "-0.1", 2),
        ),
        ("0,ok,1,1,7 1,ok,2,1,7 2,ok,nan,1,7", "0,ok,1,1,7 1,ok,2,1,7 2,ok,3,1,7", "passed"),
        ("0,ok,1,1,7 1,ok,2,1,7 2,ok,3,1,7", "0,error,,1,7 1,ok,2,1,7 2,ok,3.1,1,7", "passed"),
    ] {
        assert_eq!(gated(parent, candidate, 0.5), expect, "{parent} → {candidate}");
    }
}

#[test]
fn a_metric_whose_column_is_gone_has_lost_all_its_numbers() {
    let sweep =
        |text: &str| Sweep::read_csv(text.as_bytes(), "sweep.csv", None, &policy()).unwrap();
    let (parent, candidate) =
        (sweep("config_id,m,risk\n0,1,-1\n1,2,-2\n"), sweep("config_id,m\n0,2\n1,3\n"));
    let meaning = FixedSettings { score: policy(), ..FixedSettings::default() };
    let judged = score_candidate(&parent, &parent, &candidate, &meaning, 2).unwrap();
    let lost = LostNumbers { column: "risk".to_owned(), rows: 2 };
    assert_eq!(judged.scored.form.lost_numbers, [lost]);
}

#[test]
fn a_baseline_has_the_columns_that_the_user_named() {
    let text = "config_id,status,m,cost,risk,extra,seed\n0,ok,1,1,1,1,7\n";
    let by_user = ScorePolicy { primary_chosen_by: ChosenBy::User, ..policy() };
    let check = |policy: &ScorePolicy, expect: &str| {
        let sweep = Sweep::read_csv(text.as_bytes(), "b.csv", None, policy).unwrap();
        let said = sweep
            .require_columns(policy)
            .map_or_else(|error| error.to_string(), |()| String::new());
        assert_eq!(said, expect);
    };
    check(&by_user, "");
    check(&ScorePolicy { invariant_columns: vec!["seed".to_owned()], ..by_user.clone() }, "");
    check(
        &ScorePolicy { invariant_columns: vec!["sed".to_owned()], ..by_user.clone() },
        "`b.csv` has no column `sed`, an invariant column; nearest: `seed`",
    );
    check(
        &ScorePolicy { id_column: "config".to_owned(), ..by_user.clone() },
        "`b.csv` has no column `config`, the id column; nearest: `config_id`",
    );
    check(
        &ScorePolicy { status_column: "stat".to_owned(), ..by_user.clone() },
        "`b.csv` has no column `stat`, the status column; nearest: `status`",
    );
    let mut typo = by_user;
    typo.metrics.push(metric("rsk", Direction::Lower, 1.0, true));
    check(&typo, "`b.csv` has no column `rsk`, a metric; nearest: `risk`");
    check(&ScorePolicy { primary_chosen_by: ChosenBy::Preset, ..typo }, "");
}

#[test]
fn rounding_is_no_effect_and_no_signal() {
    let no_effect = "no_effect: every metric of every row equals its parent's";
    for (parent, candidate, expect) in [
        ("0,ok,0.3,2,7 1,ok,3.1,2,7", "0,ok,0.30000000000000004,2,7 1,ok,3.1,2,7", no_effect),
        ("0,ok,0.3,2,7 1,ok,3.1,2,7", "0,ok,0.3,2.0000000000000004,7 1,ok,3.1,2,7", no_effect),
        ("0,ok,1e-14,2,7 1,ok,3.1,2,7", "0,ok,1.0000000000001e-14,2,7 1,ok,3.1,2,7", no_effect),
        // A small number is not 0: the rule is relative.
        ("0,ok,0,2,7 1,ok,0,2,7", "0,ok,1e-13,2,7 1,ok,0,2,7", "passed"),
        ("0,ok,-1e-13,2,7 1,ok,0,2,7", "0,ok,1e-13,2,7 1,ok,0,2,7", "passed"),
        ("0,ok,0.3,2,7 1,ok,3.1,2,7", "0,ok,0.3000000001,2,7 1,ok,3.1,2,7", "passed"),
        // A difference in one row is an effect, even if the mean is the same.
        ("0,ok,1,2,7 1,ok,3,2,7", "0,ok,3,2,7 1,ok,1,2,7", "passed"),
        ("0,ok,1,2,7 1,ok,3,2,7", "1,ok,3,2,7 0,ok,1,2,7", no_effect),
    ] {
        assert_eq!(gated(parent, candidate, 1.0), expect, "{parent} → {candidate}");
    }
    let (before, after) = ("0.3 1 -1 1", "0.30000000000000004 0.9999999999999999 -1 1");
    let found =
        compare_sweeps(&row(before), &row(after), &policy()).unwrap().comparison.recommendation;
    assert_eq!((found.positive_signals, found.negative_signals), (0, 0));
}

/// An older run is judged by the rules of its time, with their texts.
#[test]
fn the_first_rules_say_what_they_always_said() {
    let meaning = FixedSettings { score: policy(), ..FixedSettings::default() };
    let said = |root: &str, candidate: &str| {
        let [root, candidate] = [root, candidate].map(sweep);
        let rules = RulesVersion::First;
        let judged =
            score_candidate_by(rules, [&root, &root], &candidate, &meaning, root.rows_used());
        let scored = judged.unwrap().scored;
        assert_eq!(scored.vs_parent.primary_means, None);
        let verdict = judge_candidate(&scored, 1, Approval::Unreviewed, &meaning);
        (scored.rules_version, verdict.has_passed(), verdict.checks[4].figures.clone())
    };
    let form = "ragged rows: 0, repeated ids: 0";
    let passed = (RulesVersion::First, true, form.to_owned());
    let root = "config_id,status,m\n0,ok,0.3\n1,ok,2\n";
    assert_eq!(said(root, "config_id,status,m\n0,ok,0.30000000000000004\n1,ok,2\n"), passed);
    assert_eq!(said(root, "config_id,m\n0,1\n1,3\n"), passed);
    let ragged = said(root, "config_id,status,m\n0,ok,1\n1,ok,2\n1,ok\n").2;
    assert_eq!(ragged, "ragged rows: 1, repeated ids: 1");
}

/// The gate's first failed check of a candidate with this text; primary `m`, invariant `seed`.
fn gated_text(root: &str, candidate: &str) -> String {
    gated_with(root, candidate, &["seed"])
}

fn gated_with(root: &str, candidate: &str, invariants: &[&str]) -> String {
    let mut meaning = FixedSettings { score: policy(), ..FixedSettings::default() };
    meaning.score.invariant_columns = invariants.iter().map(|name| (*name).to_owned()).collect();
    let read =
        |text: &str| Sweep::read_csv(text.as_bytes(), "sweep.csv", None, &meaning.score).unwrap();
    let (root, candidate) = (read(root), read(candidate));
    let judged = score_candidate(&root, &root, &candidate, &meaning, root.rows_used()).unwrap();
    let verdict = judge_candidate(&judged.scored, 1, Approval::Unreviewed, &meaning);
    verdict.first_failed_check().map_or("passed".to_owned(), |_| verdict.reason())
}

#[test]
fn a_column_of_the_form_may_not_be_dropped() {
    let root = "config_id,status,m,cost,seed,note\n0,ok,1,2,7,x\n1,ok,2,2,7,y\n";
    let lacks = |columns: &str| {
        format!("malformed: lacks columns of the root: {columns}; ragged rows: 0, repeated ids: 0")
    };
    for (candidate, expect) in [
        ("config_id,status,m,cost,seed\n0,ok,2,2,7\n1,ok,3,2,7\n", "passed".to_owned()),
        ("config_id,m,cost,seed,note\n0,2,2,7,x\n1,3,2,7,y\n", lacks("status")),
        ("config_id,status,m,seed,note\n0,ok,2,7,x\n1,ok,3,7,y\n", lacks("cost")),
        ("status,m,cost,seed,note\nok,2,2,7,x\nok,3,2,7,y\n", lacks("config_id")),
        ("m,cost,note\n2,2,x\n3,2,y\n", lacks("config_id, status, seed") + ", changed: seed"),
    ] {
        assert_eq!(gated_text(root, candidate), expect, "{candidate}");
    }
    // Only the first five of many are named.
    let wide = |columns: &str| format!("config_id,m,{columns}\n0,1,1,1,1,1,1,1,1\n");
    let all = wide("i1,i2,i3,i4,i5,i6,i7");
    let found = gated_with(&all, "config_id,m\n0,2\n", &["i1", "i2", "i3", "i4", "i5", "i6", "i7"]);
    assert_eq!(
        found,
        lacks("i1, i2, i3, i4, i5 and 2 more") + ", changed: i1, i2, i3, i4, i5 and 2 more"
    );
    assert_eq!(
        gated_text("config_id,m\n0,1\n1,2\n", "config_id,m\n0,2\n1\n\n1,2,3\n"),
        "incomplete: 2 of 2 ok, 1 not ok, 3 rows used, ids twice: 1"
    );
    // Columns that the root does not have are not required.
    assert_eq!(gated_text("config_id,m\n0,1\n1,2\n", "config_id,m\n0,2\n1,3\n"), "passed");
}
