//! Bills of agents' replies: calls, tokens, money and time, by role. No limits and no estimates.

use crate::role::AgentRole;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Add, AddAssign};
use std::time::Duration;

/// Bills of some replies by role. Roles without a reply have no entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<AgentRole, AgentBill>", into = "BTreeMap<AgentRole, AgentBill>")]
pub struct RoleBills(Vec<(AgentRole, AgentBill)>);

// A list in the order of roles: an eval has one with a role or two; a map takes room for eleven.
impl From<BTreeMap<AgentRole, AgentBill>> for RoleBills {
    fn from(map: BTreeMap<AgentRole, AgentBill>) -> Self {
        Self(map.into_iter().collect())
    }
}

impl From<RoleBills> for BTreeMap<AgentRole, AgentBill> {
    fn from(bills: RoleBills) -> Self {
        bills.0.into_iter().collect()
    }
}

impl RoleBills {
    /// Returns true if there is no reply on any bill.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the bill of one more reply.
    pub fn add(&mut self, role: AgentRole, bill: AgentBill) {
        if bill.calls == 0 {
            return;
        }
        if let Some((_, sum)) = self.0.iter_mut().find(|(of, _)| *of == role) {
            *sum += bill;
        } else {
            let at = self.0.partition_point(|(of, _)| *of < role);
            self.0.insert(at, (role, bill));
        }
    }

    /// Returns the sum over all roles.
    #[must_use]
    pub fn total(&self) -> AgentBill {
        self.0.iter().fold(AgentBill::default(), |mut sum, (_, bill)| {
            sum += *bill;
            sum
        })
    }

    /// Returns each role with replies, in the order in which the roles act.
    pub fn by_role(&self) -> impl Iterator<Item = (AgentRole, &AgentBill)> {
        self.0.iter().map(|(role, bill)| (*role, bill))
    }

    fn bill_of(&self, role: AgentRole) -> Option<&AgentBill> {
        self.0.iter().find(|(of, _)| *of == role).map(|(_, bill)| bill)
    }

    /// Subtracts an earlier state of the same bills.
    #[must_use]
    pub fn spent_since(&self, before: &Self) -> Self {
        let mut since = Self::default();
        for (role, bill) in self.by_role() {
            since.add(role, before.bill_of(role).map_or(*bill, |before| bill.spent_since(before)));
        }
        since
    }
}

impl AddAssign<&Self> for RoleBills {
    fn add_assign(&mut self, other: &Self) {
        other.by_role().for_each(|(role, bill)| self.add(role, *bill));
    }
}

impl<'a> FromIterator<&'a Self> for RoleBills {
    fn from_iter<I: IntoIterator<Item = &'a Self>>(all: I) -> Self {
        let mut sum = Self::default();
        all.into_iter().for_each(|bills| sum += bills);
        sum
    }
}

/// Bill of some replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BillRecord", into = "BillRecord")]
pub struct AgentBill {
    /// Number of replies.
    pub calls: u32,
    /// Number of replies without a known price: `cost` does not include them.
    pub calls_without_price: u32,
    /// Tokens, as far as reported.
    pub usage: TokenUsage,
    /// Money, as far as prices are known.
    pub cost: Cost,
    /// Duration of the replies in milliseconds, without waiting for a slot or for a rate limit.
    pub millis: u64,
}

/// Serialised form of a bill: `flatten` would give the same form, but in JSON only.
#[derive(Serialize, Deserialize)]
struct BillRecord {
    calls: u32,
    calls_without_price: u32,
    input: u64,
    cached: u64,
    output: u64,
    cost: Cost,
    millis: u64,
}

impl From<BillRecord> for AgentBill {
    fn from(line: BillRecord) -> Self {
        let BillRecord { calls, calls_without_price, input, cached, output, cost, millis } = line;
        let usage = TokenUsage { input, cached, output };
        Self { calls, calls_without_price, usage, cost, millis }
    }
}

impl From<AgentBill> for BillRecord {
    fn from(bill: AgentBill) -> Self {
        let AgentBill { calls, calls_without_price, usage, cost, millis } = bill;
        let TokenUsage { input, cached, output } = usage;
        Self { calls, calls_without_price, input, cached, output, cost, millis }
    }
}

impl AgentBill {
    /// Returns the duration of the replies.
    #[must_use]
    pub const fn answer_time(&self) -> Duration {
        Duration::from_millis(self.millis)
    }

