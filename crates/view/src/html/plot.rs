//! Provides scales, ticks and axes to all drawings. Knows nothing of runs.

use crate::figure::format_figure;
use maud::{Markup, html};
use treebeam_core::num::Finite;

/// Maximum number of ticks on an axis.
const MAX_TICKS: f64 = 6.0;

/// Distance beyond an end within which a tick still counts, as steps are not exact.
const TICK_SLACK: f64 = 1e-9;

/// Formats a coordinate, rounded to a tenth.
pub(crate) fn format_px(number: f64) -> String {
    let tenths = (number * 10.0).round() / 10.0;
    // Adding zero avoids `-0`.
    format!("{}", tenths + 0.0)
}

/// Converts a count to a float; counts in a drawing are far below its precision.
#[expect(clippy::cast_precision_loss, reason = "a drawing has fewer things than that")]
pub(crate) const fn to_float(count: usize) -> f64 {
    count as f64
}

/// A linear scale from values to coordinates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlotScale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl PlotScale {
    /// Creates a scale that maps the value range to the coordinate range.
    pub(crate) fn new((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        // Halves keep the order, and their difference stays finite.
        let (low, high) =
            if (high - low).is_finite() { (low, high) } else { (low / 2.0, high / 2.0) };
        let room = if high > low { 0.0 } else { low.abs().mul_add(0.1, 1.0) };
        Self { low: low - room, high: high + room, from, to }
    }

    /// Returns the coordinate of a value, clamped to the ends.
    pub(crate) fn position_of(&self, value: f64) -> f64 {
        let part = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        self.from + part * (self.to - self.from)
    }

    /// Returns true if a value is below the scale.
    pub(crate) fn is_below(&self, value: f64) -> bool {
        value < self.low
    }

    /// Returns round values between the ends.
    pub(crate) fn tick_values(&self) -> Vec<f64> {
        let step = tick_step(self.high - self.low);
        let (first, last) =
            ((self.low / step - TICK_SLACK).ceil(), (self.high / step + TICK_SLACK).floor());
        let mut ticks = Vec::new();
        let mut number = first;
        while number <= last && to_float(ticks.len()) <= MAX_TICKS * 2.0 {
            ticks.push(number * step);
            number += 1.0;
        }
        ticks
    }
}

/// Returns the smallest of 1, 2 and 5 times a power of ten that gives few enough ticks.
fn tick_step(range: f64) -> f64 {
    let wanted = range / MAX_TICKS;
    let mut power = 1.0;
    while power > wanted && power > 1e-300 {
        power /= 10.0;
    }
    while power * 10.0 < wanted {
        power *= 10.0;
    }
    let steps = [1.0, 2.0, 5.0, 10.0].map(|times| power * times);
    steps.into_iter().find(|step| *step >= wanted).unwrap_or(power * 10.0)
}

/// Renders horizontal lines at round values, with their figures at the left; zero stands out.
pub(crate) fn render_grid(scale: &PlotScale, left: f64, right: f64) -> Markup {
    html! {
        g.grid {
            @for tick in scale.tick_values() {
                @let y = format_px(scale.position_of(tick));
                line.zero[tick == 0.0] x1=(format_px(left)) x2=(format_px(right)) y1=(y) y2=(y) {}
                text x=(format_px(left - 6.0)) y=(y) dy="0.32em" text-anchor="end" {
                    (format_figure(Finite::new(tick)))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_on_their_scale_and_ticks_are_round() {
        let scale = PlotScale::new((-1.0, 3.0), (100.0, 0.0));
        assert_eq!(
            (scale.position_of(-1.0), scale.position_of(1.0), scale.position_of(9.0)),
            (100.0, 50.0, 0.0)
        );
        assert!(scale.is_below(-1.1) && !scale.is_below(-1.0));
        assert_eq!(scale.tick_values(), [-1.0, 0.0, 1.0, 2.0, 3.0]);
        let check = |low, high, count| {
            let ticks = PlotScale::new((low, high), (0.0, 1.0)).tick_values();
            assert_eq!(ticks.len(), count, "{ticks:?}");
        };
        check(0.0, 0.0, 5);
        check(0.0, 1e-9, 6);
        check(-3e12, 1.0, 4);
        check(f64::MIN, f64::MAX, 3);
        check(1e300, 1e300, 5);
        assert_eq!(
            (format_px(-0.01), format_px(1.25), format_px(3.0)),
            ("0".into(), "1.3".into(), "3".into())
        );
    }
}
