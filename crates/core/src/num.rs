//! Numbers that can be compared: finite by construction, so that a NaN never wins a rank.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;

/// Real number, neither NaN nor infinite; `-0.0` is `0.0`. Checked once, where numbers enter.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Finite(f64);

impl Finite {
    /// The number zero.
    pub const ZERO: Self = Self(0.0);

    /// Returns the number, or `None` if it is NaN or infinite.
    #[must_use]
    pub fn new(number: f64) -> Option<Self> {
        number.is_finite().then_some(Self(number + 0.0))
    }
    /// Formats the number with six significant digits, for messages: the record has all digits.
    #[must_use]
    pub fn to_short_string(self) -> String {
        Self(format!("{:.5e}", self.0).parse().unwrap_or(self.0)).to_exact_string()
    }
    /// Formats the number as the shortest text that parses to the same number, with an exponent
    /// where the digits would run long.
    #[must_use]
    pub fn to_exact_string(self) -> String {
        let size = self.0.abs();
        let readable = size == 0.0 || (1e-5..1e16).contains(&size);
        if readable { self.0.to_string() } else { format!("{:e}", self.0) }
    }
    /// Returns the number as an `f64`.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Eq for Finite {}

#[expect(
    clippy::derive_ord_xor_partial_ord,
    reason = "for finite numbers without -0.0 both orders agree"
)]
impl Ord for Finite {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl fmt::Display for Finite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Finite> for f64 {
    fn from(number: Finite) -> Self {
        number.0
    }
}

/// Error for a NaN or infinite number where a finite one is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a number here must be finite")]
pub struct NotFinite;

impl TryFrom<f64> for Finite {
    type Error = NotFinite;
    fn try_from(number: f64) -> Result<Self, NotFinite> {
        Self::new(number).ok_or(NotFinite)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_finite_numbers_enter_and_minus_zero_is_zero() {
        assert_eq!(Finite::new(f64::NAN), None);
        assert_eq!(Finite::new(f64::INFINITY), None);
        assert_eq!(Finite::new(-0.0).map(|n| n.get().to_bits()), Some(0));
        assert_eq!(Finite::new(-0.0).map(|n| n.cmp(&Finite::ZERO)), Some(Ordering::Equal));
    }

    #[test]
    fn words_have_short_numbers() {
        let check = |number, expected: &str| {
            assert_eq!(Finite::new(number).map(Finite::to_short_string).as_deref(), Some(expected));
        };
        check(0.032_399_999_999_999_88, "0.0324");
        check(-1.0 / 3.0, "-0.333333");
        check(0.0, "0");
        check(123_456_789.0, "123457000");
        check(1e-9, "1e-9");
    }
}
