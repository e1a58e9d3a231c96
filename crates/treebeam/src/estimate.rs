//! Estimates the agent calls, tokens and cost of a run before it starts.
//!
//! Calls are counted by role and multiplied by the usual size of questions and answers. Pure, and
//! no promise: file lengths and the number of rejected patches are not known in advance.

mod budget_bound;

pub(crate) use budget_bound::UsageKnowledge;

use budget_bound::{BudgetBound, BudgetHold};
use serde_json::{Value, json};
use std::fmt;
use treebeam_agent::price::ModelPrice;
use treebeam_core::group::EvalGroup;
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_run::port::{AgentRole, Cost, TokenUsage};

/// Maximum number of idea questions for one node.
const MAX_IDEA_QUESTIONS: u64 = 3;
/// Ratio of the longest to the usual question.
const LONG_QUESTION_FACTOR: u64 = 4;
/// Usual number of characters in a token of code; [`MIN_CHARS_PER_TOKEN`] is the least.
const CHARS_PER_TOKEN: u64 = 4;
const MIN_CHARS_PER_TOKEN: u64 = 2;

/// An agent that the run may call, with what its calls may cost.
#[derive(Clone, Debug)]
pub(crate) struct EstimatedAgent {
    pub(crate) role: AgentRole,
    /// Characters of the repository that a question includes.
    pub(crate) shown_chars: usize,
    /// Maximum length of an answer in tokens, if the provider limits it.
    pub(crate) max_tokens: Option<u32>,
    pub(crate) price: Option<ModelPrice>,
    pub(crate) known: UsageKnowledge,
}

/// Estimated calls and cost of a run, with the budgets that bound them.
#[derive(Clone, Debug)]
pub(crate) struct CostEstimate {
    pub(crate) expected: CallTotals,
    pub(crate) worst: CallTotals,
    pub(crate) by_role: Vec<(AgentRole, CallTotals, CallTotals)>,
    max_cost: Option<Cost>,
    max_tokens: Option<u64>,
    max_evals: Option<u32>,
    /// Agents that are called at least once.
    asked: Vec<EstimatedAgent>,
}

/// Sums over a number of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallTotals {
    pub(crate) calls: u64,
    /// Tokens, as far as they are counted.
    pub(crate) tokens: u64,
    /// Cost, as far as prices are known.
    pub(crate) cost: Cost,
    /// Number of calls whose price is not known.
    pub(crate) unpriced: u64,
}

/// Expected and maximum number of calls for a role.
#[derive(Clone, Copy)]
struct CallCounts {
    expected: u64,
    most: u64,
}

impl CostEstimate {
    pub(crate) fn new(
        settings: &FixedSettings,
        limits: &RunLimits,
        asked: &[EstimatedAgent],
    ) -> Self {
        let mut estimate = Self {
            expected: CallTotals::default(),
            worst: CallTotals::default(),
            by_role: Vec::new(),
            max_cost: limits.max_cost_usd.map(|dollars| Cost::from_dollars(dollars.get())),
            max_tokens: limits.max_tokens_total,
            max_evals: limits.max_total_idea_evals,
            asked: Vec::new(),
        };
        for agent in asked {
            let calls = count_calls(settings, limits, agent.role);
            let [input, output] = usual_tokens(agent.role);
            let shown = u64::try_from(agent.shown_chars).unwrap_or(u64::MAX);
            let longest = agent.max_tokens.map_or(output, u64::from);
            let usually = input + shown / CHARS_PER_TOKEN;
            let at_worst = input * LONG_QUESTION_FACTOR + shown / MIN_CHARS_PER_TOKEN;
            let expected = agent.total_calls(calls.expected, usually, output.min(longest));
            let worst = agent.total_calls(calls.most, at_worst, longest);
            estimate.expected.add(expected);
            estimate.worst.add(worst);
            estimate.by_role.push((agent.role, expected, worst));
            if calls.most > 0 {
                estimate.asked.push(agent.clone());
            }
        }
        estimate
    }

    /// Returns the expected cost, as far as it is known, capped by the budget.
    pub(crate) fn likely_cost(&self) -> Cost {
        self.max_cost.map_or(self.expected.cost, |most| most.min(self.expected.cost))
    }

    /// Returns true if the cost has no known bound: a price is missing, and no budget counts these
    /// calls.
    pub(crate) fn is_open_ended(&self) -> bool {
        let counts = |agent: &EstimatedAgent| {
            self.max_tokens.is_some() && agent.token_budget_hold() != BudgetHold::NotCounted
        };
        self.asked.iter().any(|agent| agent.price.is_none() && !counts(agent))
    }

