//! Renders the best code state against the root, on the search's and on hold-out results.

use super::metrics::{MetricsColumn, render_metrics};
use crate::holdout::remaining_gain;
use maud::{Markup, html};
use treebeam_core::policy::ScorePolicy;
use treebeam_score::compare::ComparisonDetails;

/// Renders both comparisons, and how much of the primary's gain remains.
#[must_use]
pub fn render_holdout(
    policy: &ScorePolicy,
    seen: &ComparisonDetails,
    unseen: &ComparisonDetails,
) -> Markup {
    let left = remaining_gain(seen, unseen, &policy.primary);
    html! {
        @if let Some(left) = left {
            p { strong { (format!("{:.0} %", 100.0 * left)) } " of the primary's gain is left on results that the search never saw." }
        }
        div.pair {
            section.against { h3 { "What the search saw" } (render_metrics(policy, &[MetricsColumn { name: "root", details: seen }])) }
            section.against { h3 { "What it never saw" } (render_metrics(policy, &[MetricsColumn { name: "root", details: unseen }])) }
        }
    }
}
