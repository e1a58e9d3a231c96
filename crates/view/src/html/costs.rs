//! Renders what agents' answers cost, by role and model. If a run continued with other agents, each
//! has a line.

use super::visible_text::short_line;
use crate::figure::NOT_AVAILABLE;
use crate::words::{describe_spending_limits, format_age};
use maud::{Markup, html};
use treebeam_core::bill::AgentBill;
use treebeam_core::facts::Facts;
use treebeam_core::policy::RecordedAgents;
use treebeam_core::role::AgentRole;

/// Maximum length of a model's name.
const MAX_MODEL_CHARS: usize = 80;

/// Renders calls, tokens, cost and time of all agents.
#[must_use]
pub fn render_costs(facts: &Facts) -> Markup {
    let spent = facts.total_spend();
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
                    tbody { @for (role, model, bill) in bills_by_model(facts) { (render_cost_row(role.name(), &model, &bill)) } }
                    tfoot { (render_cost_row("all", "", &spent.total())) }
                }
            }
        }
        @if !facts.former_agents.is_empty() {
            p.note { "The run went on with other agents. What a step took that was cut off before stands with those who ended it." }
        }
        @if let Some(limits) = describe_spending_limits(&facts.limits) { p.note { "Limit: " (limits) "." } }
    }
}

fn render_cost_row(role: &str, model: &str, bill: &AgentBill) -> Markup {
    html! {
        tr {
            th scope="row" { (role) }
            td.words { (model) }
            td { (bill.calls) }
            @for tokens in [bill.usage.input, bill.usage.cached, bill.usage.output] { td { (group_with_spaces(tokens)) } }
            td { (format_cost_cell(bill)) }
            td { (format_age(bill.answer_time())) }
        }
    }
}

/// Returns the bill of each model that was ever configured for a role, sorted by role.
fn bills_by_model(facts: &Facts) -> Vec<(AgentRole, String, AgentBill)> {
    let mut rows: Vec<(AgentRole, String, AgentBill)> = Vec::new();
    for (agents, bills) in facts.spend_by_agents() {
        for (role, bill) in bills.by_role() {
            let model = agent_model(agents, role);
            match rows.iter_mut().find(|(other, name, _)| *other == role && *name == model) {
                Some((_, _, sum)) => *sum += *bill,
                None => rows.push((role, model, *bill)),
            }
        }
    }
    rows.sort_by_key(|(role, ..)| *role);
    rows
}

/// Returns the provider, model and command configured for a role.
fn agent_model(agents: &RecordedAgents, role: AgentRole) -> String {
    let Some(said) = agents.0.get(role.name()) else { return NOT_AVAILABLE.to_owned() };
    let words = ["provider", "model", "command"].iter().filter_map(|name| said.get(*name));
    short_line(&words.cloned().collect::<Vec<_>>().join(" "), MAX_MODEL_CHARS)
}

fn format_cost_cell(bill: &AgentBill) -> String {
    match (bill.known_cost(), bill.calls_without_price) {
        (None, _) => "unknown".to_owned(),
        (Some(cost), 0) => cost.to_string(),
        (Some(cost), unknown) => format!("{cost}, {unknown} unknown"),
    }
}

/// Formats a number as `1 234 567`, with narrow spaces.
pub(crate) fn group_with_spaces(number: u64) -> String {
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
        let check = |number, text: &str| {
            assert_eq!(group_with_spaces(number), text.replace(' ', "\u{202f}"));
        };
        check(0, "0");
        check(999, "999");
        check(1_000, "1 000");
        check(12_345_678, "12 345 678");
    }
}
