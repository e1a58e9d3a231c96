//! Stops, phases and rules in words for people. Short, and in the words of the documentation.

use crate::figure::figure;
use crate::read;
use jiff::Timestamp;
use std::time::Duration;
use treebeam_core::bill::{Bill, Bills, Cost};
use treebeam_core::event::{BudgetKind, Stop, Subject, WorldKind};
use treebeam_core::evidence::Artifact;
use treebeam_core::facts::{Baseline, Facts, Phase};
use treebeam_core::gate::Rule;
use treebeam_core::id::Place;
use treebeam_core::num::Finite;
use treebeam_core::policy::{Direction, Reach};

/// `1 eval`, `2 evals`.
pub(crate) fn count(number: impl TryInto<u64>, thing: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// What is behind the ports.
pub(crate) fn world(world: WorldKind) -> String {
    match world {
        WorldKind::Dry { seed } => format!("dry (seed {seed}): no model, no sweep"),
        WorldKind::Real => "real".to_owned(),
    }
}

/// Why a run is over.
pub(crate) const fn stop(reason: Stop) -> &'static str {
    match reason {
        Stop::MaxDepth => "all depths are done",
        Stop::EmptyFrontier => "no candidate of the last depth was promoted",
        Stop::NoIdeas => "no node of the frontier got an idea",
        Stop::MaxEvals => "the budget of evals is used up",
        Stop::MaxCost => "the next answer could cost more than is left",
        Stop::MaxTokens => "the next answer could take more tokens than are left",
        Stop::Deadline => "the time is over",
        Stop::StrictDepthFailure => "an eval failed, and that was to end the run",
    }
}

/// What answers cost, as far as that is known.
pub(crate) fn cost(bill: &Bill) -> String {
    match (bill.calls, bill.known_cost()) {
        (0, _) => Cost::default().to_string(),
        (_, None) => "at an unknown price".to_owned(),
        (_, Some(cost)) if bill.calls_without_price > 0 => format!("more than {cost}"),
        (_, Some(cost)) => cost.to_string(),
    }
}

/// The same in a cell of a narrow table, to the cent.
pub(crate) fn cents(bill: &Bill) -> String {
    let cost = |bill: &Bill| format!("${:.2}", bill.cost.in_dollars());
    match (bill.known_cost(), bill.calls_without_price) {
        (None, 0) => "$0".to_owned(),
        (None, _) => "unknown".to_owned(),
        (Some(_), 0) => cost(bill),
        (Some(_), _) => format!("≥ {}", cost(bill)),
    }
}

/// What answers of agents took.
pub(crate) fn bill(bill: &Bill) -> String {
    let tokens = count(bill.usage.total(), "token");
    let cost = match (bill.known_cost(), bill.calls_without_price) {
        (None, _) => "at an unknown price".to_owned(),
        (Some(cost), 0) => cost.to_string(),
        (Some(cost), unknown) => {
            format!("{cost} and {} of unknown price", count(unknown, "call"))
        }
    };
    format!("{}, {tokens}, {cost}; answered in {}", count(bill.calls, "call"), age(bill.time()))
}

/// The same, all together and then by role; nothing where nothing was answered.
pub(crate) fn bills(bills: &Bills) -> Vec<String> {
    let mut lines: Vec<String> =
        bills.by_role().map(|(role, one)| format!("{role}: {}", bill(one))).collect();
    if lines.len() > 1 {
        lines.insert(0, bill(&bills.total()));
    }
    lines
}

/// The most that answers of agents may take, if there is such a limit.
pub(crate) fn spending(reach: &Reach) -> Option<String> {
    let cost = reach.max_cost_usd.map(|dollars| format!("at most ${}", dollars.exact()));
    let tokens = reach.max_tokens_total.map(|tokens| format!("at most {tokens} tokens"));
    let limits: Vec<String> = [cost, tokens].into_iter().flatten().collect();
    (!limits.is_empty()).then(|| limits.join(", "))
}

