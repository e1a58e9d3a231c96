//! Describes how far to trust the best: the selection it was picked from, and what luck would show.
//! Computes nothing itself, and knows nothing of hold-out data.

use crate::figure::{NOT_AVAILABLE, format_change, format_figure};
use crate::markdown::{MarkdownTable, MarkdownText};
use crate::outcome::{EvalCounts, EvalStatus};
use crate::words::format_count;
use treebeam_core::facts::Facts;
use treebeam_core::id::NodeId;
use treebeam_core::num::Finite;
use treebeam_score::luck::{
    GainPosition, Luck, LuckEstimate, LuckYardstick, MIN_CANDIDATES, estimate_luck,
};

/// Limits of the measures of luck.
pub(crate) const LUCK_LIMITS: &str = "Neither measure of luck is right. By configurations: as if each configuration were a draw of its own; those of \
    one sweep are often near copies of each other, and other data would move all of them at once, so luck may be larger. By \
    candidates: as if all that candidates differ by were luck; where ideas do differ, luck is smaller. Both suppose normal noise, anew \
    at each depth; where it is the same data that flatter every depth, depths add up to less.";
/// Advice to the user.
pub(crate) const TRUST_ADVICE: &str =
    "Judge it on data that the search never saw before you rely on it.";

/// Describes what the best was picked from, and how its gain compares with luck; `None` if nothing
/// is scored.
pub(crate) fn trust_sentences(facts: &Facts) -> Option<(Luck, Vec<String>)> {
    let luck = estimate_luck(facts)?;
    let sentences = [
        Some(picked_sentence(facts, &luck)),
        Some(luck_sentence(facts, &luck)),
        no_noise_sentence(&luck),
    ];
    Some((luck, sentences.into_iter().flatten().collect()))
}

fn picked_sentence(facts: &Facts, luck: &Luck) -> String {
    let from = format_count(luck.candidate_count(), "valid candidate");
    let mut text = match facts.best_node() {
        NodeId::ROOT => format!("No node ranks above the root; {from} had figures of their own."),
        _ => format!(
            "The best was picked from {from}, by the very results that it is shown with: part of its gain is luck."
        ),
    };
    if luck.without_effect > 0 {
        text.push_str(&format!(" {} more changed no figure.", luck.without_effect));
    }
    let tree = facts.evals.iter().filter(|eval| eval.group.is_tree());
    let failed = EvalCounts::from_evals(tree).get(EvalStatus::Failed);
    if failed > 0 {
        text.push_str(&format!(" {} ended without a score.", format_count(failed, "eval")));
    }
    text
}

/// Describes the gain that luck would show, and how the best's gain compares with it; the root has
/// no gain.
fn luck_sentence(facts: &Facts, luck: &Luck) -> String {
    let yardsticks = luck.yardsticks();
    let ([low, ..], [.., high]) = (yardsticks.as_slice(), yardsticks.as_slice()) else {
        return unknown_luck_sentence(luck);
    };
    let expected = format_range(low.expected, high.expected);
    let rarely = format_range(low.rarely, high.rarely);
    let luck_alone = format!(
        "Had no idea any effect, the best of a search of this size would still show a gain of about {expected} in the primary \
         metric, and in one such search of twenty more than {rarely}."
    );
    if facts.best_node() == NodeId::ROOT {
        return luck_alone;
    }
    let stands = match luck.gain_position() {
        Some(GainPosition::Within) => "luck alone may show that",
        Some(GainPosition::Between) => {
            "more than luck is likely to show by one measure, and not by the other"
        }
        Some(GainPosition::Above) if yardsticks.len() > 1 => {
            "more than luck is likely to show, by both measures"
        }
        Some(GainPosition::Above) => {
            "more than luck is likely to show, by the one measure that there is"
        }
        None => "which cannot be held against it",
    };
    format!("{luck_alone} This one has a gain of {}: {stands}.", format_change(luck.gain))
}

