//! Lists the possible effects of an idea in the dry world, a mixture that covers the whole search.

use std::fmt;
use std::str::FromStr;

/// The effect of an idea, as written in its text and, once implemented, in the state file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DryRecipe {
    /// The metrics improve by this many thousandths.
    Gain(i32),
    /// The metrics improve, and a second file changes too.
    WideGain(i32),
    /// The metrics improve, but the first patch does not apply.
    LateGain(i32),
    /// The metrics improve, but the drawdown gets much worse.
    Risk,
    /// One configuration ends in an error.
    Errors,
    /// One configuration is missing.
    Short,
    /// The primary metric is not a number.
    NotANumber,
    /// The primary metric has no column.
    NoPrimary,
    /// One row is shorter than the header.
    Ragged,
    /// No result changes.
    NoEffect,
    /// The sweep fails.
    SweepFails,
    /// No patch ever applies.
    NeverApplies,
}

impl DryRecipe {
    /// Effects in the order in which a node's ideas use them.
    pub(super) const IDEA_MIXTURE: [Self; 16] = [
        Self::Gain(160),
        Self::Errors,
        Self::WideGain(60),
        Self::SweepFails,
        Self::Gain(60),
        Self::NotANumber,
        Self::LateGain(80),
        Self::Gain(-100),
        Self::Gain(10),
        Self::Short,
        Self::NoEffect,
        Self::Risk,
        Self::Gain(45),
        Self::NeverApplies,
        Self::NoPrimary,
        Self::Ragged,
    ];

    /// Returns by how many thousandths the metrics improve.
    pub(super) const fn gain_thousandths(self) -> i32 {
        match self {
            Self::Gain(n) | Self::WideGain(n) | Self::LateGain(n) => n,
            Self::Risk => 100,
            Self::Errors
            | Self::Short
            | Self::NotANumber
            | Self::NoPrimary
            | Self::Ragged
            | Self::NoEffect
            | Self::SweepFails
            | Self::NeverApplies => 0,
        }
    }

    /// Returns the effect at this attempt, counted from 1: a sweep that failed succeeds the next
    /// time, and a patch that never applies stays so.
    pub(super) const fn at_attempt(self, attempt: u64) -> Self {
        if attempt > 1 && matches!(self, Self::SweepFails) { Self::Gain(30) } else { self }
    }

    /// Returns true if a second file changes too.
    pub(super) const fn is_wide(self) -> bool {
        matches!(self, Self::WideGain(_))
    }

    /// Returns true if the first patch does not apply.
    pub(super) const fn is_late(self) -> bool {
        matches!(self, Self::LateGain(_))
    }
}

impl fmt::Display for DryRecipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gain(thousandths) => write!(f, "gain {thousandths}"),
            Self::WideGain(thousandths) => write!(f, "wide-gain {thousandths}"),
            Self::LateGain(thousandths) => write!(f, "late-gain {thousandths}"),
            Self::Risk => f.write_str("risk"),
            Self::Errors => f.write_str("errors"),
            Self::Short => f.write_str("short"),
            Self::NotANumber => f.write_str("not-a-number"),
            Self::NoPrimary => f.write_str("no-primary"),
            Self::Ragged => f.write_str("ragged"),
            Self::NoEffect => f.write_str("no-effect"),
            Self::SweepFails => f.write_str("sweep-fails"),
            Self::NeverApplies => f.write_str("never-applies"),
        }
    }
}

impl FromStr for DryRecipe {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let mut words = text.split_whitespace();
        let word = words.next().ok_or(())?;
        let number = words.next().and_then(|number| number.parse().ok());
        match (word, number) {
            ("gain", Some(thousandths)) => Ok(Self::Gain(thousandths)),
            ("wide-gain", Some(thousandths)) => Ok(Self::WideGain(thousandths)),
            ("late-gain", Some(thousandths)) => Ok(Self::LateGain(thousandths)),
            _ => Self::IDEA_MIXTURE.into_iter().find(|recipe| recipe.to_string() == word).ok_or(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_is_read_as_it_is_written() {
        for recipe in DryRecipe::IDEA_MIXTURE {
            assert_eq!(format!("{recipe} by n0001-x1-a1-2").parse(), Ok(recipe));
        }
        assert_eq!("".parse::<DryRecipe>(), Err(()));
        assert_eq!("hello".parse::<DryRecipe>(), Err(()));
    }
}
