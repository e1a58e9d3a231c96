//! What a run may ask of its agents, before it asks anything: calls by role, times what questions and answers usually take.
//! Pure, and no promise: nobody knows how long a repository's files are, or how often a patch is sent back.

mod bound;

pub(crate) use bound::Known;

use bound::{Bound, Hold};
use serde_json::{Value, json};
use std::fmt;
use treebeam_core::group::Group;
use treebeam_core::policy::{Meaning, Reach};
use treebeam_edge::agent::price::Price;
use treebeam_run::port::{Cost, Role, Usage};

/// How often a node is asked for ideas at most.
const MOST_ASKS: u64 = 3;
/// How much longer than usual a question may be.
const LONG: u64 = 4;
/// How many characters of code a token has, usually and at least.
const CHARS_PER_TOKEN: u64 = 4;
const FEWEST_CHARS_PER_TOKEN: u64 = 2;

/// Somebody who may be asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) role: Role,
    /// How much of the repository a question shows, in characters.
    pub(crate) shown_chars: usize,
    /// The longest answer, in tokens, where somebody counts them.
    pub(crate) max_tokens: Option<u32>,
    pub(crate) price: Option<Price>,
    pub(crate) known: Known,
}

/// A run as it is configured.
#[derive(Clone, Debug)]
pub(crate) struct Estimate {
    pub(crate) expected: Sum,
    pub(crate) worst: Sum,
    pub(crate) by_role: Vec<(Role, Sum, Sum)>,
    max_cost: Option<Cost>,
    max_tokens: Option<u64>,
    max_evals: Option<u32>,
    /// Those who are asked anything.
    asked: Vec<Asked>,
}

/// What questions take together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) calls: u64,
    /// As far as they are counted.
    pub(crate) tokens: u64,
    /// As far as prices are known.
    pub(crate) cost: Cost,
    /// Calls whose price is not known.
    pub(crate) unpriced: u64,
}

/// How many questions are asked in a role, usually and at most.
#[derive(Clone, Copy)]
struct Calls {
    expected: u64,
    most: u64,
}

impl Estimate {
    pub(crate) fn new(meaning: &Meaning, reach: &Reach, asked: &[Asked]) -> Self {
        let mut estimate = Self {
            expected: Sum::default(),
            worst: Sum::default(),
            by_role: Vec::new(),
            max_cost: reach.max_cost_usd.map(|dollars| Cost::dollars(dollars.get())),
            max_tokens: reach.max_tokens_total,
            max_evals: reach.max_total_idea_evals,
            asked: Vec::new(),
        };
        for agent in asked {
            let calls = calls(meaning, reach, agent.role);
            let [input, output] = usual(agent.role);
            let shown = u64::try_from(agent.shown_chars).unwrap_or(u64::MAX);
            let longest = agent.max_tokens.map_or(output, u64::from);
            let usually = input + shown / CHARS_PER_TOKEN;
            let at_worst = input * LONG + shown / FEWEST_CHARS_PER_TOKEN;
            let expected = agent.sum(calls.expected, usually, output.min(longest));
            let worst = agent.sum(calls.most, at_worst, longest);
            estimate.expected.add(expected);
            estimate.worst.add(worst);
            estimate.by_role.push((agent.role, expected, worst));
            if calls.most > 0 {
                estimate.asked.push(agent.clone());
            }
        }
        estimate
    }

    /// What it is likely to cost, as far as that is known and allowed.
    pub(crate) fn likely_cost(&self) -> Cost {
        self.max_cost.map_or(self.expected.cost, |most| most.min(self.expected.cost))
    }

    /// Whether it may cost more than anybody knows: a price is missing, and no budget counts these calls.
    pub(crate) fn is_open_ended(&self) -> bool {
        let counts = |agent: &Asked| self.max_tokens.is_some() && agent.tokens_hold() != Hold::Not;
        self.asked.iter().any(|agent| agent.price.is_none() && !counts(agent))
    }

