//! How far to trust the best in words: what it was picked from, and what luck alone would have shown. Computes nothing itself,
//! and knows nothing of data that the search never saw.

use crate::figure::{NONE, change, figure};
use crate::markdown::{Md, Table};
use crate::outcome::{Counts, Outcome};
use crate::words::count;
use treebeam_core::facts::Facts;
use treebeam_core::id::NodeId;
use treebeam_core::luck::{Luck, MIN_CANDIDATES, Measure, Standing, Yardstick, luck};
use treebeam_core::num::Finite;

/// What the measures of luck do not say.
pub(crate) const LIMITS: &str = "Neither measure of luck is right. By configurations: as if each configuration were a draw of its own; those of \
    one sweep are often near copies of each other, and other data would move all of them at once, so luck may be larger. By \
    candidates: as if all that candidates differ by were luck; where ideas do differ, luck is smaller. Both suppose normal noise, anew \
    at each depth; where it is the same data that flatter every depth, depths add up to less.";
/// What there is to do about it.
pub(crate) const ADVICE: &str = "Judge it on data that the search never saw before you rely on it.";

/// What the best was picked from, and how its gain stands against luck; nothing where nothing has figures.
pub(crate) fn sentences(facts: &Facts) -> Option<(Luck, Vec<String>)> {
    let luck = luck(facts)?;
    let sentences = [Some(picked(facts, &luck)), Some(shown(facts, &luck)), noiseless(&luck)];
    Some((luck, sentences.into_iter().flatten().collect()))
}

fn picked(facts: &Facts, luck: &Luck) -> String {
    let from = count(luck.candidates(), "valid candidate");
    let mut text = match facts.best() {
        NodeId::ROOT => format!("No node ranks above the root; {from} had figures of their own."),
        _ => format!(
            "The best was picked from {from}, by the very results that it is shown with: part of its gain is luck."
        ),
    };
    if luck.without_effect > 0 {
        text.push_str(&format!(" {} more changed no figure.", luck.without_effect));
    }
    let tree = facts.evals.iter().filter(|eval| eval.group.is_tree());
    let failed = Counts::of(tree).get(Outcome::Failed);
    if failed > 0 {
        text.push_str(&format!(" {} ended without a score.", count(failed, "eval")));
    }
    text
}

/// What luck shows, and how the gain stands against that; the root has none.
fn shown(facts: &Facts, luck: &Luck) -> String {
    let yardsticks = luck.yardsticks();
    let ([low, ..], [.., high]) = (yardsticks.as_slice(), yardsticks.as_slice()) else {
        return untold(luck);
    };
    let expected = between(low.expected, high.expected);
    let rarely = between(low.rarely, high.rarely);
    let luck_alone = format!(
        "Had no idea any effect, the best of a search of this size would still show a gain of about {expected} in the primary \
         metric, and in one such search of twenty more than {rarely}."
    );
    if facts.best() == NodeId::ROOT {
        return luck_alone;
    }
    let stands = match luck.standing() {
        Some(Standing::Within) => "luck alone may show that",
        Some(Standing::Between) => {
            "more than luck is likely to show by one measure, and not by the other"
        }
        Some(Standing::Above) if yardsticks.len() > 1 => {
            "more than luck is likely to show, by both measures"
        }
        Some(Standing::Above) => {
            "more than luck is likely to show, by the one measure that there is"
        }
        None => "which cannot be held against it",
    };
    format!("{luck_alone} This one has a gain of {}: {stands}.", change(luck.gain))
}

/// Why there is nothing to hold a gain against.
fn untold(luck: &Luck) -> String {
    let why = if [luck.by_configurations, luck.by_candidates].contains(&Measure::NoNoise) {
        "there is no noise to measure it by".to_owned()
    } else if luck.candidates() < MIN_CANDIDATES {
        format!("there are fewer than {MIN_CANDIDATES} valid candidates that changed a figure")
    } else {
        "there are too few candidates, with too few configurations".to_owned()
    };
    format!("How large luck is cannot be told: {why}.")
}

/// What is said of a measure that has no noise.
fn noiseless(luck: &Luck) -> Option<String> {
    let about = |(name, measure, why)| match measure {
        Measure::NoNoise => Some(format!("{name} there is no noise to measure by: {why}.")),
        Measure::TooFew | Measure::By(_) => None,
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

/// `+0.1 to +0.2`.
fn between(low: Finite, high: Finite) -> String {
    let (low, high) = (about(Some(low)), about(Some(high)));
    if low == high { low } else { format!("{low} to {high}") }
}

/// The measures that there are: what each is called, how large the noise of one candidate is, what the best of the search
/// would show by it, what it would rarely exceed, and how the gain stands to what it would show.
pub(crate) fn measures(luck: &Luck) -> Vec<[String; 5]> {
    let measure = |(name, by): (&str, Measure)| {
        let by = by.yardstick()?;
        let [expected, rarely] = [by.expected, by.rarely].map(|luck| about(Some(luck)));
        Some([name.to_owned(), figure(rough(Some(by.noise))), expected, rarely, times(luck, by)])
    };
    [("by configurations", luck.by_configurations), ("by candidates", luck.by_candidates)]
        .into_iter()
        .filter_map(measure)
        .collect()
}

/// What luck shows, as a change.
pub(crate) fn about(luck: Option<Finite>) -> String {
    change(rough(luck))
}

/// Three digits: no more is known of luck.
pub(crate) fn rough(luck: Option<Finite>) -> Option<Finite> {
    luck.and_then(|luck| Finite::new(format!("{:.2e}", luck.get()).parse().ok()?))
}

/// The head of the measures.
pub(crate) const MEASURES: [&str; 5] = [
    "luck",
    "noise of one candidate",
    "the best by luck",
    "in one search of twenty, above",
    "gain / best by luck",
];

/// `1.9 times`.
fn times(luck: &Luck, by: Yardstick) -> String {
    let times = luck.gain.map(|gain| gain.get() / by.expected.get());
    let times = times.filter(|times| times.is_finite());
    times.map_or_else(|| NONE.to_owned(), |times| format!("{times:.1} times"))
}

/// The section of the summary.
pub(crate) fn section(facts: &Facts) -> Option<String> {
    let (luck, sentences) = sentences(facts)?;
    let said =
        sentences.iter().map(|said| Md::text(said).to_string()).collect::<Vec<_>>().join(" ");
    let advice = if facts.best() == NodeId::ROOT { "" } else { ADVICE };
    let mut parts = vec!["## How far to trust the best".to_owned(), format!("{said} {advice}")];
    let measures = measures(&luck);
    if !measures.is_empty() {
        let mut table = Table::new(MEASURES);
        for row in measures {
            table.row(row.map(|cell| Md::text(&cell)));
        }
        parts.extend([table.to_string(), LIMITS.to_owned()]);
    }
    Some(parts.iter().map(|part| part.trim_end()).collect::<Vec<_>>().join("\n\n"))
}
