//! Renders the screen of `treebeam score`: one sweep against another, verdict and gate. Every mark
//! is readable without its colour. Computes no figure.

pub(crate) mod table;
pub(crate) mod verdict;

use crate::safe_text::{first_few, format_field, one_line};
use crate::words::format_count;
use treebeam_core::evidence::SweepCompleteness;
use treebeam_core::gate::GateVerdict;
use treebeam_core::policy::ScorePolicy;
use treebeam_score::compare::ScoringDetails;
use treebeam_score::sweep_csv::{RowSelection, Sweep};

/// Two sweeps with their comparison.
#[derive(Clone, Copy, Debug)]
pub struct ScoreReport<'a> {
    /// Baseline sweep.
    pub baseline: SweepSide<'a>,
    /// Candidate sweep.
    pub candidate: SweepSide<'a>,
    /// Number of configurations that count, if limited.
    pub limit: Option<u32>,
    /// Policy of the comparison.
    pub policy: &'a ScorePolicy,
    /// Comparison; the baseline is both parent and root.
    pub judgement: &'a ScoringDetails,
    /// Verdict of the gate.
    pub verdict: &'a GateVerdict,
}

/// One of the two sweeps.
#[derive(Clone, Copy, Debug)]
pub struct SweepSide<'a> {
    /// Name of the sweep.
    pub name: &'a str,
    /// True if its rows have ids; without ids, a row's number is its id.
    pub has_ids: bool,
    /// Selection of rows.
    pub selection: RowSelection,
    /// Number of selected rows.
    pub rows_used: u32,
    /// Number of rows of the whole file that are shorter or longer than the header.
    pub ragged_rows: u32,
    /// Number of selected rows that repeat an id.
    pub duplicate_ids: u32,
    /// Number of selected rows that are not ok.
    pub rows_not_ok: u32,
    /// Mean of the primary metric.
    pub primary: Option<f64>,
}

impl<'a> SweepSide<'a> {
    /// Collects the data of a sweep.
    #[must_use]
    pub fn from_sweep(sweep: &'a Sweep, policy: &ScorePolicy) -> Self {
        Self {
            name: sweep.name(),
            has_ids: sweep.has_ids(),
            selection: sweep.selection(),
            rows_used: sweep.rows_used(),
            ragged_rows: sweep.ragged_rows(),
            duplicate_ids: sweep.duplicate_ids(),
            rows_not_ok: sweep.completeness(None, sweep.rows_used()).error_count,
            primary: sweep.column_mean(&policy.primary),
        }
    }

    /// Describes the sweep: `base.csv: 4 rows used; 1 ragged row, 2 repeated ids`.
    fn describe(&self) -> String {
        let mut text =
            format!("{}: {} used", one_line(self.name), format_count(self.rows_used, "row"));
        let faults = [
            (self.ragged_rows, format_count(self.ragged_rows, "ragged row")),
            (self.duplicate_ids, format_count(self.duplicate_ids, "repeated id")),
            (self.rows_not_ok, format!("{} not ok", format_count(self.rows_not_ok, "row"))),
        ];
        let faults: Vec<String> =
            faults.into_iter().filter(|(rows, _)| *rows > 0).map(|(_, words)| words).collect();
        if !faults.is_empty() {
            text.push_str("; ");
            text.push_str(&faults.join(", "));
        }
        text
    }
}

/// Use of colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColourMode {
    /// Plain text without colours.
    Off,
    /// Colours for a terminal.
    On,
}

/// Look of a good, bad or neutral value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScoreTone {
    Good,
    Bad,
    Even,
}

impl ColourMode {
    fn paint(self, tone: ScoreTone, text: &str) -> String {
        match (self, tone) {
            (Self::Off, _) | (Self::On, ScoreTone::Even) => text.to_owned(),
            (Self::On, ScoreTone::Good) => format!("\u{1b}[32m{text}\u{1b}[0m"),
            (Self::On, ScoreTone::Bad) => format!("\u{1b}[31m{text}\u{1b}[0m"),
        }
    }
}