    /// Subtracts an earlier state of the same bill.
    #[must_use]
    pub const fn spent_since(&self, before: &Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(before.calls),
            calls_without_price: self
                .calls_without_price
                .saturating_sub(before.calls_without_price),
            usage: self.usage.spent_since(&before.usage),
            cost: self.cost.saturating_sub(before.cost),
            millis: self.millis.saturating_sub(before.millis),
        }
    }

    /// Returns the cost, or `None` if no reply has a known price.
    #[must_use]
    pub fn known_cost(&self) -> Option<Cost> {
        (self.calls_without_price < self.calls).then_some(self.cost)
    }
}

impl AddAssign for AgentBill {
    fn add_assign(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.calls_without_price =
            self.calls_without_price.saturating_add(other.calls_without_price);
        self.usage = self.usage + other.usage;
        self.cost = self.cost + other.cost;
        self.millis = self.millis.saturating_add(other.millis);
    }
}

/// Tokens of a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// All input tokens.
    pub input: u64,
    /// Input tokens that were cached.
    pub cached: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
}

impl TokenUsage {
    /// Subtracts an earlier count of the same tokens.
    #[must_use]
    pub const fn spent_since(&self, before: &Self) -> Self {
        Self {
            input: self.input.saturating_sub(before.input),
            cached: self.cached.saturating_sub(before.cached),
            output: self.output.saturating_sub(before.output),
        }
    }

    /// Returns the sum of input and output tokens.
    #[must_use]
    pub const fn total_tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl Add for TokenUsage {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cached: self.cached.saturating_add(other.cached),
            output: self.output.saturating_add(other.output),
        }
    }
}

/// Amount of money, in millionths of a millionth of a dollar, so that sums are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cost(u64);

impl Cost {
    /// Creates an amount from millionths of a millionth of a dollar.
    #[must_use]
    pub const fn from_pico_dollars(amount: u64) -> Self {
        Self(amount)
    }

    /// Creates an amount from dollars; negative numbers and NaN give 0.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    pub fn from_dollars(amount: f64) -> Self {
        Self((amount * 1e12).round() as u64)
    }

    /// Returns the amount in dollars.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "shown to people")]
    pub fn to_dollars(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// Subtracts an amount; the result is at least 0.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Cost {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${:.6}", self.to_dollars())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bill(calls_without_price: u32, cost: u64) -> AgentBill {
        let usage = TokenUsage { input: 10, cached: 4, output: 3 };
        AgentBill {
            calls: 1,
            calls_without_price,
            usage,
            cost: Cost::from_pico_dollars(cost),
            millis: 1500,
        }
    }

    #[test]
    fn roles_add_up_and_an_empty_bill_is_none() {
        let mut bills = RoleBills::default();
        bills.add(AgentRole::Ideas, AgentBill::default());
        assert!(bills.is_empty() && bills.total() == AgentBill::default());
        bills.add(AgentRole::Coder, bill(0, 7));
        bills.add(AgentRole::Reviewer, bill(1, 0));
        bills.add(AgentRole::Coder, bill(0, 7));
        let twice: RoleBills = [&bills, &bills].into_iter().collect();
        let total = twice.total();
        assert_eq!((total.calls, total.calls_without_price), (6, 2));
        assert_eq!(total.usage, TokenUsage { input: 60, cached: 24, output: 18 });
        assert_eq!(
            (total.cost, total.answer_time()),
            (Cost::from_pico_dollars(28), Duration::from_secs(9))
        );
        assert_eq!(twice.spent_since(&bills), bills);
        assert!(bills.spent_since(&bills).is_empty());
        let roles: Vec<_> = twice.by_role().map(|(role, bill)| (role, bill.calls)).collect();
        assert_eq!(roles, [(AgentRole::Coder, 4), (AgentRole::Reviewer, 2)]);
    }

    #[test]
    fn what_nobody_knows_the_price_of_has_no_cost() {
        assert_eq!(bill(1, 0).known_cost(), None);
        assert_eq!(bill(0, 0).known_cost(), Some(Cost::default()));
        let mut mixed = bill(1, 0);
        mixed += bill(0, 7);
        assert_eq!(mixed.known_cost(), Some(Cost::from_pico_dollars(7)));
        assert_eq!(AgentBill::default().known_cost(), None);
    }
}
