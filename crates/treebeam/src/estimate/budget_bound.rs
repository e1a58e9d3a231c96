//! Determines how firmly a budget bounds each agent's calls: unreported usage is not counted.

use super::EstimatedAgent;
use std::fmt;
use treebeam_run::port::AgentRole;

/// When the usage of an agent's call is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsageKnowledge {
    /// Its maximum is known before the call: a model.
    Before,
    /// Known after the call: a coding agent.
    After,
    /// Never known: a program.
    Never,
    /// There is none: the tuner.
    Nothing,
}

/// How a budget bounds an agent's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BudgetHold {
    /// No call is made that could exceed it.
    Firm,
    /// Running calls may exceed it.
    Late,
    /// Calls count as far as the agent reports their cost.
    AsReported,
    /// Calls do not count.
    NotCounted,
}

/// A budget that is set, and how it bounds the calls of each agent.
#[derive(Clone, Debug)]
pub(super) struct BudgetBound {
    /// Amount with its unit.
    pub(super) most: String,
    pub(super) key: &'static str,
    pub(super) holds: Vec<(AgentRole, BudgetHold)>,
}

impl EstimatedAgent {
    /// Returns how a budget of tokens bounds the agent's calls.
    pub(super) const fn token_budget_hold(&self) -> BudgetHold {
        match self.known {
            UsageKnowledge::Before | UsageKnowledge::Nothing => BudgetHold::Firm,
            UsageKnowledge::After => BudgetHold::Late,
            UsageKnowledge::Never => BudgetHold::NotCounted,
        }
    }

    /// Returns how a budget of money bounds the agent's calls.
    pub(super) const fn cost_budget_hold(&self) -> BudgetHold {
        match (self.known, self.price) {
            (UsageKnowledge::Nothing, _) | (UsageKnowledge::Before, Some(_)) => BudgetHold::Firm,
            (UsageKnowledge::After, Some(_)) => BudgetHold::Late,
            (UsageKnowledge::After, None) => BudgetHold::AsReported,
            (UsageKnowledge::Before, None) | (UsageKnowledge::Never, _) => BudgetHold::NotCounted,
        }
    }
}

impl BudgetBound {
    fn roles_with(&self, hold: BudgetHold) -> String {
        let roles = self.holds.iter().filter(|(_, it)| *it == hold);
        roles.map(|(role, _)| format!("`{role}`")).collect::<Vec<_>>().join(", ")
    }

    fn has_hold(&self, hold: BudgetHold) -> bool {
        self.holds.iter().any(|(_, it)| *it == hold)
    }
}

/// Formats as `never more than $5.00` with the key, or how it holds instead.
impl fmt::Display for BudgetBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { most, key, .. } = self;
        if !self.holds.is_empty()
            && self.holds.iter().all(|(_, hold)| *hold == BudgetHold::NotCounted)
        {
            write!(f, "{most} (`{key}`) bounds nothing")?;
        } else if self.has_hold(BudgetHold::Late) || self.has_hold(BudgetHold::AsReported) {
            write!(f, "{most} (`{key}`) may be exceeded by the calls under way")?;
        } else {
            write!(f, "never more than {most} (`{key}`)")?;
        }
        if self.has_hold(BudgetHold::AsReported) {
            write!(
                f,
                ", calls of {} count as far as they say their cost",
                self.roles_with(BudgetHold::AsReported)
            )?;
        }
        if self.has_hold(BudgetHold::NotCounted) {
            let roles = self.roles_with(BudgetHold::NotCounted);
            write!(f, ", calls of {roles} are not counted: `--max-total-idea-evals` bounds them")?;
        }
        Ok(())
    }
}
