//! How far to trust the best in words: what it was picked from, and what luck alone would have shown. Computes nothing itself,
//! and knows nothing of data that the search never saw.

use crate::figure::{NONE, change, figure};
use crate::markdown::{Md, Table};
use crate::outcome::{Counts, Outcome};
use crate::words::count;
use treebeam_core::facts::Facts;
use treebeam_core::id::NodeId;
use treebeam_core::luck::{Luck, Standing, Yardstick, luck};
use treebeam_core::num::Finite;

/// What the measures of luck do not say.
pub(crate) const LIMITS: &str = "Neither measure of luck is right. By configurations: as if each configuration were a draw of its own; those of \
    one sweep are often near copies of each other, and other data would move all of them at once, so luck may be larger. By \
    candidates: as if all that candidates differ by were luck; where ideas do differ, luck is smaller. Both suppose normal noise.";
/// What there is to do about it.
pub(crate) const ADVICE: &str = "Judge it on data that the search never saw before you rely on it.";

/// What the best was picked from, and how its gain stands against luck; nothing where nothing has figures.
pub(crate) fn sentences(facts: &Facts) -> Option<(Luck, Vec<String>)> {
    let luck = luck(facts)?;
    let sentences = vec![picked(facts, &luck), shown(&luck)];
    Some((luck, sentences))
}

fn picked(facts: &Facts, luck: &Luck) -> String {
    let from = count(luck.candidates(), "candidate");
    let mut text = match facts.best() {
        NodeId::ROOT => format!("No node ranks above the root: none of {from} was better."),
        _ => format!(
            "The best was picked from {from}, by the very results that it is shown with: part of its gain is luck."
        ),
    };
    if luck.without_effect > 0 {
        text.push_str(&format!(" {} more changed no figure.", luck.without_effect));
    }
    let failed = Counts::overall(facts).get(Outcome::Failed);
    if failed > 0 {
        text.push_str(&format!(" {} ended without a score.", count(failed, "eval")));
    }
    text
}

fn shown(luck: &Luck) -> String {
    let expected = luck.expected();
    let expectation = match expected.as_slice() {
        [] => {
            return "How large luck is cannot be told: there are too few candidates, with too few configurations.".to_owned();
        }
        [one] => about(Some(*one)),
        [low, .., high] if low == high => about(Some(*low)),
        [low, .., high] => format!("{} to {}", about(Some(*low)), about(Some(*high))),
    };
    let stands = match luck.standing() {
        Some(Standing::Within) => "no more than luck",
        Some(Standing::Between) => "more than luck by one measure, and not by the other",
        Some(Standing::Above) if expected.len() > 1 => "more than luck, by both measures",
        Some(Standing::Above) => "more than luck, by the one measure that there is",
        None => "which cannot be held against it",
    };
    format!(
        "Had no idea any effect, the best of a search of this size would still show about {expectation} in the primary metric. \
         This one shows {}: {stands}.",
        change(luck.gain)
    )
}

/// The measures that there are: what each is called, how large the noise of one candidate is, what the best of the search
/// would show by it, and how the gain stands to that.
pub(crate) fn measures(luck: &Luck) -> Vec<[String; 4]> {
    let measure = |(name, by): (&str, Option<Yardstick>)| {
        let by = by?;
        let (noise, expected) = (figure(rough(Some(by.noise))), about(Some(by.expected)));
        Some([name.to_owned(), noise, expected, times(luck, by)])
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
pub(crate) const MEASURES: [&str; 4] =
    ["luck", "noise of one candidate", "the best by luck", "gain against it"];

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
