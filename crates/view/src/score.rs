//! The screen of `treebeam score`: one sweep against another, metric by metric, what the metrics make of it, and what the
//! gate would say. Every mark can be read without its colour. Computes no figure.

mod table;
mod verdict;

use crate::line::{field, one_line};
use crate::words::count;
use treebeam_core::evidence::Completeness;
use treebeam_core::gate::Verdict;
use treebeam_core::policy::ScorePolicy;
use treebeam_core::score::Judgement;

/// Two sweeps, and all that is known about them.
#[derive(Clone, Copy, Debug)]
pub struct Scoring<'a> {
    /// The baseline's name.
    pub baseline: &'a str,
    /// The candidate's name.
    pub candidate: &'a str,
    /// N, if only some configurations count.
    pub limit: Option<u32>,
    /// How they were compared.
    pub policy: &'a ScorePolicy,
    /// The comparison; the baseline is parent and root.
    pub judgement: &'a Judgement,
    /// What the gate would say.
    pub verdict: &'a Verdict,
}

/// Whether marks have a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Plain text.
    Off,
    /// For a terminal that shows colours.
    On,
}

/// How something looks that is good, bad or neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tone {
    Good,
    Bad,
    Even,
}

impl Colour {
    fn paint(self, tone: Tone, text: &str) -> String {
        match (self, tone) {
            (Self::Off, _) | (Self::On, Tone::Even) => text.to_owned(),
            (Self::On, Tone::Good) => format!("\u{1b}[32m{text}\u{1b}[0m"),
            (Self::On, Tone::Bad) => format!("\u{1b}[31m{text}\u{1b}[0m"),
        }
    }
}

/// The comparison on one screen.
#[must_use]
pub fn score(scoring: &Scoring<'_>, colour: Colour) -> String {
    let comparison = &scoring.judgement.vs_parent.comparison;
    let rows = |name: &str, rows| format!("{}: {} used", one_line(name), count(rows, "row"));
    let mut lines = vec![
        field("baseline", &rows(scoring.baseline, comparison.baseline_rows_used)),
        field("candidate", &rows(scoring.candidate, comparison.candidate_rows_used)),
        field("limit", &limit(scoring)),
        String::new(),
    ];
    lines.extend(table::table(scoring, colour));
    lines.push(String::new());
    lines.extend(verdict::recommendation(scoring, colour));
    lines.push(field("complete", &completeness(scoring.judgement.scored.completeness)));
    lines.extend(verdict::paired(scoring));
    lines.extend(verdict::gate(scoring.verdict, colour));
    lines.join("\n") + "\n"
}

fn limit(scoring: &Scoring<'_>) -> String {
    let id = one_line(&scoring.policy.id_column);
    match scoring.limit {
        None => "none: all rows".to_owned(),
        Some(0) => "0: no rows".to_owned(),
        Some(limit) => format!("rows with `{id}` below {limit}"),
    }
}

fn completeness(completeness: Completeness) -> String {
    let Completeness { expected_count, ok_count, error_count } = completeness;
    let expected = count(expected_count, "configuration");
    format!("{ok_count} of {expected} ok, {} not ok", count(error_count, "row"))
}
