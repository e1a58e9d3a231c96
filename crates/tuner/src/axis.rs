//! Axes along which constants are moved, so that a step means the same everywhere. By factors for
//! sizes, by odds for shares, and mixed for values that may be zero or change sign.

use super::literal::Literal;

/// Unit of a signed fraction: values near zero move in steps of about this.
const NEAR_ZERO_UNIT: f64 = 0.1;

/// Mapping between a constant's values and positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ValueAxis {
    /// True or false.
    Flag,
    /// Factors; the sign stays.
    Size {
        /// Sign of the values: -1 or 1.
        sign: f64,
    },
    /// Odds, for values between 0 and 1.
    Share,
    /// Sums near zero, factors far from it.
    Signed {
        /// Size up to which a value counts as near zero.
        unit: f64,
    },
}

impl ValueAxis {
    /// Chooses the axis of a constant from all its values so far, including the present one.
    pub(super) fn from_values(literal: &Literal, values: &[f64]) -> Self {
        let all = |holds: fn(f64) -> bool| values.iter().all(|value| holds(*value));
        match literal {
            Literal::Flag { .. } => Self::Flag,
            Literal::Number { .. } if !literal.is_whole() && all(|v| 0.0 < v && v < 1.0) => {
                Self::Share
            }
            Literal::Number { .. } if all(|v| v > 0.0) => Self::Size { sign: 1.0 },
            Literal::Number { .. } if all(|v| v < 0.0) => Self::Size { sign: -1.0 },
            Literal::Number { .. } => {
                Self::Signed { unit: if literal.is_whole() { 1.0 } else { NEAR_ZERO_UNIT } }
            }
        }
    }

    /// Returns the position of a value.
    pub(super) fn position_of(self, value: f64) -> f64 {
        match self {
            Self::Flag => value,
            Self::Size { sign } => (value * sign).ln(),
            Self::Share => (value / (1.0 - value)).ln(),
            Self::Signed { unit } => (value / unit).asinh(),
        }
    }

    /// Returns the value at a position.
    pub(super) fn value_at(self, place: f64) -> f64 {
        match self {
            Self::Flag => place,
            Self::Size { sign } => sign * place.exp(),
            Self::Share => 1.0 / (1.0 + (-place).exp()),
            Self::Signed { unit } => unit * place.sinh(),
        }
    }

    /// Returns true if a value is on the axis.
    pub(super) fn contains(self, value: f64) -> bool {
        match self {
            Self::Flag => (0.0..=1.0).contains(&value),
            Self::Size { sign } => value * sign > 0.0 && value.is_finite(),
            Self::Share => 0.0 < value && value < 1.0,
            Self::Signed { .. } => value.is_finite(),
        }
    }
}
