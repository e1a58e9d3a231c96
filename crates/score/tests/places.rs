//! Selection of the beam: cells without a number win no place, and the order of finishing does not
//! matter. The figures are tested elsewhere.

#![cfg(test)]

use proptest::prelude::*;
use std::cmp::Ordering;
use std::num::NonZeroU32;
use treebeam_core::event::Approval;
use treebeam_core::evidence::{Comparison, Grade, Recommendation, RecommendationReason};
use treebeam_core::gate::{GateRule, GateVerdict, judge_candidate};
use treebeam_core::id::EvalId;
use treebeam_core::num::Finite;
use treebeam_core::policy::{Direction, FixedSettings, Metric, ScorePolicy};
use treebeam_core::rank::{RankedCandidate, select_beam};
use treebeam_score::compare::{ScoringDetails, score_candidate};
use treebeam_score::sweep_csv::Sweep;

/// Primary `m` and, with the same weight, `extra`.
fn meaning(limit: Option<u32>) -> FixedSettings {
    let metric = |column: &str| Metric {
        column: column.to_owned(),
        direction: Direction::Higher,
        weight: Finite::new(1.0).unwrap(),
        guard: false,
    };
    let metrics = vec![metric("m"), metric("extra")];
    let score = ScorePolicy { primary: "m".to_owned(), metrics, ..ScorePolicy::trading_preset() };
    FixedSettings {
        score,
        sweep_config_limit: limit.and_then(NonZeroU32::new),
        ..FixedSettings::default()
    }
}

/// Presence of a status column; all configurations are ok.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Status {
    Ok,
    Absent,
}

/// A sweep of `m` and `extra` by row.
fn text(rows: &[(String, String)], status: Status) -> String {
    let (name, cell) = if status == Status::Ok { (",status", ",ok") } else { ("", "") };
    let rows = rows.iter().enumerate().map(|(id, (m, extra))| format!("{id},{m},{extra}{cell}\n"));
    format!("config_id,m,extra{name}\n{}", rows.collect::<String>())
}

fn judged(parent: &str, candidate: &str, meaning: &FixedSettings) -> (ScoringDetails, GateVerdict) {
    let read = |text: &str| {
        Sweep::read_csv(text.as_bytes(), "sweep.csv", meaning.config_limit(), &meaning.score)
            .unwrap()
    };
    let parent = read(parent);
    let judged =
        score_candidate(&parent, &parent, &read(candidate), meaning, parent.rows_used()).unwrap();
    let verdict = judge_candidate(&judged.scored, 1, Approval::Unreviewed, meaning);
    (judged, verdict)
}

/// Beam of the candidates that pass; the first is eval 1.
fn places(candidates: &[(ScoringDetails, GateVerdict)]) -> Vec<EvalId> {
    let mut id = EvalId::FIRST;
    let mut contenders = Vec::new();
    for (judged, verdict) in candidates {
        let vs_root = judged.scored.vs_root.clone();
        contenders.extend(verdict.has_passed().then_some(RankedCandidate {
            eval: id,
            vs_root,
            files_changed: 1,
            tree: None,
        }));
        id = id.next();
    }
    select_beam(contenders.into_iter(), usize::MAX)
}

/// Cells without a finite number.
const NONE: [&str; 9] = ["nan", "NaN", "inf", "-inf", "Infinity", "1e400", "-1e400", "", "None"];

