//! Defines a shape and a CSS class for each eval status, so that colour is never the only hint.
//! Callers set the size.

use super::plot::format_px;
use crate::outcome::EvalStatus;
use maud::{Markup, html};

/// Returns the CSS class of a status, which sets its colour.
pub(crate) const fn status_class(outcome: EvalStatus) -> &'static str {
    match outcome {
        EvalStatus::Promoted | EvalStatus::Chosen => "kept",
        EvalStatus::Passed => "passed",
        EvalStatus::Rejected => "rejected",
        EvalStatus::Failed => "failed",
        EvalStatus::Control => "control",
        EvalStatus::Unfinished | EvalStatus::Superseded | EvalStatus::SetAside => "aside",
        EvalStatus::Scored | EvalStatus::Running | EvalStatus::Queued => "open",
    }
}

/// Renders the shape of a status around a point.
pub(crate) fn status_shape(outcome: EvalStatus, size: f64) -> Markup {
    let d = match outcome {
        EvalStatus::Promoted | EvalStatus::Chosen | EvalStatus::Rejected => {
            return html! { circle r=(format_px(size)) {} };
        }
        EvalStatus::Passed => {
            let s = format_px(size * 1.2);
            format!("M0-{s}L{s} 0 0 {s}-{s} 0z")
        }
        EvalStatus::Failed => {
            let (s, double) = (format_px(size * 0.8), format_px(size * 1.6));
            format!("M-{s}-{s}l{double} {double}m0-{double}l-{double} {double}")
        }
        EvalStatus::Control => {
            let (s, double) = (format_px(size * 0.9), format_px(size * 1.8));
            format!("M-{s}-{s}h{double}v{double}h-{double}z")
        }
        EvalStatus::Unfinished | EvalStatus::Superseded | EvalStatus::SetAside => {
            format!("M-{0} 0h{1}", format_px(size), format_px(size * 2.0))
        }
        EvalStatus::Scored | EvalStatus::Running | EvalStatus::Queued => {
            let (s, double) = (format_px(size), format_px(size * 2.0));
            format!("M-{s} {s}L0-{s} {s} {s}h-{double}z")
        }
    };
    html! { path d=(d) {} }
}

/// Renders the shape as an icon, for a line of text or a legend.
pub(crate) fn status_icon(outcome: EvalStatus) -> Markup {
    html! {
        svg.icon viewBox="-8 -8 16 16" aria-hidden="true" {
            g class={ "mark " (status_class(outcome)) } { (status_shape(outcome, 5.0)) }
        }
    }
}

/// Renders a legend of the statuses that occur.
pub(crate) fn status_legend(seen: impl Iterator<Item = EvalStatus>) -> Markup {
    html! {
        ul.legend {
            @for outcome in seen { li { (status_icon(outcome)) (describe_status(outcome)) } }
        }
    }
}

/// Describes a status in a few words.
pub(crate) const fn describe_status(outcome: EvalStatus) -> &'static str {
    match outcome {
        EvalStatus::Promoted => "promoted: a node now",
        EvalStatus::Chosen => "chosen: a node soon",
        EvalStatus::Passed => "passed the gate, not among the best",
        EvalStatus::Rejected => "rejected by the gate",
        EvalStatus::Failed => "failed: no score",
        EvalStatus::Unfinished => "unfinished: a budget was reached",
        EvalStatus::Control => "control: tried on the root for comparison",
        EvalStatus::Scored => "scored: its depth is open",
        EvalStatus::Running => "under way",
        EvalStatus::Queued => "waits",
        EvalStatus::Superseded => "evaluated again under another id",
        EvalStatus::SetAside => "set aside for another idea",
    }
}