    /// What to do about that, where the number of evals is not bounded either.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        if !self.is_open_ended() || self.max_evals.is_some() {
            return None;
        }
        let never = self.asked.iter().any(|agent| agent.known == Known::Never);
        Some(if never {
            "set `max_total_idea_evals`: what a program takes is counted against no other budget"
        } else {
            "add the missing price to `prices`, or set `max_tokens_total`"
        })
    }

    /// The budgets that are set.
    fn bounds(&self) -> impl Iterator<Item = Bound> {
        let holds = |hold: fn(&Asked) -> Hold| {
            self.asked.iter().map(|agent| (agent.role, hold(agent))).collect()
        };
        let cost = self.max_cost.map(|most| Bound {
            most: format!("${:.2}", most.in_dollars()),
            key: "max_cost_usd",
            holds: holds(Asked::cost_holds),
        });
        let tokens = self.max_tokens.map(|most| Bound {
            most: format!("{most} tokens"),
            key: "max_tokens_total",
            holds: holds(Asked::tokens_hold),
        });
        cost.into_iter().chain(tokens)
    }

    /// For programs.
    pub(crate) fn document(&self) -> Value {
        let sum = |sum: &Sum| {
            json!({
                "calls": sum.calls,
                "tokens": sum.tokens,
                "cost_usd": sum.cost.in_dollars(),
                "calls_without_price": sum.unpriced,
            })
        };
        let role = |(role, expected, worst): &(Role, Sum, Sum)| json!({ "role": role, "expected": sum(expected), "worst": sum(worst) });
        json!({
            "expected": sum(&self.expected),
            "worst": sum(&self.worst),
            "max_cost_usd": self.max_cost.map(Cost::in_dollars),
            "max_tokens_total": self.max_tokens,
            "roles": self.by_role.iter().map(role).collect::<Vec<_>>(),
        })
    }
}

impl Asked {
    fn sum(&self, calls: u64, input: u64, output: u64) -> Sum {
        let usage = Usage {
            input: input.saturating_mul(calls),
            cached: 0,
            output: output.saturating_mul(calls),
        };
        Sum {
            calls,
            tokens: self.max_tokens.map_or(0, |_| usage.total()),
            cost: self.price.map(|price| price.cost(&usage)).unwrap_or_default(),
            unpriced: if self.price.is_some() { 0 } else { calls },
        }
    }
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.cost = self.cost + other.cost;
        self.unpriced = self.unpriced.saturating_add(other.unpriced);
    }
}

/// One node at first, then as many as the beam is wide; K ideas on each, as far as the budget of evals goes. A control group
/// is asked once at each depth.
fn calls(meaning: &Meaning, reach: &Reach, role: Role) -> Calls {
    let depths = u64::from(reach.max_depth);
    let width = u64::from(meaning.beam_width.get());
    let nodes = if depths == 0 { 0 } else { (depths - 1).saturating_mul(width) + 1 };
    let each = u64::from(meaning.ideas_per_node.get());
    let tree = nodes.saturating_mul(each).min(most_evals(meaning, reach, Group::Tree));
    let control = meaning.control.map_or(0, |control| {
        let beside = control.beside(u32::try_from(tree).unwrap_or(u32::MAX));
        u64::from(beside).min(most_evals(meaning, reach, Group::Control))
    });
    let evals = tree.saturating_add(control);
    let nodes = nodes.min(tree.div_ceil(each)).saturating_add(depths.min(control));
    let attempts = evals.saturating_mul(1 + u64::from(reach.eval_retries));
    let rounds = 1 + u64::from(reach.max_review_rounds);
    // Each question for ideas may have to be told more than fits.
    let summaries = if reach.summary_agent == Some(role) { nodes } else { 0 };
    let own = match role {
        Role::Ideas => Calls { expected: nodes, most: nodes.saturating_mul(MOST_ASKS) },
        Role::Coordinator | Role::Planner => Calls { expected: evals, most: attempts },
        // Every other patch is sent back once.
        Role::Coder | Role::Reviewer => Calls {
            expected: if rounds > 1 { evals.saturating_mul(3).div_ceil(2) } else { evals },
            most: attempts.saturating_mul(rounds),
        },
    };
    Calls {
        expected: own.expected,
        most: own.most.saturating_add(summaries.saturating_mul(MOST_ASKS)),
    }
}

