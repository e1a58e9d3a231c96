//! Draws a paired comparison: the change in each configuration, the worst first, with mean and
//! interval. If there are very many, only every n-th is drawn: the outline stays the same.

use super::plot::{PlotScale, format_px, render_grid, to_float};
use crate::words::format_count;
use maud::{Markup, html};
use treebeam_core::evidence::PairedDifference;

/// Maximum number of drawn changes.
const MAX_BARS: usize = 160;
const PLOT_SIZE: (f64, f64) = (400.0, 150.0);
/// Plot area: left, right, top, bottom.
const PLOT_AREA: (f64, f64, f64, f64) = (58.0, 394.0, 8.0, 142.0);

/// Renders the plot of sorted changes.
pub(crate) fn render_paired_plot(
    against: &str,
    changes: &[f64],
    paired: Option<PairedDifference>,
) -> Markup {
    let ends = (changes.first().copied(), changes.last().copied());
    let (Some(least), Some(most)) = ends else { return html! {} };
    let scale = PlotScale::new((least.min(0.0), most.max(0.0)), (PLOT_AREA.3, PLOT_AREA.2));
    let label = format!(
        "The gain in the primary against {against} in {}, sorted",
        format_count(changes.len(), "configuration")
    );
    let width = format_px(
        (0.7 * (PLOT_AREA.1 - PLOT_AREA.0) / to_float(changes.len().min(MAX_BARS))).clamp(1.0, 9.0),
    );
    html! {
        svg.paired viewBox={ "0 0 " (format_px(PLOT_SIZE.0)) " " (format_px(PLOT_SIZE.1)) } role="img" aria-label=(label) {
            (render_grid(&scale, PLOT_AREA.0, PLOT_AREA.1))
            @for class in ["loss", "win"] { path class=(class) stroke-width=(width) d=(bars_path(changes, class, &scale)) {} }
            (render_mean(paired, &scale))
        }
    }
}

/// Returns the path of all bars of a class (`win` or `loss`), each from zero.
fn bars_path(changes: &[f64], class: &str, scale: &PlotScale) -> String {
    let drawn = changes.len().min(MAX_BARS);
    let across = PlotScale::new((0.0, to_float(drawn)), (PLOT_AREA.0, PLOT_AREA.1));
    let zero = format_px(scale.position_of(0.0));
    let mut path = String::new();
    for at in 0..drawn {
        let Some(change) = changes.get(at * changes.len() / drawn.max(1)) else { continue };
        if (*change > 0.0) == (class == "win") && *change != 0.0 {
            let x = format_px(across.position_of(to_float(at) + 0.5));
            path.push_str(&format!("M{x} {zero}V{}", format_px(scale.position_of(*change))));
        }
    }
    path
}

fn render_mean(paired: Option<PairedDifference>, scale: &PlotScale) -> Markup {
    let Some(PairedDifference { mean_difference, low, high, .. }) = paired else { return html! {} };
    let [y, top, bottom] =
        [mean_difference, high, low].map(|figure| scale.position_of(figure.get()));
    let height = format_px((bottom - top).max(1.0));
    html! {
        rect.interval x=(format_px(PLOT_AREA.0)) width=(format_px(PLOT_AREA.1 - PLOT_AREA.0)) y=(format_px(top)) height=(height) {}
        line.mean x1=(format_px(PLOT_AREA.0)) x2=(format_px(PLOT_AREA.1)) y1=(format_px(y)) y2=(format_px(y)) {}
    }
}
