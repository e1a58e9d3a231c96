//! Describes the change of the primary metric. Its own change keeps the metric's sign; the gain is
//! positive for an improvement.

use crate::figure::{NOT_AVAILABLE, format_figure};
use treebeam_core::evidence::{Comparison, PrimaryMeans};
use treebeam_core::num::Finite;
use treebeam_core::policy::{Direction, ScorePolicy};

/// Describes the primary's own change: `22.9 → 16.3, −29 %`. Scores of the first rules version have
/// no means: then only the difference.
#[must_use]
pub fn primary_change(policy: &ScorePolicy, comparison: &Comparison) -> String {
    match (comparison.primary_means, comparison.primary_delta) {
        (Some(means), gain) => format_means(without_rounding(means, gain)),
        (None, Some(gain)) => format_own_change(gain, policy.primary_direction()),
        (None, None) => NOT_AVAILABLE.to_owned(),
    }
}

/// Returns the means as shown: with a gain of 0 they differ only by rounding, so nothing changed.
fn without_rounding(means: PrimaryMeans, gain: Option<Finite>) -> PrimaryMeans {
    let is_unchanged = gain == Some(Finite::ZERO);
    PrimaryMeans { candidate: if is_unchanged { means.baseline } else { means.candidate }, ..means }
}

fn format_means(PrimaryMeans { baseline, candidate }: PrimaryMeans) -> String {
    let change = format!("{} → {}", format_figure(Some(baseline)), format_figure(Some(candidate)));
    match percent_change(baseline.get(), candidate.get()) {
        Some(percent) => format!("{change}, {percent} %"),
        None => change,
    }
}

/// Returns the change in per cent of the baseline, with two digits if small; `None` for a baseline
/// of 0.
fn percent_change(baseline: f64, candidate: f64) -> Option<String> {
    let percent = 100.0 * (candidate - baseline) / baseline.abs();
    let rounded =
        if percent.abs() < 10.0 { format!("{percent:.1e}").parse().ok()? } else { percent.round() };
    Finite::new(rounded).map(format_signed)
}

fn format_own_change(gain: Finite, direction: Direction) -> String {
    let change = match direction {
        Direction::Higher => gain.get(),
        Direction::Lower => -gain.get(),
    };
    Finite::new(change).map_or_else(|| NOT_AVAILABLE.to_owned(), format_signed)
}

/// Formats a number with its sign, using a real minus.
fn format_signed(number: Finite) -> String {
    let size = Finite::new(number.get().abs())
        .map_or_else(|| NOT_AVAILABLE.to_owned(), Finite::to_short_string);
    match number.get() {
        n if n > 0.0 => format!("+{size}"),
        n if n < 0.0 => format!("−{size}"),
        _ => size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use treebeam_core::evidence::{Grade, Recommendation};

    fn finite(number: f64) -> Finite {
        Finite::new(number).unwrap_or_default()
    }

    #[test]
    fn a_change_is_the_metrics_own() {
        for (baseline, candidate, expect) in [
            (22.9, 16.3, "22.9 → 16.3, −29 %"),
            (16.3, 22.9, "16.3 → 22.9, +40 %"),
            (-2.0, -1.0, "-2 → -1, +50 %"),
            (100.0, 103.14, "100 → 103.14, +3.1 %"),
            (1.0, 1.0, "1 → 1, 0 %"),
            (0.0, 0.5, "0 → 0.5"),
            (0.001, 25.0, "0.001 → 25, +2499900 %"),
        ] {
            let means = PrimaryMeans { baseline: finite(baseline), candidate: finite(candidate) };
            assert_eq!(format_means(means), expect);
        }
    }

    #[test]
    fn what_rounding_leaves_is_no_change() {
        let compared = |baseline: f64, candidate: f64, gain: f64| {
            let means = PrimaryMeans { baseline: finite(baseline), candidate: finite(candidate) };
            let recommendation = Recommendation {
                should_explore: false,
                grade: Grade::Mixed,
                score: Finite::ZERO,
                positive_signals: 0,
                negative_signals: 0,
                metrics_used: 1,
                reasons: Vec::new(),
            };
            let comparison = Comparison {
                baseline_rows_used: 1,
                candidate_rows_used: 1,
                recommendation,
                primary_delta: Finite::new(gain),
                paired: None,
                primary_means: Some(means),
            };
            primary_change(&ScorePolicy::trading_preset(), &comparison)
        };
        assert_eq!(compared(1.0, 1.0 + 2.0 * f64::EPSILON, 0.0), "1 → 1, 0 %");
        assert_eq!(compared(0.3, 0.1 + 0.2, 0.0), "0.3 → 0.3, 0 %");
        assert_eq!(compared(1e-13, -1e-13, -2e-13), "1e-13 → -1e-13, −200 %");
    }

    #[test]
    fn without_means_it_is_by_how_much() {
        assert_eq!(format_own_change(finite(2.71), Direction::Lower), "−2.71");
        assert_eq!(format_own_change(finite(-2.71), Direction::Lower), "+2.71");
        assert_eq!(format_own_change(finite(2.71), Direction::Higher), "+2.71");
        assert_eq!(format_own_change(finite(0.0), Direction::Lower), "0");
    }
}