/// A budget, by its key.
pub(crate) const fn budget(budget: BudgetKind) -> &'static str {
    match budget {
        BudgetKind::Cost => "`max_cost_usd`",
        BudgetKind::Tokens => "`max_tokens_total`",
        BudgetKind::Deadline => "`deadline`",
    }
}

/// What is to be known of results that the run did not measure.
pub(crate) fn given(results: &Artifact) -> Option<String> {
    results.given().map(|file| format!("taken from `{file}`, not measured"))
}

/// The twin whose results stand for a candidate's own sweep.
pub(crate) fn same_code(original: Subject) -> String {
    match original {
        Subject::Root => "same code as the root".to_owned(),
        Subject::Eval(eval) => format!("same code as {}", Place::Candidate(eval)),
    }
}

/// What the run is at.
pub(crate) fn phase(facts: &Facts) -> String {
    match &facts.phase {
        Phase::Measuring => match read::given_baseline(facts) {
            Some(file) => format!("taking the root's baseline from `{file}`"),
            None => "measuring the root's baseline".to_owned(),
        },
        Phase::Searching => format!("trying ideas at depth {}", facts.depth),
        Phase::Promoting { left } => {
            format!("closing depth {}: {} to promote", facts.depth, count(left.len(), "candidate"))
        }
        Phase::Stopped { reason, .. } => format!("stopped, {} ({reason})", stop(*reason)),
    }
}

/// When a candidate's sweep counts as complete.
pub(crate) fn completeness(facts: &Facts) -> String {
    if let Some(limit) = facts.meaning.sweep_config_limit {
        let last = limit.get() - 1;
        return format!("exactly {limit} rows, one for each configuration 0…{last}, all ok");
    }
    let gate = &facts.meaning.gate;
    let rows = match (gate.min_rows, &facts.baseline) {
        (Some(rows), _) => format!("at least {rows} rows"),
        (None, Baseline::Measured { rows, .. }) => {
            format!("at least as many rows as the root baseline ({rows})")
        }
        (None, Baseline::Unmeasured | Baseline::Refused { .. }) => {
            "at least as many rows as the root baseline".to_owned()
        }
    };
    let rate = Finite::new(gate.min_ok_rate.get() * 100.0);
    format!("{rows}, at least {} % of them ok", figure(rate))
}

/// The metric that may not regress.
pub(crate) const fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Higher => "higher is better",
        Direction::Lower => "lower is better",
    }
}

/// A rule of the gate, as what has to hold.
pub(crate) const fn rule(rule: Rule) -> &'static str {
    match rule {
        Rule::Completed => "implemented, committed, swept and scored",
        Rule::Artifacts => "its results are those that were kept, byte by byte",
        Rule::Protected => "nothing protected was changed",
        Rule::Complete => "all configurations are there and ok",
        Rule::WellFormed => {
            "its results are in the form of a sweep, and what may not change did not"
        }
        Rule::PrimaryPresent => "the primary metric can be compared",
        Rule::NumbersKept => "no metric lost a number that its parent has",
        Rule::Promising => "worth exploring, or mixed",
        Rule::PrimaryHeld => "the primary metric is no worse than its parent's",
        Rule::HasEffect => "it changed some result",
        Rule::Rankable => "it can be ranked",
    }
}

/// How long it is from one moment to another, like an age.
pub(crate) fn span(from: Timestamp, to: Timestamp) -> String {
    age(Duration::try_from(to.duration_since(from)).unwrap_or_default())
}

/// How long ago something was, in the largest unit of which there are two.
pub(crate) fn age(age: Duration) -> String {
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
        let check = |seconds, text| assert_eq!(age(Duration::from_secs(seconds)), text);
        check(0, "0 s");
        check(119, "119 s");
        check(120, "2 min");
        check(7_199, "119 min");
        check(7_200, "2 h");
        check(172_800, "2 d");
        check(100 * 86_400, "100 d");
    }
}
