//! What the answers of agents took, by role and model: where a run went on with others, each has a line.

use super::text::brief;
use crate::figure::NONE;
use crate::words::{age, spending};
use maud::{Markup, html};
use treebeam_core::bill::Bill;
use treebeam_core::facts::Facts;
use treebeam_core::policy::Agents;
use treebeam_core::role::Role;

/// The longest name of a model.
const MODEL_CHARS: usize = 80;

/// Calls, tokens, money and time.
#[must_use]
pub fn costs(facts: &Facts) -> Markup {
    let spent = facts.spent();
    html! {
        @if spent.is_empty() {
            p.note { "No agent was asked anything." }
        } @else {
            div.scroll tabindex="0" role="group" aria-label="What answers took" {
                table.figures {
                    thead { tr {
                        @for head in ["role", "model", "calls", "input tokens", "of them cached", "output tokens", "cost", "answered in"] {
                            th scope="col" { (head) }
                        }
                    } }
                    tbody { @for (role, model, bill) in by_model(facts) { (row(role.name(), &model, &bill)) } }
                    tfoot { (row("all", "", &spent.total())) }
                }
            }
        }
        @if !facts.former.is_empty() {
            p.note { "The run went on with other agents. What a step took that was cut off before stands with those who ended it." }
        }
        @if let Some(limits) = spending(&facts.reach) { p.note { "Limit: " (limits) "." } }
    }
}

fn row(role: &str, model: &str, bill: &Bill) -> Markup {
    html! {
        tr {
            th scope="row" { (role) }
            td.words { (model) }
            td { (bill.calls) }
            @for tokens in [bill.usage.input, bill.usage.cached, bill.usage.output] { td { (grouped(tokens)) } }
            td { (cost(bill)) }
            td { (age(bill.time())) }
        }
    }
}

/// What each who was ever set for a role took, by role.
fn by_model(facts: &Facts) -> Vec<(Role, String, Bill)> {
    let mut rows: Vec<(Role, String, Bill)> = Vec::new();
    for (agents, bills) in facts.spent_by_agents() {
        for (role, bill) in bills.by_role() {
            let model = model(agents, role);
            match rows.iter_mut().find(|(other, name, _)| *other == role && *name == model) {
                Some((_, _, sum)) => *sum += *bill,
                None => rows.push((role, model, *bill)),
            }
        }
    }
    rows.sort_by_key(|(role, ..)| *role);
    rows
}

/// Who was set to answer in a role.
fn model(agents: &Agents, role: Role) -> String {
    let Some(said) = agents.0.get(role.name()) else { return NONE.to_owned() };
    let words = ["provider", "model", "command"].iter().filter_map(|name| said.get(*name));
    brief(&words.cloned().collect::<Vec<_>>().join(" "), MODEL_CHARS)
}

fn cost(bill: &Bill) -> String {
    match (bill.known_cost(), bill.calls_without_price) {
        (None, _) => "unknown".to_owned(),
        (Some(cost), 0) => cost.to_string(),
        (Some(cost), unknown) => format!("{cost}, {unknown} unknown"),
    }
}

/// `1 234 567`, with narrow spaces.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 2);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_in_threes() {
        let check = |number, text: &str| assert_eq!(grouped(number), text.replace(' ', "\u{202f}"));
        check(0, "0");
        check(999, "999");
        check(1_000, "1 000");
        check(12_345_678, "12 345 678");
    }
}