/// Explains why luck cannot be estimated.
fn unknown_luck_sentence(luck: &Luck) -> String {
    let why = if [luck.by_configurations, luck.by_candidates].contains(&LuckEstimate::NoNoise) {
        "there is no noise to measure it by".to_owned()
    } else if luck.candidate_count() < MIN_CANDIDATES {
        format!("there are fewer than {MIN_CANDIDATES} valid candidates that changed a figure")
    } else {
        "there are too few candidates, with too few configurations".to_owned()
    };
    format!("How large luck is cannot be told: {why}.")
}

/// Names the measures that have no noise, if any.
fn no_noise_sentence(luck: &Luck) -> Option<String> {
    let about = |(name, measure, why)| match measure {
        LuckEstimate::NoNoise => Some(format!("{name} there is no noise to measure by: {why}.")),
        LuckEstimate::TooFew | LuckEstimate::Known(_) => None,
    };
    let alike = "most candidates change the primary metric alike in all of them";
    let same = "most of them change the primary metric by the same";
    let measures = [
        ("By configurations", luck.by_configurations, alike),
        ("By candidates", luck.by_candidates, same),
    ];
    let said: Vec<String> = measures.into_iter().filter_map(about).collect();
    (!said.is_empty()).then(|| said.join(" "))
}

/// Formats a range as `+0.1 to +0.2`.
fn format_range(low: Finite, high: Finite) -> String {
    let (low, high) = (format_luck(Some(low)), format_luck(Some(high)));
    if low == high { low } else { format!("{low} to {high}") }
}

/// Returns a row for each measure of luck: its name, the noise of one candidate, the expected gain
/// of the best by luck, the gain it would rarely exceed, and the ratio of the gain to the expected
/// one.
pub(crate) fn luck_measures(luck: &Luck) -> Vec<[String; 5]> {
    let measure = |(name, by): (&str, LuckEstimate)| {
        let by = by.yardstick()?;
        let [expected, rarely] = [by.expected, by.rarely].map(|luck| format_luck(Some(luck)));
        Some([
            name.to_owned(),
            format_figure(round_luck(Some(by.noise))),
            expected,
            rarely,
            format_gain_ratio(luck, by),
        ])
    };
    [("by configurations", luck.by_configurations), ("by candidates", luck.by_candidates)]
        .into_iter()
        .filter_map(measure)
        .collect()
}

/// Formats an estimate of luck as a change.
pub(crate) fn format_luck(luck: Option<Finite>) -> String {
    format_change(round_luck(luck))
}

/// Rounds an estimate of luck to three digits, its precision.
pub(crate) fn round_luck(luck: Option<Finite>) -> Option<Finite> {
    luck.and_then(|luck| Finite::new(format!("{:.2e}", luck.get()).parse().ok()?))
}

/// Column heads of the table of measures.
pub(crate) const MEASURE_COLUMNS: [&str; 5] = [
    "luck",
    "noise of one candidate",
    "the best by luck",
    "in one search of twenty, above",
    "gain / best by luck",
];

/// Formats a ratio as `1.9 times`.
fn format_gain_ratio(luck: &Luck, by: LuckYardstick) -> String {
    let times = luck.gain.map(|gain| gain.get() / by.expected.get());
    let times = times.filter(|times| times.is_finite());
    times.map_or_else(|| NOT_AVAILABLE.to_owned(), |times| format!("{times:.1} times"))
}

/// Renders the section of the summary on trust.
pub(crate) fn trust_section(facts: &Facts) -> Option<String> {
    let (luck, sentences) = trust_sentences(facts)?;
    let said = sentences
        .iter()
        .map(|said| MarkdownText::from_text(said).to_string())
        .collect::<Vec<_>>()
        .join(" ");
    let advice = if facts.best_node() == NodeId::ROOT { "" } else { TRUST_ADVICE };
    let mut parts = vec!["## How far to trust the best".to_owned(), format!("{said} {advice}")];
    let measures = luck_measures(&luck);
    if !measures.is_empty() {
        let mut table = MarkdownTable::new(MEASURE_COLUMNS);
        for row in measures {
            table.add_row(row.map(|cell| MarkdownText::from_text(&cell)));
        }
        parts.extend([table.to_string(), LUCK_LIMITS.to_owned()]);
    }
    Some(parts.iter().map(|part| part.trim_end()).collect::<Vec<_>>().join("\n\n"))
}
