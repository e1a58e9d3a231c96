//! What answers of agents took: by role, by node, and all together. Nothing is said where nothing was counted.

use crate::markdown::{Md, Table};
use crate::read;
use crate::words;
use std::collections::BTreeMap;
use treebeam_core::bill::{Bill, Bills};
use treebeam_core::facts::Facts;
use treebeam_core::group::IdeaSource;

/// What the ideas of a node took, and the evals that they became.
#[derive(Default)]
struct Spent {
    asked: Bills,
    evals: u32,
    tried: Bills,
}

pub(super) fn section(facts: &Facts) -> Option<String> {
    let all = facts.spent();
    if all.is_empty() {
        return None;
    }
    let parts = ["## What answers took".to_owned(), by_role(&all), by_node(facts)];
    Some(parts.iter().map(|part| part.trim_end()).collect::<Vec<_>>().join("\n\n"))
}

fn by_role(all: &Bills) -> String {
    let mut table = Table::new([
        "role",
        "calls",
        "tokens read",
        "of them cached",
        "tokens written",
        "cost",
        "time",
    ]);
    for (role, bill) in all.by_role() {
        table.row(role_row(role.name(), bill));
    }
    table.row(role_row("all", &all.total()));
    table.to_string()
}

fn role_row(name: &str, bill: &Bill) -> [Md; 7] {
    [
        name.to_owned(),
        bill.calls.to_string(),
        bill.usage.input.to_string(),
        bill.usage.cached.to_string(),
        bill.usage.output.to_string(),
        words::cost(bill),
        words::age(bill.time()),
    ]
    .map(|text| Md::text(&text))
}

/// Asking for its ideas, and trying them.
fn by_node(facts: &Facts) -> String {
    let mut sources: BTreeMap<IdeaSource, Spent> = BTreeMap::new();
    for (source, expansion) in facts.all_expansions() {
        sources.entry(source).or_default().asked += &expansion.bills;
    }
    for eval in facts.evals.iter() {
        let spent = sources.entry(eval.source()).or_default();
        spent.evals += 1;
        spent.tried += &eval.spent();
    }
    let head = ["node", "ideas: tokens", "ideas: cost", "evals", "evals: tokens", "evals: cost"];
    let mut table = Table::new(head);
    for (source, Spent { asked, evals, tried }) in sources {
        let (asked, tried) = (asked.total(), tried.total());
        let cells = [
            read::source_name(source),
            asked.usage.total().to_string(),
            words::cost(&asked),
            evals.to_string(),
            tried.usage.total().to_string(),
            words::cost(&tried),
        ];
        table.row(cells.map(|text| Md::text(&text)));
    }
    table.to_string()
}