/// Renders the comparison on one screen.
#[must_use]
pub fn render_score(scoring: &ScoreReport<'_>, colour: ColourMode) -> String {
    let mut lines = vec![
        format_field("baseline", &scoring.baseline.describe()),
        format_field("candidate", &scoring.candidate.describe()),
        format_field("limit", &describe_limit(scoring)),
        String::new(),
    ];
    lines.extend(table::metric_table_lines(scoring, colour));
    lines.push(String::new());
    lines.extend(verdict::recommendation_lines(scoring, colour));
    let scored = &scoring.judgement.scored;
    lines.push(format_field("complete", &format_completeness(scored.completeness, scoring.limit)));
    lines.extend(verdict::paired_with_caveat(scoring));
    lines.extend(verdict::gate_lines(scoring, colour));
    lines.join("\n") + "\n"
}

/// Returns a note if only one side names its configurations.
#[must_use]
pub fn pairing_note(scoring: &ScoreReport<'_>) -> Option<String> {
    let ScoreReport { baseline, candidate, policy, .. } = scoring;
    let (with, without) = match (baseline.has_ids, candidate.has_ids) {
        (true, false) => (baseline, candidate),
        (false, true) => (candidate, baseline),
        (true, true) | (false, false) => return None,
    };
    let (with, without) = (one_line(with.name), one_line(without.name));
    let id = one_line(&policy.id_column);
    let paired = format!("its rows, counted from 0, are paired with the ids of `{with}`");
    Some(format!("`{without}` has no column `{id}`: {paired}"))
}

/// Returns a hint at usable columns if rows were compared but no metric was.
#[must_use]
pub fn column_hint(scoring: &ScoreReport<'_>) -> Option<String> {
    const MAX_HINT_COLUMNS: usize = 6;
    let ScoreReport { baseline, candidate, policy, judgement, .. } = scoring;
    let details = &judgement.vs_parent;
    if !details.metrics.is_empty() || baseline.rows_used == 0 || candidate.rows_used == 0 {
        return None;
    }
    let roles = [&policy.id_column, &policy.status_column];
    let columns = details.columns.iter().map(|column| &column.column);
    let mut columns = columns.filter(|column| !roles.contains(column)).peekable();
    columns.peek()?;
    let names =
        first_few(columns.map(|column| format!("`{}`", one_line(column))), MAX_HINT_COLUMNS);
    let choose = "choose a metric with `--primary COL`, or `COL:lower` where lower is better";
    Some(format!("{choose}; both files have numbers in {names}"))
}

/// Describes which rows count. The two sides may be selected differently.
fn describe_limit(scoring: &ScoreReport<'_>) -> String {
    let id = one_line(&scoring.policy.id_column);
    let rows = |side: &SweepSide<'_>| match side.selection {
        RowSelection::All => "all rows".to_owned(),
        RowSelection::First(0) | RowSelection::ById(0) => "no rows".to_owned(),
        RowSelection::First(limit) => {
            format!("the first {}, as none has a `{id}` below it", format_count(limit, "row"))
        }
        RowSelection::ById(limit) => format!("rows with `{id}` below {limit}"),
    };
    let (baseline, candidate) = (rows(&scoring.baseline), rows(&scoring.candidate));
    let limit = match scoring.limit {
        None => "none: ".to_owned(),
        Some(0) => "0: ".to_owned(),
        Some(_) => String::new(),
    };
    if baseline == candidate {
        return format!("{limit}{baseline}");
    }
    format!("{limit}{candidate}; of the baseline {baseline}")
}

/// Describes how many configurations are ok. With a limit exactly that many are expected, without
/// one at least as many.
pub(crate) fn format_completeness(completeness: SweepCompleteness, limit: Option<u32>) -> String {
    let SweepCompleteness { expected_count, ok_count, error_count } = completeness;
    let ok = match limit {
        Some(_) => format!("{ok_count} of {} ok", format_count(expected_count, "configuration")),
        None => {
            format!(
                "{} ok, at least {expected_count} expected",
                format_count(ok_count, "configuration")
            )
        }
    };
    format!("{ok}, {} not ok", format_count(error_count, "row"))
}