/// Rows of a parent: primary, gain of at least 5 %, and the text that spoils it, if any.
type Rows = Vec<(u32, u32, Option<&'static str>)>;

fn rows() -> impl Strategy<Value = Rows> {
    let spoilt = prop::option::of(prop::sample::select(&NONE[..]));
    prop::collection::vec((1..1000_u32, 5..60_u32, spoilt), 1..9)
}

fn parent(rows: &Rows, status: Status) -> String {
    let cells = |(m, ..): &(u32, _, _)| (m.to_string(), "1".to_owned());
    text(&rows.iter().map(cells).collect::<Vec<_>>(), status)
}

/// Candidate of the rows; if it is to be spoilt, with a far better `extra`, as a temptation.
fn candidate(
    rows: &Rows,
    status: Status,
    primary: impl Fn(&(u32, u32, Option<&'static str>), f64) -> String,
) -> String {
    let cells = |row: &(u32, u32, Option<&'static str>)| {
        let sound = f64::from(row.0) * (1.0 + f64::from(row.1) / 100.0);
        let cell = primary(row, sound);
        let extra = if cell.parse() == Ok(sound) { "1" } else { "9" };
        (cell, extra.to_owned())
    };
    text(&rows.iter().map(cells).collect::<Vec<_>>(), status)
}

proptest! {
    #[test]
    fn a_cell_without_a_number_never_wins_a_place(rows in rows(), first in prop::sample::select(&NONE[..]), limited in any::<bool>()) {
        let meaning = meaning(limited.then(|| u32::try_from(rows.len()).unwrap()));
        let mut spoilt_rows = rows.clone();
        spoilt_rows[0].2 = Some(first);
        let parent = parent(&rows, Status::Absent);
        let sound = candidate(&rows, Status::Absent, |_, sound| sound.to_string());
        let spoilt = candidate(&spoilt_rows, Status::Absent, |(.., spoilt), sound| spoilt.map_or(sound.to_string(), str::to_owned));
        let (sound, spoilt) = (judged(&parent, &sound, &meaning), judged(&parent, &spoilt, &meaning));
        prop_assert!(sound.1.has_passed(), "{}", sound.1.reason());
        prop_assert_eq!(spoilt.1.first_failed_check().map(|check| check.rule), Some(GateRule::Complete));
        prop_assert_eq!(places(&[spoilt, sound]), [EvalId::FIRST.next()]);
    }

    /// Also with a status column that is `ok`, and in any metric.
    #[test]
    fn an_ok_row_without_a_number_never_wins_a_place(
        rows in rows(),
        first in prop::sample::select(&NONE[..]),
        limited in any::<bool>(),
        in_primary in any::<bool>(),
    ) {
        let meaning = meaning(limited.then(|| u32::try_from(rows.len()).unwrap()));
        let mut spoilt_rows = rows.clone();
        spoilt_rows[0].2 = Some(first);
        let cells = |row: &(u32, u32, Option<&'static str>)| {
            let m = (f64::from(row.0) * (1.0 + f64::from(row.1) / 100.0)).to_string();
            match (row.2, in_primary) {
                (None, _) => (m, "1".to_owned()),
                (Some(spoilt), true) => (spoilt.to_owned(), "9".to_owned()),
                (Some(spoilt), false) => (m, spoilt.to_owned()),
            }
        };
        let parent = parent(&rows, Status::Ok);
        let spoilt = text(&spoilt_rows.iter().map(cells).collect::<Vec<_>>(), Status::Ok);
        let (_, verdict) = judged(&parent, &spoilt, &meaning);
        let failed = verdict.first_failed_check().map(|check| check.rule);
        let all = spoilt_rows.iter().all(|(.., spoilt)| spoilt.is_some());
        let expected = if all && in_primary { GateRule::PrimaryPresent } else { GateRule::NumbersKept };
        prop_assert_eq!(failed, Some(expected), "{}", spoilt);
    }

    #[test]
    fn a_primary_without_any_number_never_wins_a_place(rows in rows(), none in prop::sample::select(&NONE[..]), limited in any::<bool>()) {
        let meaning = meaning(limited.then(|| u32::try_from(rows.len()).unwrap()));
        let parent = parent(&rows, Status::Ok);
        let sound = candidate(&rows, Status::Ok, |_, sound| sound.to_string());
        let spoilt = candidate(&rows, Status::Ok, |_, _| none.to_owned());
        let (sound, spoilt) = (judged(&parent, &sound, &meaning), judged(&parent, &spoilt, &meaning));
        prop_assert!(sound.1.has_passed(), "{}", sound.1.reason());
        prop_assert_eq!(spoilt.1.reason(), "primary_missing: no primary gain");
        prop_assert_eq!(places(&[spoilt, sound]), [EvalId::FIRST.next()]);
    }
}

/// Candidate that passed the gate. Few different figures, so that many are equal.
#[derive(Clone, Debug)]
struct Passed {
    eval: EvalId,
    vs_root: Comparison,
    files_changed: u32,
}

fn passed() -> impl Strategy<Value = Vec<Passed>> {
    let some = |numbers: &'static [f64]| {
        prop::sample::select(numbers).prop_map(|n| Finite::new(n).unwrap())
    };
    let one = (
        some(&[-0.1, 0.0, 0.1]),
        0..3_u32,
        prop::option::of(some(&[-1.0, 0.0, 1.0])),
        any::<bool>(),
        1..3_u32,
    );
    prop::collection::vec(one, 0..12).prop_map(|all| {
        let mut eval = EvalId::FIRST;
        let passed =
            all.into_iter().map(|(score, metrics_used, primary_delta, risky, files_changed)| {
                let this = eval;
                eval = eval.next();
                let risks =
                    risky.then(|| RecommendationReason::RiskRegressed(vec!["risk".to_owned()]));
                let recommendation = Recommendation {
                    should_explore: true,
                    grade: Grade::Mixed,
                    score: if metrics_used == 0 { Finite::ZERO } else { score },
                    positive_signals: 0,
                    negative_signals: 0,
                    metrics_used,
                    reasons: risks.into_iter().collect(),
                };
                let rows = 1;
                let vs_root = Comparison {
                    baseline_rows_used: rows,
                    candidate_rows_used: rows,
                    recommendation,
                    primary_delta,
                    paired: None,
                    primary_means: None,
                };
                Passed { eval: this, vs_root, files_changed }
            });
        passed.collect()
    })
}

impl Passed {
    /// Value it is ranked by: the score if any metric is behind it, or else the primary delta.
    fn score(&self) -> Option<f64> {
        let recommendation = &self.vs_root.recommendation;
        if recommendation.metrics_used > 0 {
            Some(recommendation.score.get())
        } else {
            self.primary()
        }
    }

    fn primary(&self) -> Option<f64> {
        self.vs_root.primary_delta.map(Finite::get)
    }

    /// Returns true if it ranks before another, by each rule; a missing primary delta is smallest.
    fn comes_before(&self, other: &Self) -> bool {
        let more = |mine: Option<f64>, others: Option<f64>| others.partial_cmp(&mine).unwrap();
        let risk = |passed: &Self| passed.vs_root.recommendation.has_risk_regression();
        let rules = [
            more(self.score(), other.score()),
            more(self.primary(), other.primary()),
            risk(self).cmp(&risk(other)),
            self.files_changed.cmp(&other.files_changed),
            self.eval.cmp(&other.eval),
        ];
        rules.into_iter().find(|rule| rule.is_ne()) == Some(Ordering::Less)
    }
}

fn ranked(passed: &[Passed], width: usize) -> Vec<EvalId> {
    let contender = |passed: &Passed| (passed.eval, passed.files_changed);
    let all = passed.iter().map(|one| {
        let (eval, files_changed) = contender(one);
        RankedCandidate { eval, vs_root: one.vs_root.clone(), files_changed, tree: None }
    });
    select_beam(all, width)
}

proptest! {
    #[test]
    fn whoever_finishes_first_the_places_are_the_same(
        (passed, finished) in passed().prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
        width in 0..14_usize,
    ) {
        let (all, places) = (ranked(&passed, usize::MAX), ranked(&passed, width));
        prop_assert_eq!(ranked(&finished, usize::MAX), all.clone());
        prop_assert_eq!(ranked(&finished, width), places.clone());
        prop_assert_eq!(&places[..], &all[..width.min(all.len())], "a beam is the best of all");
        let of = |id: &EvalId| passed.iter().find(|one| one.eval == *id).unwrap();
        prop_assert!(all.is_sorted_by(|one, next| of(one).comes_before(of(next))), "{:?}", all);
        let rankable = passed.iter().filter(|one| one.score().is_some()).count();
        prop_assert_eq!(all.len(), rankable);
    }
}
