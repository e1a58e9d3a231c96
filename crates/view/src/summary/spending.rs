//! Renders what agents' answers cost: by role, by node, and in total. Empty if nothing was counted.

use crate::lookup;
use crate::markdown::{MarkdownTable, MarkdownText};
use crate::words;
use std::collections::BTreeMap;
use treebeam_core::bill::{AgentBill, RoleBills};
use treebeam_core::facts::Facts;
use treebeam_core::group::IdeaSource;

/// Costs of a node's ideas, and of the evals that they became.
#[derive(Default)]
struct NodeSpending {
    asked: RoleBills,
    evals: u32,
    tried: RoleBills,
}

pub(super) fn spending_section(facts: &Facts) -> Option<String> {
    let all = facts.total_spend();
    if all.is_empty() {
        return None;
    }
    let parts = ["## What answers took".to_owned(), render_by_role(&all), render_by_node(facts)];
    Some(parts.iter().map(|part| part.trim_end()).collect::<Vec<_>>().join("\n\n"))
}

fn render_by_role(all: &RoleBills) -> String {
    let mut table = MarkdownTable::new([
        "role",
        "calls",
        "tokens read",
        "of them cached",
        "tokens written",
        "cost",
        "time",
    ]);
    for (role, bill) in all.by_role() {
        table.add_row(role_row(role.name(), bill));
    }
    table.add_row(role_row("all", &all.total()));
    table.to_string()
}

fn role_row(name: &str, bill: &AgentBill) -> [MarkdownText; 7] {
    [
        name.to_owned(),
        bill.calls.to_string(),
        bill.usage.input.to_string(),
        bill.usage.cached.to_string(),
        bill.usage.output.to_string(),
        words::format_cost(bill),
        words::format_age(bill.answer_time()),
    ]
    .map(|text| MarkdownText::from_text(&text))
}

/// Renders the costs of proposing and of trying ideas, by node.
fn render_by_node(facts: &Facts) -> String {
    let mut sources: BTreeMap<IdeaSource, NodeSpending> = BTreeMap::new();
    for (source, expansion) in facts.all_expansions() {
        sources.entry(source).or_default().asked += &expansion.bills;
    }
    for eval in facts.evals.iter() {
        let spent = sources.entry(eval.idea_source()).or_default();
        spent.evals += 1;
        spent.tried += &eval.total_spend();
    }
    let head = ["node", "ideas: tokens", "ideas: cost", "evals", "evals: tokens", "evals: cost"];
    let mut table = MarkdownTable::new(head);
    for (source, NodeSpending { asked, evals, tried }) in sources {
        let (asked, tried) = (asked.total(), tried.total());
        let cells = [
            lookup::source_name(source),
            asked.usage.total_tokens().to_string(),
            words::format_cost(&asked),
            evals.to_string(),
            tried.usage.total_tokens().to_string(),
            words::format_cost(&tried),
        ];
        table.add_row(cells.map(|text| MarkdownText::from_text(&text)));
    }
    table.to_string()
}
