//! The best code state against the root on the results that a search saw and on those that it never saw.

use super::metrics::{Column, metrics};
use crate::holdout::kept;
use maud::{Markup, html};
use treebeam_core::policy::ScorePolicy;
use treebeam_core::score::Details;

/// Both comparisons, and how much of the primary's gain is left.
#[must_use]
pub fn holdout(policy: &ScorePolicy, seen: &Details, unseen: &Details) -> Markup {
    let left = kept(seen, unseen, &policy.primary);
    html! {
        @if let Some(left) = left {
            p { strong { (format!("{:.0} %", 100.0 * left)) } " of the primary's gain is left on results that the search never saw." }
        }
        div.pair {
            section.against { h3 { "What the search saw" } (metrics(policy, &[Column { name: "root", details: seen }])) }
            section.against { h3 { "What it never saw" } (metrics(policy, &[Column { name: "root", details: unseen }])) }
        }
    }
}
