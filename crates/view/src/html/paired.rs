//! A comparison configuration by configuration: how much each one got better or worse, the worst first, with the mean and
//! its interval. With very many, every so many are drawn: the outline stays what it is.

use super::plot::{Scale, float, grid, px};
use crate::words::count;
use maud::{Markup, html};
use treebeam_core::evidence::Paired;

/// At most so many are drawn.
const MOST: usize = 160;
const SIZE: (f64, f64) = (400.0, 150.0);
/// Left, right, top, bottom.
const FIELD: (f64, f64, f64, f64) = (58.0, 394.0, 8.0, 142.0);

/// The changes, sorted.
pub(crate) fn plot(against: &str, changes: &[f64], paired: Option<Paired>) -> Markup {
    let ends = (changes.first().copied(), changes.last().copied());
    let (Some(least), Some(most)) = ends else { return html! {} };
    let scale = Scale::new((least.min(0.0), most.max(0.0)), (FIELD.3, FIELD.2));
    let said = format!(
        "The gain in the primary against {against} in {}, sorted",
        count(changes.len(), "configuration")
    );
    let width = px((0.7 * (FIELD.1 - FIELD.0) / float(changes.len().min(MOST))).clamp(1.0, 9.0));
    html! {
        svg.paired viewBox={ "0 0 " (px(SIZE.0)) " " (px(SIZE.1)) } role="img" aria-label=(said) {
            (grid(&scale, FIELD.0, FIELD.1))
            @for class in ["loss", "win"] { path class=(class) stroke-width=(width) d=(bars(changes, class, &scale)) {} }
            (mean(paired, &scale))
        }
    }
}

/// One line for each change of this kind, from zero.
fn bars(changes: &[f64], class: &str, scale: &Scale) -> String {
    let drawn = changes.len().min(MOST);
    let across = Scale::new((0.0, float(drawn)), (FIELD.0, FIELD.1));
    let zero = px(scale.at(0.0));
    let mut path = String::new();
    for at in 0..drawn {
        let Some(change) = changes.get(at * changes.len() / drawn.max(1)) else { continue };
        if (*change > 0.0) == (class == "win") && *change != 0.0 {
            let x = px(across.at(float(at) + 0.5));
            path.push_str(&format!("M{x} {zero}V{}", px(scale.at(*change))));
        }
    }
    path
}

fn mean(paired: Option<Paired>, scale: &Scale) -> Markup {
    let Some(Paired { mean_difference, low, high, .. }) = paired else { return html! {} };
    let [y, top, bottom] = [mean_difference, high, low].map(|figure| scale.at(figure.get()));
    let height = px((bottom - top).max(1.0));
    html! {
        rect.interval x=(px(FIELD.0)) width=(px(FIELD.1 - FIELD.0)) y=(px(top)) height=(height) {}
        line.mean x1=(px(FIELD.0)) x2=(px(FIELD.1)) y1=(px(y)) y2=(px(y)) {}
    }
}
