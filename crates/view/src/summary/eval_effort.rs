//! Renders a table of each eval's effort: times, attempts, rounds, files, answers. It is separate
//! from the table of scores, so that both stay readable.

use crate::figure::NOT_AVAILABLE;
use crate::lookup;
use crate::markdown::{MarkdownTable, MarkdownText};
use crate::show::{ended_at, started_at};
use crate::words::{self, format_count};
use std::borrow::Cow;
use treebeam_core::facts::{Candidate, Eval};

/// Renders the table of the begun evals; `None` without any.
pub(super) fn render_effort_table(evals: &[Cow<'_, Eval>]) -> Option<String> {
    let begun: Vec<_> = evals.iter().filter(|eval| started_at(eval).is_some()).collect();
    if begun.is_empty() {
        return None;
    }
    let head = [
        "eval",
        "begun",
        "implementing",
        "sweep and score",
        "attempts",
        "rounds",
        "files changed",
        "answers",
    ];
    let mut table = MarkdownTable::new(head);
    for eval in begun {
        table.add_row(effort_row(eval));
    }
    Some(table.to_string())
}

fn effort_row(eval: &Eval) -> [MarkdownText; 8] {
    let work = eval.candidate();
    let number = |pick: fn(&Candidate) -> u32| {
        work.as_ref().map_or_else(|| NOT_AVAILABLE.to_owned(), |work| pick(work).to_string())
    };
    let [implementing, sweeping] = work_durations(eval);
    [
        lookup::eval_name(eval),
        started_at(eval).map_or_else(|| NOT_AVAILABLE.to_owned(), |at| format!("{at:.0}")),
        implementing,
        sweeping,
        eval.attempt.to_string(),
        number(|work| work.rounds),
        number(|work| work.files_changed),
        format_answers(eval),
    ]
    .map(|text| MarkdownText::from_text(&text))
}

/// Returns the time up to the commit, and from there to the score or failure, of the last attempt.
fn work_durations(eval: &Eval) -> [String; 2] {
    let (begun, ended) = (started_at(eval), ended_at(eval));
    let committed = eval.candidate().and_then(|work| work.implemented_at);
    let implemented = if eval.candidate().is_some() { committed } else { ended };
    let span = |from: Option<_>, to: Option<_>| match (from, to) {
        (Some(from), Some(to)) => words::format_span(from, to),
        _ => NOT_AVAILABLE.to_owned(),
    };
    [span(begun, implemented), span(committed, ended)]
}

/// Formats calls, tokens and cost of all attempts.
fn format_answers(eval: &Eval) -> String {
    let bill = eval.total_spend().total();
    if bill.calls == 0 {
        return NOT_AVAILABLE.to_owned();
    }
    let (calls, tokens) =
        (format_count(bill.calls, "call"), format_count(bill.usage.total_tokens(), "token"));
    format!("{calls}, {tokens}, {}", words::format_cost(&bill))
}
