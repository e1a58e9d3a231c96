//! Describes stops, phases, costs and rules for people, briefly and in the words of the
//! documentation.

use crate::figure::format_figure;
use crate::lookup;
use jiff::Timestamp;
use std::time::Duration;
use treebeam_core::bill::{AgentBill, Cost, RoleBills};
use treebeam_core::event::{BudgetKind, StopReason, SweepSubject, WorldKind};
use treebeam_core::evidence::Artifact;
use treebeam_core::facts::{Facts, RootBaseline, RunPhase};
use treebeam_core::gate::GateRule;
use treebeam_core::id::CodePlace;
use treebeam_core::num::Finite;
use treebeam_core::policy::{Direction, RunLimits};

/// Formats a count with its noun: `1 eval`, `2 evals`.
pub(crate) fn format_count(number: impl TryInto<u64>, thing: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// Describes the world of a run: real or dry.
pub(crate) fn describe_world(world: WorldKind) -> String {
    match world {
        WorldKind::Dry { seed } => format!("dry (seed {seed}): no model, no sweep"),
        WorldKind::Real => "real".to_owned(),
    }
}

/// Describes why a run is over.
pub(crate) const fn describe_stop(reason: StopReason) -> &'static str {
    match reason {
        StopReason::MaxDepth => "all depths are done",
        StopReason::EmptyFrontier => "no candidate of the last depth was promoted",
        StopReason::NoIdeas => "no node of the frontier got an idea",
        StopReason::MaxEvals => "the budget of evals is used up",
        StopReason::MaxCost => "the next answer could cost more than is left",
        StopReason::MaxTokens => "the next answer could take more tokens than are left",
        StopReason::Deadline => "the time is over",
        StopReason::StrictDepthFailure => "an eval failed, and that was to end the run",
    }
}

/// Formats the cost of answers, as far as it is known.
pub(crate) fn format_cost(bill: &AgentBill) -> String {
    match (bill.calls, bill.known_cost()) {
        (0, _) => Cost::default().to_string(),
        (_, None) => "at an unknown price".to_owned(),
        (_, Some(cost)) if bill.calls_without_price > 0 => format!("more than {cost}"),
        (_, Some(cost)) => cost.to_string(),
    }
}

/// Formats the cost of answers to the cent, for a cell of a narrow table.
pub(crate) fn format_cents(bill: &AgentBill) -> String {
    let cost = |bill: &AgentBill| format!("${:.2}", bill.cost.to_dollars());
    match (bill.known_cost(), bill.calls_without_price) {
        (None, 0) => "$0".to_owned(),
        (None, _) => "unknown".to_owned(),
        (Some(_), 0) => cost(bill),
        (Some(_), _) => format!("≥ {}", cost(bill)),
    }
}

/// Describes calls, tokens and cost of agents' answers.
pub(crate) fn describe_bill(bill: &AgentBill) -> String {
    let tokens = format_count(bill.usage.total_tokens(), "token");
    let cost = match (bill.known_cost(), bill.calls_without_price) {
        (None, _) => "at an unknown price".to_owned(),
        (Some(cost), 0) => cost.to_string(),
        (Some(cost), unknown) => {
            format!("{cost} and {} of unknown price", format_count(unknown, "call"))
        }
    };
    format!(
        "{}, {tokens}, {cost}; answered in {}",
        format_count(bill.calls, "call"),
        format_age(bill.answer_time())
    )
}

/// Describes the bills in total and then by role; empty without answers.
pub(crate) fn describe_bills(bills: &RoleBills) -> Vec<String> {
    let mut lines: Vec<String> =
        bills.by_role().map(|(role, one)| format!("{role}: {}", describe_bill(one))).collect();
    if lines.len() > 1 {
        lines.insert(0, describe_bill(&bills.total()));
    }
    lines
}

/// Describes the limits on cost and tokens, if there are any.
pub(crate) fn describe_spending_limits(run_limits: &RunLimits) -> Option<String> {
    let cost =
        run_limits.max_cost_usd.map(|dollars| format!("at most ${}", dollars.to_exact_string()));
    let tokens = run_limits.max_tokens_total.map(|tokens| format!("at most {tokens} tokens"));
    let limits: Vec<String> = [cost, tokens].into_iter().flatten().collect();
    (!limits.is_empty()).then(|| limits.join(", "))
}

