//! The primary metric in words: its own change, whatever the direction, and the gain, which is positive where it got better.

use crate::figure::{NONE, figure};
use treebeam_core::evidence::{Comparison, PrimaryMeans};
use treebeam_core::num::Finite;
use treebeam_core::policy::{Direction, ScorePolicy};

/// The primary's own change: `22.9 → 16.3, −29 %`. Figures of the first rules have no means: then by how much it changed.
#[must_use]
pub fn primary_change(policy: &ScorePolicy, comparison: &Comparison) -> String {
    match (comparison.primary_means, comparison.primary_delta) {
        (Some(means), _) => means_in_words(means),
        (None, Some(gain)) => by_how_much(gain, policy.primary_direction()),
        (None, None) => NONE.to_owned(),
    }
}

fn means_in_words(PrimaryMeans { baseline, candidate }: PrimaryMeans) -> String {
    let change = format!("{} → {}", figure(Some(baseline)), figure(Some(candidate)));
    match percent(baseline.get(), candidate.get()) {
        Some(percent) => format!("{change}, {percent} %"),
        None => change,
    }
}

/// The change in per cent of the baseline, with at most two digits beside the zeros; none where the baseline is 0.
fn percent(baseline: f64, candidate: f64) -> Option<String> {
    let percent = 100.0 * (candidate - baseline) / baseline.abs();
    let rounded =
        if percent.abs() < 10.0 { format!("{percent:.1e}").parse().ok()? } else { percent.round() };
    Finite::new(rounded).map(signed)
}

fn by_how_much(gain: Finite, direction: Direction) -> String {
    let change = match direction {
        Direction::Higher => gain.get(),
        Direction::Lower => -gain.get(),
    };
    Finite::new(change).map_or_else(|| NONE.to_owned(), signed)
}

/// A number with its sign, a real minus where it is less.
fn signed(number: Finite) -> String {
    let size = Finite::new(number.get().abs()).map_or_else(|| NONE.to_owned(), Finite::short);
    match number.get() {
        n if n > 0.0 => format!("+{size}"),
        n if n < 0.0 => format!("−{size}"),
        _ => size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(means_in_words(means), expect);
        }
    }

    #[test]
    fn without_means_it_is_by_how_much() {
        assert_eq!(by_how_much(finite(2.71), Direction::Lower), "−2.71");
        assert_eq!(by_how_much(finite(-2.71), Direction::Lower), "+2.71");
        assert_eq!(by_how_much(finite(2.71), Direction::Higher), "+2.71");
        assert_eq!(by_how_much(finite(0.0), Direction::Lower), "0");
    }
}
