//! The line that a constant is moved along, so that a step means the same everywhere on it: factors for sizes, odds for
//! shares of one, and something between sums and factors for what may be zero or change its sign.

use super::literal::Literal;

/// Near zero a step of a fraction is about this.
const NEAR_ZERO_UNIT: f64 = 0.1;

/// How a value becomes a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ValueAxis {
    /// There are two values.
    Flag,
    /// By factors; the sign stays.
    Size {
        /// -1 or 1.
        sign: f64,
    },
    /// By odds: between 0 and 1.
    Share,
    /// By sums near zero, by factors far from it.
    Signed {
        /// What is near.
        unit: f64,
    },
}

impl ValueAxis {
    /// The axis of a constant that has had these values, the present one included.
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

    /// Where a value is.
    pub(super) fn position_of(self, value: f64) -> f64 {
        match self {
            Self::Flag => value,
            Self::Size { sign } => (value * sign).ln(),
            Self::Share => (value / (1.0 - value)).ln(),
            Self::Signed { unit } => (value / unit).asinh(),
        }
    }

    /// What is there.
    pub(super) fn value_at(self, place: f64) -> f64 {
        match self {
            Self::Flag => place,
            Self::Size { sign } => sign * place.exp(),
            Self::Share => 1.0 / (1.0 + (-place).exp()),
            Self::Signed { unit } => unit * place.sinh(),
        }
    }

    /// Whether a value is on it.
    pub(super) fn contains(self, value: f64) -> bool {
        match self {
            Self::Flag => (0.0..=1.0).contains(&value),
            Self::Size { sign } => value * sign > 0.0 && value.is_finite(),
            Self::Share => 0.0 < value && value < 1.0,
            Self::Signed { .. } => value.is_finite(),
        }
    }
}