    /// Returns the advice for an unbounded cost, unless the number of evals is bounded.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        if !self.is_open_ended() || self.max_evals.is_some() {
            return None;
        }
        let never = self.asked.iter().any(|agent| agent.known == UsageKnowledge::Never);
        Some(if never {
            "set `max_total_idea_evals`: what a program takes is counted against no other budget"
        } else {
            "add the missing price to `prices`, or set `max_tokens_total`"
        })
    }

    /// Returns the budgets that are set.
    fn budget_bounds(&self) -> impl Iterator<Item = BudgetBound> {
        let holds = |hold: fn(&EstimatedAgent) -> BudgetHold| {
            self.asked.iter().map(|agent| (agent.role, hold(agent))).collect()
        };
        let cost = self.max_cost.map(|most| BudgetBound {
            most: format!("${:.2}", most.to_dollars()),
            key: "max_cost_usd",
            holds: holds(EstimatedAgent::cost_budget_hold),
        });
        let tokens = self.max_tokens.map(|most| BudgetBound {
            most: format!("{most} tokens"),
            key: "max_tokens_total",
            holds: holds(EstimatedAgent::token_budget_hold),
        });
        cost.into_iter().chain(tokens)
    }

    /// Returns the estimate as JSON.
    pub(crate) fn render_json(&self) -> Value {
        let sum = |sum: &CallTotals| {
            json!({
                "calls": sum.calls,
                "tokens": sum.tokens,
                "cost_usd": sum.cost.to_dollars(),
                "calls_without_price": sum.unpriced,
            })
        };
        let role = |(role, expected, worst): &(AgentRole, CallTotals, CallTotals)| json!({ "role": role, "expected": sum(expected), "worst": sum(worst) });
        json!({
            "expected": sum(&self.expected),
            "worst": sum(&self.worst),
            "max_cost_usd": self.max_cost.map(Cost::to_dollars),
            "max_tokens_total": self.max_tokens,
            "roles": self.by_role.iter().map(role).collect::<Vec<_>>(),
        })
    }
}

impl EstimatedAgent {
    fn total_calls(&self, calls: u64, input: u64, output: u64) -> CallTotals {
        let usage = TokenUsage {
            input: input.saturating_mul(calls),
            cached: 0,
            output: output.saturating_mul(calls),
        };
        CallTotals {
            calls,
            tokens: self.max_tokens.map_or(0, |_| usage.total_tokens()),
            cost: self.price.map(|price| price.cost_of(&usage)).unwrap_or_default(),
            unpriced: if self.price.is_some() { 0 } else { calls },
        }
    }
}

impl CallTotals {
    fn add(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.cost = self.cost + other.cost;
        self.unpriced = self.unpriced.saturating_add(other.unpriced);
    }
}

/// Counts the calls of a role: one node at first, then as many as the beam is wide, with K ideas
/// each, within the budget of evals. A control group adds one idea question at each depth.
fn count_calls(settings: &FixedSettings, limits: &RunLimits, role: AgentRole) -> CallCounts {
    let depths = u64::from(limits.max_depth);
    let width = u64::from(settings.beam_width.get());
    let nodes = if depths == 0 { 0 } else { (depths - 1).saturating_mul(width) + 1 };
    let each = u64::from(settings.ideas_per_node.get());
    let tree = nodes.saturating_mul(each).min(max_evals(settings, limits, EvalGroup::Tree));
    let control = settings.control.map_or(0, |control| {
        let beside = control.control_beside(u32::try_from(tree).unwrap_or(u32::MAX));
        u64::from(beside).min(max_evals(settings, limits, EvalGroup::Control))
    });
    let evals = tree.saturating_add(control);
    let nodes = nodes.min(tree.div_ceil(each)).saturating_add(depths.min(control));
    let attempts = evals.saturating_mul(1 + u64::from(limits.eval_retries));
    let rounds = 1 + u64::from(limits.max_review_rounds);
    // Each question for ideas may need a summary of turns that no longer fit.
    let summaries = if limits.summary_agent == Some(role) { nodes } else { 0 };
    let own = match role {
        AgentRole::Ideas => {
            CallCounts { expected: nodes, most: nodes.saturating_mul(MAX_IDEA_QUESTIONS) }
        }
        AgentRole::Coordinator | AgentRole::Planner => {
            CallCounts { expected: evals, most: attempts }
        }
        // Expected: every second patch is sent back once.
        AgentRole::Coder | AgentRole::Reviewer => CallCounts {
            expected: if rounds > 1 { evals.saturating_mul(3).div_ceil(2) } else { evals },
            most: attempts.saturating_mul(rounds),
        },
    };
    CallCounts {
        expected: own.expected,
        most: own.most.saturating_add(summaries.saturating_mul(MAX_IDEA_QUESTIONS)),
    }
}