/// Returns the configuration key of a budget.
pub(crate) const fn budget_key(budget: BudgetKind) -> &'static str {
    match budget {
        BudgetKind::Cost => "`max_cost_usd`",
        BudgetKind::Tokens => "`max_tokens_total`",
        BudgetKind::Deadline => "`deadline`",
    }
}

/// Returns a note on results that the run did not measure.
pub(crate) fn user_results_note(results: &Artifact) -> Option<String> {
    results.user_source().map(|file| format!("taken from `{file}`, not measured"))
}

/// Describes which sweep a candidate with the same code shares.
pub(crate) fn describe_same_code(original: SweepSubject) -> String {
    match original {
        SweepSubject::Root => "same code as the root".to_owned(),
        SweepSubject::Eval(eval) => format!("same code as {}", CodePlace::Candidate(eval)),
    }
}

/// Describes the phase of a run.
pub(crate) fn describe_phase(facts: &Facts) -> String {
    match &facts.phase {
        RunPhase::Measuring => match lookup::user_baseline(facts) {
            Some(file) => format!("taking the root's baseline from `{file}`"),
            None => "measuring the root's baseline".to_owned(),
        },
        RunPhase::Searching => format!("trying ideas at depth {}", facts.depth),
        RunPhase::Promoting { left } => {
            format!(
                "closing depth {}: {} to promote",
                facts.depth,
                format_count(left.len(), "candidate")
            )
        }
        RunPhase::Stopped { reason, .. } => {
            format!("stopped, {} ({reason})", describe_stop(*reason))
        }
    }
}

/// Describes when a candidate's sweep counts as complete.
pub(crate) fn describe_completeness(facts: &Facts) -> String {
    if let Some(limit) = facts.settings.sweep_config_limit {
        let last = limit.get() - 1;
        return format!("exactly {limit} rows, one for each configuration 0…{last}, all ok");
    }
    let gate = &facts.settings.gate;
    let rows = match (gate.min_rows, &facts.baseline) {
        (Some(rows), _) => format!("at least {rows} rows"),
        (None, RootBaseline::Measured { rows, .. }) => {
            format!("at least as many rows as the root baseline ({rows})")
        }
        (None, RootBaseline::Unmeasured | RootBaseline::Refused { .. }) => {
            "at least as many rows as the root baseline".to_owned()
        }
    };
    let rate = Finite::new(gate.min_ok_rate.get() * 100.0);
    format!("{rows}, at least {} % of them ok", format_figure(rate))
}

/// Describes the direction of a metric.
pub(crate) const fn describe_direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Higher => "higher is better",
        Direction::Lower => "lower is better",
    }
}

/// Describes a rule of the gate, as the condition that must hold.
pub(crate) const fn describe_rule(rule: GateRule) -> &'static str {
    match rule {
        GateRule::Completed => "implemented, committed, swept and scored",
        GateRule::Artifacts => "its results are those that were kept, byte by byte",
        GateRule::Protected => "nothing protected was changed",
        GateRule::Complete => "all configurations are there and ok",
        GateRule::WellFormed => {
            "its results are in the form of a sweep, and what may not change did not"
        }
        GateRule::PrimaryPresent => "the primary metric can be compared",
        GateRule::NumbersKept => "no metric lost a number that its parent has",
        GateRule::Promising => "worth exploring, or mixed",
        GateRule::PrimaryHeld => "the primary metric is no worse than its parent's",
        GateRule::HasEffect => "it changed some result",
        GateRule::Rankable => "it can be ranked",
    }
}

/// Formats the time between two moments, like an age.
pub(crate) fn format_span(from: Timestamp, to: Timestamp) -> String {
    format_age(Duration::try_from(to.duration_since(from)).unwrap_or_default())
}

/// Formats an age in the largest unit of which there are at least two.
pub(crate) fn format_age(age: Duration) -> String {
    let seconds = age.as_secs();
    let units = [("d", 86_400), ("h", 3_600), ("min", 60)];
    let fits = units.into_iter().find(|(_, length)| seconds >= 2 * length);
    let (unit, length) = fits.unwrap_or(("s", 1));
    format!("{} {unit}", seconds / length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_one_unit() {
        let check = |seconds, text| assert_eq!(format_age(Duration::from_secs(seconds)), text);
        check(0, "0 s");
        check(119, "119 s");
        check(120, "2 min");
        check(7_199, "119 min");
        check(7_200, "2 h");
        check(172_800, "2 d");
        check(100 * 86_400, "100 d");
    }
}
