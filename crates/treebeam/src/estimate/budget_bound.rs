//! What a budget can bound, and whose calls it cannot: what nobody reports is not counted against anything.

use super::EstimatedAgent;
use std::fmt;
use treebeam_run::port::AgentRole;

/// When it is known what a call of somebody takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsageKnowledge {
    /// The most of it before it is made: a model.
    Before,
    /// When it has ended: a coding agent.
    After,
    /// Never: a program.
    Never,
    /// It takes nothing: the tuner.
    Nothing,
}

/// How a budget holds for the calls of somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BudgetHold {
    /// None is made that could exceed it.
    Firm,
    /// Those under way may exceed it.
    Late,
    /// They count as far as somebody says what they cost.
    AsReported,
    /// They do not count.
    NotCounted,
}

/// A budget that is set, and how it holds for each who is asked.
#[derive(Clone, Debug)]
pub(super) struct BudgetBound {
    /// With its unit.
    pub(super) most: String,
    pub(super) key: &'static str,
    pub(super) holds: Vec<(AgentRole, BudgetHold)>,
}

impl EstimatedAgent {
    /// How a budget of tokens holds.
    pub(super) const fn token_budget_hold(&self) -> BudgetHold {
        match self.known {
            UsageKnowledge::Before | UsageKnowledge::Nothing => BudgetHold::Firm,
            UsageKnowledge::After => BudgetHold::Late,
            UsageKnowledge::Never => BudgetHold::NotCounted,
        }
    }

    /// How a budget of money holds.
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

/// `never more than $5.00` and the key, or what is true instead.
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
