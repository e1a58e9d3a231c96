//! Equality up to rounding: the one rule that effects, signals and gains rest on.

/// Largest rounding difference, as a share of the larger number. Near 0 every difference counts.
const MAX_ROUNDING_RATIO: f64 = 1e-12;

/// Returns true if two numbers differ by no more than rounding.
pub(crate) fn is_rounding_difference(before: f64, after: f64) -> bool {
    (before - after).abs() <= MAX_ROUNDING_RATIO * before.abs().max(after.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_is_relative_and_never_absolute() {
        for (before, after, expect) in [
            (0.0, 0.0, true),
            (0.0, -0.0, true),
            (0.3, 0.1 + 0.2, true),
            (1e300, 1e300 * (1.0 + 1e-13), true),
            (1e-300, 1e-300 * (1.0 + 1e-13), true),
            (1.0, 1.0 + 1e-11, false),
            (1e-13, -1e-13, false),
            (0.0, 1e-13, false),
            (0.0, 5e-324, false),
            (5e-324, 1e-323, false),
            (-f64::MAX, f64::MAX, false),
        ] {
            assert_eq!(is_rounding_difference(before, after), expect, "{before} {after}");
            assert_eq!(is_rounding_difference(after, before), expect, "{after} {before}");
            assert_eq!(is_rounding_difference(-before, -after), expect, "-{before} -{after}");
        }
    }
}
