//! Formats numbers: short for people, exact for programs. It computes none.

use treebeam_core::num::Finite;

/// Placeholder for a missing value.
pub const NOT_AVAILABLE: &str = "n/a";

/// Formats a number for people: up to six significant digits, `n/a` for none.
#[must_use]
pub fn format_figure(number: Option<Finite>) -> String {
    number.map_or_else(|| NOT_AVAILABLE.to_owned(), Finite::to_short_string)
}

/// Formats a change for people: like [`format_figure`], with a `+` if positive.
#[must_use]
pub fn format_change(number: Option<Finite>) -> String {
    let sign = if number.is_some_and(|number| number.get() > 0.0) { "+" } else { "" };
    format!("{sign}{}", format_figure(number))
}

/// Formats a number for programs: the shortest text that parses to the same number, empty for none.
#[must_use]
pub fn format_exact(number: Option<Finite>) -> String {
    number.map(Finite::to_exact_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_for_people() {
        let check = |number: f64, short: &str, signed: &str| {
            assert_eq!(format_figure(Finite::new(number)), short);
            assert_eq!(format_change(Finite::new(number)), signed);
        };
        check(0.0, "0", "0");
        check(-0.0, "0", "0");
        check(0.1 + 0.2, "0.3", "+0.3");
        check(-1.0 / 3.0, "-0.333333", "-0.333333");
        check(12.0, "12", "+12");
        check(999_999.96, "1000000", "+1000000");
        check(1.234_567_8e-7, "1.23457e-7", "+1.23457e-7");
        check(-2.5e300, "-2.5e300", "-2.5e300");
        check(f64::NAN, "n/a", "n/a");
    }

    #[test]
    fn numbers_are_exact_for_programs() {
        for number in [0.0, 0.1 + 0.2, -1.0 / 3.0, 5e-324, f64::MAX, 1e16, 1e-5, 123_456_789.25] {
            let text = format_exact(Finite::new(number));
            assert_eq!(text.parse(), Ok(number), "{text}");
            assert!(text.len() < 25, "{text}");
        }
        assert_eq!(format_exact(None), "");
    }
}
