//! Policy of the control group: its share of a run's evals, whose ideas are tried on the root only.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Kind and size of a run's control group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ControlPolicy {
    /// Ideas are tried on the root only; the tree has to beat the best of them.
    BestOfN(ControlShare),
}

/// Share of all evals in millionths, so that sums are exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlShare(u32);

/// The whole, in millionths.
const WHOLE_MILLIONTHS: u32 = 1_000_000;

impl ControlShare {
    /// Default share: a quarter.
    pub const DEFAULT: Self = Self(WHOLE_MILLIONTHS / 4);
    /// Allowed shares: neither side may become too small to compare.
    const ALLOWED_MILLIONTHS: std::ops::RangeInclusive<u32> =
        WHOLE_MILLIONTHS / 100..=WHOLE_MILLIONTHS / 10 * 9;
}

impl ControlPolicy {
    const POLICY_NAME: &str = "best-of-n";

    const fn share_millionths(self) -> u32 {
        let Self::BestOfN(ControlShare(millionths)) = self;
        millionths
    }

    /// Returns the maximum number of control evals among this number of evals in total.
    #[must_use]
    pub fn control_part_of(self, evals: u32) -> u32 {
        scale_count(evals, self.share_millionths(), WHOLE_MILLIONTHS)
    }

    /// Returns the number of control evals that belong to this number of tree evals.
    #[must_use]
    pub fn control_beside(self, tree: u32) -> u32 {
        scale_count(tree, self.share_millionths(), WHOLE_MILLIONTHS - self.share_millionths())
    }
}

fn scale_count(number: u32, of: u32, whole: u32) -> u32 {
    let part = u64::from(number) * u64::from(of) / u64::from(whole.max(1));
    u32::try_from(part).unwrap_or(u32::MAX)
}

impl FromStr for ControlPolicy {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "it must be `best-of-n`, or `best-of-n=0.4` for another part of the evals than a quarter, from 0.01 to 0.9"
                .to_owned()
        };
        let rest = text.strip_prefix(Self::POLICY_NAME).ok_or_else(wrong)?;
        if rest.is_empty() {
            return Ok(Self::BestOfN(ControlShare::DEFAULT));
        }
        let share: f64 =
            rest.strip_prefix('=').and_then(|part| part.parse().ok()).ok_or_else(wrong)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
        let millionths = (share * f64::from(WHOLE_MILLIONTHS)).round() as u32;
        if !ControlShare::ALLOWED_MILLIONTHS.contains(&millionths) {
            return Err(wrong());
        }
        Ok(Self::BestOfN(ControlShare(millionths)))
    }
}

impl TryFrom<String> for ControlPolicy {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<ControlPolicy> for String {
    fn from(control: ControlPolicy) -> Self {
        control.to_string()
    }
}

/// Formats the policy so that it parses to the same value.
impl fmt::Display for ControlPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}={}",
            Self::POLICY_NAME,
            f64::from(self.share_millionths()) / f64::from(WHOLE_MILLIONTHS)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written_the_same() {
        let check = |text: &str, written: &str| {
            let control: ControlPolicy = text.parse().expect("a control");
            assert_eq!(control.to_string(), written, "{text}");
            assert_eq!(written.parse(), Ok(control));
        };
        check("best-of-n", "best-of-n=0.25");
        check("best-of-n=0.4", "best-of-n=0.4");
        check("best-of-n=0.010", "best-of-n=0.01");
        check("best-of-n=0.333333", "best-of-n=0.333333");
        for odd in ["", "best", "best-of-n=", "best-of-n=0", "best-of-n=0.95", "best-of-n=nan"] {
            assert!(odd.parse::<ControlPolicy>().is_err(), "{odd}");
        }
    }

    /// The control group reaches exactly its share of all evals, in whatever steps the tree's evals
    /// come.
    #[test]
    fn a_part_is_kept_exactly() {
        for (text, tree, control) in [
            ("best-of-n", 7, 2),
            ("best-of-n", 21, 7),
            ("best-of-n=0.4", 21, 14),
            ("best-of-n=0.5", 9, 9),
            ("best-of-n=0.1", 9, 1),
            ("best-of-n=0.1", 8, 0),
        ] {
            let parsed: ControlPolicy = text.parse().expect("a control");
            assert_eq!(parsed.control_beside(tree), control, "{text} beside {tree}");
        }
        for text in ["best-of-n", "best-of-n=0.01", "best-of-n=0.37", "best-of-n=0.9"] {
            let control: ControlPolicy = text.parse().expect("a control");
            for most in 0..500 {
                let quota = control.control_part_of(most);
                assert!(control.control_beside(most - quota) >= quota, "{text}: {quota} of {most}");
            }
        }
    }
}