/// The most evals that a group may have.
fn most_evals(meaning: &Meaning, reach: &Reach, group: Group) -> u64 {
    let Some(most) = reach.max_total_idea_evals else { return u64::MAX };
    let control = meaning.control.map_or(0, |control| control.part_of(most));
    u64::from(match group {
        Group::Tree => most - control,
        Group::Control => control,
    })
}

/// What a question and its answer usually take, in tokens.
const fn usual(role: Role) -> [u64; 2] {
    match role {
        Role::Ideas => [6_000, 3_000],
        Role::Coordinator => [3_000, 800],
        Role::Planner => [5_000, 1_500],
        Role::Coder => [12_000, 4_000],
        Role::Reviewer => [8_000, 800],
    }
}

/// `about 30 calls, 480000 tokens, $2.10; at worst …`.
impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "about {}; at worst {}", self.expected, self.worst)?;
        self.bounds().try_for_each(|bound| write!(f, "; {bound}"))
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, tokens, cost, unpriced } = *self;
        let cost = cost.in_dollars();
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

    fn agent(role: Role, price: Option<f64>) -> Asked {
        let price = price.map(|each| Price { input: each, output: each, cached: each });
        Asked { role, shown_chars: 0, max_tokens: Some(10_000), price, known: Known::Before }
    }

    fn meaning(ideas: u32, beam: u32) -> Meaning {
        let number = |n| NonZeroU32::new(n).expect("not zero");
        Meaning { ideas_per_node: number(ideas), beam_width: number(beam), ..Meaning::default() }
    }

    fn reach(depth: u32) -> Reach {
        Reach { max_depth: depth, max_review_rounds: 2, ..Reach::default() }
    }

    #[test]
    fn calls_follow_from_the_shape_of_the_tree() {
        let check = |role, meaning: &Meaning, reach: &Reach, expect: [u64; 2]| {
            let Calls { expected, most } = calls(meaning, reach, role);
            assert_eq!([expected, most], expect, "{role}");
        };
        // 1 + 2 × 2 nodes, 7 ideas on each.
        check(Role::Ideas, &meaning(7, 2), &reach(3), [5, 15]);
        check(Role::Planner, &meaning(7, 2), &reach(3), [35, 35]);
        check(Role::Coder, &meaning(7, 2), &reach(3), [53, 105]);
        check(Role::Coder, &meaning(7, 2), &reach(0), [0, 0]);
        let few = Reach { max_total_idea_evals: Some(9), eval_retries: 1, ..reach(3) };
        check(Role::Ideas, &meaning(7, 2), &few, [2, 6]);
        check(Role::Coder, &meaning(7, 2), &few, [14, 54]);
        let once = Reach { max_review_rounds: 0, ..reach(1) };
        check(Role::Reviewer, &meaning(7, 2), &once, [7, 7]);
        let controlled = Meaning { control: "best-of-n=0.5".parse().ok(), ..meaning(7, 2) };
        // As many on the root again, asked for at each of three depths.
        check(Role::Ideas, &controlled, &reach(3), [8, 24]);
        check(Role::Planner, &controlled, &reach(3), [70, 70]);
        let few = Reach { max_total_idea_evals: Some(9), ..reach(3) };
        // Five of nine in the tree, on one node, and four on the root.
        check(Role::Ideas, &controlled, &few, [4, 12]);
        check(Role::Planner, &controlled, &few, [9, 9]);
        let huge = Reach { max_depth: u32::MAX, eval_retries: u32::MAX, ..reach(1) };
        check(
            Role::Coder,
            &meaning(1000, 1000),
            &huge,
            [(u64::from(u32::MAX - 1) * 1_000_000 + 1000) * 3 / 2, u64::MAX],
        );
    }

    #[test]
    fn costs_are_added_and_what_is_not_known_is_said() {
        let both = [agent(Role::Coder, Some(1.0)), agent(Role::Ideas, None)];
        let estimate = Estimate::new(&meaning(2, 1), &reach(1), &both);
        // Two ideas in three rounds of 12000 + 4000; at worst in six of 48000 + 10000.
        assert_eq!(estimate.expected.cost, Cost::dollars(0.048));
        assert_eq!(estimate.worst.cost, Cost::dollars(6.0 * 0.058));
        assert_eq!((estimate.expected.calls, estimate.expected.unpriced), (4, 1));
        assert!(estimate.is_open_ended());
        assert_eq!(
            estimate.to_string(),
            "about 4 calls, 57000 tokens, $0.05 and the price of 1 calls, which is not known; \
             at worst 9 calls, 450000 tokens, $0.35 and the price of 3 calls, which is not known"
        );
        let shown = Asked { shown_chars: 60_000, ..agent(Role::Coder, Some(1.0)) };
        let estimate = Estimate::new(&meaning(2, 1), &reach(1), &[shown]);
        assert_eq!(estimate.expected.cost, Cost::dollars(3.0 * (0.016 + 0.015)));
        assert_eq!(estimate.worst.cost, Cost::dollars(6.0 * (0.058 + 0.030)));
        let capped = Reach { max_cost_usd: Finite::new(0.01), ..reach(1) };
        let estimate = Estimate::new(&meaning(2, 1), &capped, &both);
        assert_eq!(estimate.likely_cost(), Cost::dollars(0.01));
        assert!(estimate.is_open_ended(), "what has no price is not counted");
    }

    #[test]
    fn a_budget_is_called_a_bound_only_where_it_is_one() {
        let both =
            Reach { max_cost_usd: Finite::new(0.01), max_tokens_total: Some(900), ..reach(1) };
        let check = |agents: &[Asked], expect: [&str; 2], advice: bool| {
            let estimate = Estimate::new(&meaning(2, 1), &both, agents);
            let said = estimate.to_string();
            let expect = format!("; {}; {}", expect[0], expect[1]);
            assert!(said.ends_with(&expect), "{said}\n{expect}");
            assert_eq!(estimate.advice().is_some(), advice, "{said}");
            let few = Reach { max_total_idea_evals: Some(3), ..both.clone() };
            assert_eq!(Estimate::new(&meaning(2, 1), &few, agents).advice(), None);
        };
        let model = |price| agent(Role::Coder, price);
        let of = |role, known, price| Asked { known, ..agent(role, price) };
        let program = |role| Asked { max_tokens: None, ..of(role, Known::Never, None) };
        let firm = [
            "never more than $0.01 (`max_cost_usd`)",
            "never more than 900 tokens (`max_tokens_total`)",
        ];
        check(&[model(Some(1.0))], firm, false);
        let tuner = Asked { max_tokens: None, ..of(Role::Ideas, Known::Nothing, Some(0.0)) };
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
        check(&[of(Role::Coder, Known::After, Some(1.0))], late, false);
        let as_said = format!("{}, calls of `coder` count as far as they say their cost", late[0]);
        check(&[of(Role::Coder, Known::After, None)], [&as_said, late[1]], false);
        let rest = "calls of `ideas` are not counted: `--max-total-idea-evals` bounds them";
        let [cost, tokens] = firm.map(|firm| format!("{firm}, {rest}"));
        check(&[model(Some(1.0)), program(Role::Ideas)], [&cost, &tokens], true);
        let rest = "bounds nothing, calls of `coder`, `ideas` are not counted: `--max-total-idea-evals` bounds them";
        let [cost, tokens] = ["$0.01 (`max_cost_usd`)", "900 tokens (`max_tokens_total`)"]
            .map(|most| format!("{most} {rest}"));
        check(&[program(Role::Coder), program(Role::Ideas)], [&cost, &tokens], true);
    }
}
