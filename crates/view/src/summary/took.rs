//! What each eval took: times, attempts, rounds, files, answers. A table of its own, so that both can be read.

use crate::figure::NONE;
use crate::markdown::{Md, Table};
use crate::read;
use crate::show::{ended_at, started_at};
use crate::words::{self, count};
use std::borrow::Cow;
use treebeam_core::facts::{Eval, Work};

/// The table of those that have begun; nothing where none has.
pub(super) fn table(evals: &[Cow<'_, Eval>]) -> Option<String> {
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
    let mut table = Table::new(head);
    for eval in begun {
        table.row(row(eval));
    }
    Some(table.to_string())
}

fn row(eval: &Eval) -> [Md; 8] {
    let work = eval.work();
    let number = |pick: fn(&Work) -> u32| {
        work.as_ref().map_or_else(|| NONE.to_owned(), |work| pick(work).to_string())
    };
    let [implementing, sweeping] = stretches(eval);
    [
        read::eval_name(eval),
        started_at(eval).map_or_else(|| NONE.to_owned(), |at| format!("{at:.0}")),
        implementing,
        sweeping,
        eval.attempt.to_string(),
        number(|work| work.rounds),
        number(|work| work.files_changed),
        answers(eval),
    ]
    .map(|text| Md::text(&text))
}

/// How long it took to a commit, and from there to the figures, or to the failure; of the last attempt.
fn stretches(eval: &Eval) -> [String; 2] {
    let (begun, ended) = (started_at(eval), ended_at(eval));
    let committed = eval.work().and_then(|work| work.implemented_at);
    let implemented = if eval.work().is_some() { committed } else { ended };
    let span = |from: Option<_>, to: Option<_>| match (from, to) {
        (Some(from), Some(to)) => words::span(from, to),
        _ => NONE.to_owned(),
    };
    [span(begun, implemented), span(committed, ended)]
}

/// Of all attempts.
fn answers(eval: &Eval) -> String {
    let bill = eval.spent().total();
    if bill.calls == 0 {
        return NONE.to_owned();
    }
    let (calls, tokens) = (count(bill.calls, "call"), count(bill.usage.total(), "token"));
    format!("{calls}, {tokens}, {}", words::cost(&bill))
}
