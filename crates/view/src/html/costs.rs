//! What the answers of agents took, by role and model. Adds up nothing itself.

use super::text::brief;
use crate::figure::NONE;
use crate::words::{age, spending};
use maud::{Markup, html};
use treebeam_core::bill::Bill;
use treebeam_core::facts::Facts;
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
                    tbody { @for (role, bill) in spent.by_role() { (row(role.name(), &model(facts, role), bill)) } }
                    tfoot { (row("all", "", &spent.total())) }
                }
            }
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

/// Who answers in a role, as it was set last.
fn model(facts: &Facts, role: Role) -> String {
    let Some(said) = facts.agents.0.get(role.name()) else { return NONE.to_owned() };
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