/// Returns the maximum number of evals of a group.
fn max_evals(settings: &FixedSettings, limits: &RunLimits, group: EvalGroup) -> u64 {
    let Some(most) = limits.max_total_idea_evals else { return u64::MAX };
    let control = settings.control.map_or(0, |control| control.control_part_of(most));
    u64::from(match group {
        EvalGroup::Tree => most - control,
        EvalGroup::Control => control,
    })
}

/// Returns the usual tokens of a question and its answer for a role.
const fn usual_tokens(role: AgentRole) -> [u64; 2] {
    match role {
        AgentRole::Ideas => [6_000, 3_000],
        AgentRole::Coordinator => [3_000, 800],
        AgentRole::Planner => [5_000, 1_500],
        AgentRole::Coder => [12_000, 4_000],
        AgentRole::Reviewer => [8_000, 800],
    }
}

/// Formats as `about 30 calls, 480000 tokens, $2.10; at worst …`.
impl fmt::Display for CostEstimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "about {}; at worst {}", self.expected, self.worst)?;
        self.budget_bounds().try_for_each(|bound| write!(f, "; {bound}"))
    }
}

impl fmt::Display for CallTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, tokens, cost, unpriced } = *self;
        let cost = cost.to_dollars();
        write!(f, "{calls} calls, {tokens} tokens, ")?;
        match unpriced {
            0 => write!(f, "${cost:.2}"),
            all if all == calls => f.write_str("at a price that is not known"),
            some => write!(f, "${cost:.2} and the price of {some} calls, which is not known"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;
    use treebeam_core::num::Finite;

    fn agent(role: AgentRole, price: Option<f64>) -> EstimatedAgent {
        let price = price.map(|each| ModelPrice { input: each, output: each, cached: each });
        EstimatedAgent {
            role,
            shown_chars: 0,
            max_tokens: Some(10_000),
            price,
            known: UsageKnowledge::Before,
        }
    }

    fn fixed_settings(ideas: u32, beam: u32) -> FixedSettings {
        let number = |n| NonZeroU32::new(n).expect("not zero");
        FixedSettings {
            ideas_per_node: number(ideas),
            beam_width: number(beam),
            ..FixedSettings::default()
        }
    }

    fn run_limits(depth: u32) -> RunLimits {
        RunLimits { max_depth: depth, max_review_rounds: 2, ..RunLimits::default() }
    }

    #[test]
    fn calls_follow_from_the_shape_of_the_tree() {
        let check = |role, settings: &FixedSettings, limits: &RunLimits, expect: [u64; 2]| {
            let CallCounts { expected, most } = count_calls(settings, limits, role);
            assert_eq!([expected, most], expect, "{role}");
        };
        // 1 + 2 × 2 nodes, 7 ideas on each.
        check(AgentRole::Ideas, &fixed_settings(7, 2), &run_limits(3), [5, 15]);
        check(AgentRole::Planner, &fixed_settings(7, 2), &run_limits(3), [35, 35]);
        check(AgentRole::Coder, &fixed_settings(7, 2), &run_limits(3), [53, 105]);
        check(AgentRole::Coder, &fixed_settings(7, 2), &run_limits(0), [0, 0]);
        let few = RunLimits { max_total_idea_evals: Some(9), eval_retries: 1, ..run_limits(3) };
        check(AgentRole::Ideas, &fixed_settings(7, 2), &few, [2, 6]);
        check(AgentRole::Coder, &fixed_settings(7, 2), &few, [14, 54]);
        let once = RunLimits { max_review_rounds: 0, ..run_limits(1) };
        check(AgentRole::Reviewer, &fixed_settings(7, 2), &once, [7, 7]);
        let controlled =
            FixedSettings { control: "best-of-n=0.5".parse().ok(), ..fixed_settings(7, 2) };
        // As many again on the root, in one question at each of three depths.
        check(AgentRole::Ideas, &controlled, &run_limits(3), [8, 24]);
        check(AgentRole::Planner, &controlled, &run_limits(3), [70, 70]);
        let few = RunLimits { max_total_idea_evals: Some(9), ..run_limits(3) };
        // Of nine evals, five are in the tree on one node, and four on the root.
        check(AgentRole::Ideas, &controlled, &few, [4, 12]);
        check(AgentRole::Planner, &controlled, &few, [9, 9]);
        let huge = RunLimits { max_depth: u32::MAX, eval_retries: u32::MAX, ..run_limits(1) };
        check(
            AgentRole::Coder,
            &fixed_settings(1000, 1000),
            &huge,
            [(u64::from(u32::MAX - 1) * 1_000_000 + 1000) * 3 / 2, u64::MAX],
        );
    }

    #[test]
    fn costs_are_added_and_what_is_not_known_is_said() {
        let both = [agent(AgentRole::Coder, Some(1.0)), agent(AgentRole::Ideas, None)];
        let estimate = CostEstimate::new(&fixed_settings(2, 1), &run_limits(1), &both);
        // Two ideas in three rounds of 12000 + 4000; at worst in six of 48000 + 10000.
        assert_eq!(estimate.expected.cost, Cost::from_dollars(0.048));
        assert_eq!(estimate.worst.cost, Cost::from_dollars(6.0 * 0.058));
        assert_eq!((estimate.expected.calls, estimate.expected.unpriced), (4, 1));
        assert!(estimate.is_open_ended());
        assert_eq!(
            estimate.to_string(),
            "about 4 calls, 57000 tokens, $0.05 and the price of 1 calls, which is not known; \
             at worst 9 calls, 450000 tokens, $0.35 and the price of 3 calls, which is not known"
        );
        let shown = EstimatedAgent { shown_chars: 60_000, ..agent(AgentRole::Coder, Some(1.0)) };
        let estimate = CostEstimate::new(&fixed_settings(2, 1), &run_limits(1), &[shown]);
        assert_eq!(estimate.expected.cost, Cost::from_dollars(3.0 * (0.016 + 0.015)));
        assert_eq!(estimate.worst.cost, Cost::from_dollars(6.0 * (0.058 + 0.030)));
        let capped = RunLimits { max_cost_usd: Finite::new(0.01), ..run_limits(1) };
        let estimate = CostEstimate::new(&fixed_settings(2, 1), &capped, &both);
        assert_eq!(estimate.likely_cost(), Cost::from_dollars(0.01));
        assert!(estimate.is_open_ended(), "what has no price is not counted");
    }

    #[test]
    fn a_budget_is_called_a_bound_only_where_it_is_one() {
        let both = RunLimits {
            max_cost_usd: Finite::new(0.01),
            max_tokens_total: Some(900),
            ..run_limits(1)
        };
        let check = |agents: &[EstimatedAgent], expect: [&str; 2], advice: bool| {
            let estimate = CostEstimate::new(&fixed_settings(2, 1), &both, agents);
            let said = estimate.to_string();
            let expect = format!("; {}; {}", expect[0], expect[1]);
            assert!(said.ends_with(&expect), "{said}\n{expect}");
            assert_eq!(estimate.advice().is_some(), advice, "{said}");
            let few = RunLimits { max_total_idea_evals: Some(3), ..both.clone() };
            assert_eq!(CostEstimate::new(&fixed_settings(2, 1), &few, agents).advice(), None);
        };
        let model = |price| agent(AgentRole::Coder, price);
        let of = |role, known, price| EstimatedAgent { known, ..agent(role, price) };
        let program =
            |role| EstimatedAgent { max_tokens: None, ..of(role, UsageKnowledge::Never, None) };
        let firm = [
            "never more than $0.01 (`max_cost_usd`)",
            "never more than 900 tokens (`max_tokens_total`)",
        ];
        check(&[model(Some(1.0))], firm, false);
        let tuner = EstimatedAgent {
            max_tokens: None,
            ..of(AgentRole::Ideas, UsageKnowledge::Nothing, Some(0.0))
        };
        check(&[model(Some(1.0)), tuner], firm, false);
        check(
            &[model(None)],
            [
                "$0.01 (`max_cost_usd`) bounds nothing, calls of `coder` are not counted: `--max-total-idea-evals` bounds them",
                firm[1],
            ],
            false,
        );
        let late = [
            "$0.01 (`max_cost_usd`) may be exceeded by the calls under way",
            "900 tokens (`max_tokens_total`) may be exceeded by the calls under way",
        ];
        check(&[of(AgentRole::Coder, UsageKnowledge::After, Some(1.0))], late, false);
        let as_said = format!("{}, calls of `coder` count as far as they say their cost", late[0]);
        check(&[of(AgentRole::Coder, UsageKnowledge::After, None)], [&as_said, late[1]], false);
        let rest = "calls of `ideas` are not counted: `--max-total-idea-evals` bounds them";
        let [cost, tokens] = firm.map(|firm| format!("{firm}, {rest}"));
        check(&[model(Some(1.0)), program(AgentRole::Ideas)], [&cost, &tokens], true);
        let rest = "bounds nothing, calls of `coder`, `ideas` are not counted: `--max-total-idea-evals` bounds them";
        let [cost, tokens] = ["$0.01 (`max_cost_usd`)", "900 tokens (`max_tokens_total`)"]
            .map(|most| format!("{most} {rest}"));
        check(&[program(AgentRole::Coder), program(AgentRole::Ideas)], [&cost, &tokens], true);
    }
}
