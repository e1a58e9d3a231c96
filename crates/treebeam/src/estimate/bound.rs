//! What a budget can bound, and whose calls it cannot: what nobody reports is not counted against anything.

use super::Asked;
use std::fmt;
use treebeam_run::port::Role;

/// When it is known what a call of somebody takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
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
pub(super) enum Hold {
    /// None is made that could exceed it.
    Firm,
    /// Those under way may exceed it.
    Late,
    /// They count as far as somebody says what they cost.
    AsSaid,
    /// They do not count.
    Not,
}

/// A budget that is set, and how it holds for each who is asked.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    /// With its unit.
    pub(super) most: String,
    pub(super) key: &'static str,
    pub(super) holds: Vec<(Role, Hold)>,
}

impl Asked {
    /// How a budget of tokens holds.
    pub(super) const fn tokens_hold(&self) -> Hold {
        match self.known {
            Known::Before | Known::Nothing => Hold::Firm,
            Known::After => Hold::Late,
            Known::Never => Hold::Not,
        }
    }

    /// How a budget of money holds.
    pub(super) const fn cost_holds(&self) -> Hold {
        match (self.known, self.price) {
            (Known::Nothing, _) | (Known::Before, Some(_)) => Hold::Firm,
            (Known::After, Some(_)) => Hold::Late,
            (Known::After, None) => Hold::AsSaid,
            (Known::Before, None) | (Known::Never, _) => Hold::Not,
        }
    }
}

impl Bound {
    fn roles(&self, hold: Hold) -> String {
        let roles = self.holds.iter().filter(|(_, it)| *it == hold);
        roles.map(|(role, _)| format!("`{role}`")).collect::<Vec<_>>().join(", ")
    }

    fn has(&self, hold: Hold) -> bool {
        self.holds.iter().any(|(_, it)| *it == hold)
    }
}

/// `never more than $5.00` and the key, or what is true instead.
impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { most, key, .. } = self;
        if !self.holds.is_empty() && self.holds.iter().all(|(_, hold)| *hold == Hold::Not) {
            write!(f, "{most} (`{key}`) bounds nothing")?;
        } else if self.has(Hold::Late) || self.has(Hold::AsSaid) {
            write!(f, "{most} (`{key}`) may be exceeded by the calls under way")?;
        } else {
            write!(f, "never more than {most} (`{key}`)")?;
        }
        if self.has(Hold::AsSaid) {
            write!(
                f,
                ", calls of {} count as far as they say their cost",
                self.roles(Hold::AsSaid)
            )?;
        }
        if self.has(Hold::Not) {
            let roles = self.roles(Hold::Not);
            write!(f, ", calls of {roles} are not counted: `--max-total-idea-evals` bounds them")?;
        }
        Ok(())
    }
}
