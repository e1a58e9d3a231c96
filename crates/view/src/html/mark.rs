//! What an outcome looks like: a shape and a class, so that colour is never all that tells. Sizes are the caller's.

use super::plot::px;
use crate::outcome::Outcome;
use maud::{Markup, html};

/// The class of its colour.
pub(crate) const fn class(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Promoted | Outcome::Chosen => "kept",
        Outcome::Passed => "passed",
        Outcome::Rejected => "rejected",
        Outcome::Failed => "failed",
        Outcome::Control => "control",
        Outcome::Unfinished | Outcome::Superseded | Outcome::SetAside => "aside",
        Outcome::Scored | Outcome::Running | Outcome::Queued => "open",
    }
}

/// Its shape around a point.
pub(crate) fn shape(outcome: Outcome, size: f64) -> Markup {
    let d = match outcome {
        Outcome::Promoted | Outcome::Chosen | Outcome::Rejected => {
            return html! { circle r=(px(size)) {} };
        }
        Outcome::Passed => {
            let s = px(size * 1.2);
            format!("M0-{s}L{s} 0 0 {s}-{s} 0z")
        }
        Outcome::Failed => {
            let (s, double) = (px(size * 0.8), px(size * 1.6));
            format!("M-{s}-{s}l{double} {double}m0-{double}l-{double} {double}")
        }
        Outcome::Control => {
            let (s, double) = (px(size * 0.9), px(size * 1.8));
            format!("M-{s}-{s}h{double}v{double}h-{double}z")
        }
        Outcome::Unfinished | Outcome::Superseded | Outcome::SetAside => {
            format!("M-{0} 0h{1}", px(size), px(size * 2.0))
        }
        Outcome::Scored | Outcome::Running | Outcome::Queued => {
            let (s, double) = (px(size), px(size * 2.0));
            format!("M-{s} {s}L0-{s} {s} {s}h-{double}z")
        }
    };
    html! { path d=(d) {} }
}

/// A mark of its own, for a line of text or a legend.
pub(crate) fn icon(outcome: Outcome) -> Markup {
    html! {
        svg.icon viewBox="-8 -8 16 16" aria-hidden="true" {
            g class={ "mark " (class(outcome)) } { (shape(outcome, 5.0)) }
        }
    }
}

/// What the marks mean, of those that are to be seen.
pub(crate) fn legend(seen: impl Iterator<Item = Outcome>) -> Markup {
    html! {
        ul.legend {
            @for outcome in seen { li { (icon(outcome)) (words(outcome)) } }
        }
    }
}

/// An outcome in a few words.
pub(crate) const fn words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Promoted => "promoted: a node now",
        Outcome::Chosen => "chosen: a node soon",
        Outcome::Passed => "passed the gate, not among the best",
        Outcome::Rejected => "rejected by the gate",
        Outcome::Failed => "failed: no score",
        Outcome::Unfinished => "unfinished: a budget was reached",
        Outcome::Control => "control: tried on the root for comparison",
        Outcome::Scored => "scored: its depth is open",
        Outcome::Running => "under way",
        Outcome::Queued => "waits",
        Outcome::Superseded => "evaluated again under another id",
        Outcome::SetAside => "set aside for another idea",
    }
}
