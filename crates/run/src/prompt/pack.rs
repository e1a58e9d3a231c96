//! The context pack of a node: what the idea generator is told about its branch. Pure and bounded; it is kept as it was used.

use super::section::{list, plain};
use crate::brief::Told;

/// The longest text of one kind, in characters.
const PART_CHARS: usize = 16_000;
/// How many ideas that are told in short have room in such a text, whatever their titles.
const EARLIER_LINES: usize = 75;

/// What there is to say of a node.
pub(crate) fn pack(told: &Told, since_root: &str, since_parent: &str) -> String {
    let constraints = [
        "one self-contained change per idea, implementable as a patch".to_owned(),
        "the sweep's grid of configurations stays as it is".to_owned(),
        format!("do not touch: {}", told.protect.join(", ")),
    ];
    let files = told.idea_files.iter().map(|idea| format!("{} sha256 {}", idea.path, idea.sha256));
    let earlier = told
        .earlier
        .chunks(EARLIER_LINES)
        .map(|part| ("OTHER IDEAS THAT WERE TRIED BEFORE THE NEXT ONES, IN SHORT", newest(part)));
    let before = [
        ("CHANGED SINCE THE ROOT", since_root.to_owned()),
        ("CHANGED SINCE THE PARENT", since_parent.to_owned()),
        ("IDEAS THAT LED HERE, OLDEST FIRST", newest(&told.chain)),
    ];
    let after = [
        ("OTHER IDEAS THAT WERE TRIED ON THE WAY", newest(&told.outcomes)),
        ("CONSTRAINTS", list(&constraints)),
        ("IDEA FILES", list(&files.collect::<Vec<_>>())),
    ];
    let parts = before.into_iter().chain(earlier).chain(after);
    let sections = parts.map(|(head, text)| format!("\n{}", plain(head, &text, PART_CHARS)));
    format!("NODE n{}\n{}", told.node, sections.collect::<String>())
}

/// As many of the last lines as there is room for: where something has to go, it is what is oldest.
fn newest(lines: &[String]) -> String {
    let mut room = PART_CHARS;
    let fits = |line: &&String| {
        let length = line.chars().count() + "- \n".len();
        let fits = length <= room;
        room = room.saturating_sub(length);
        fits
    };
    let count = lines.iter().rev().take_while(fits).count();
    list(lines.get(lines.len() - count..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_there_is_too_much_the_oldest_goes() {
        let lines: Vec<String> = (0..100).map(|n| format!("{n} {}", "ü".repeat(300))).collect();
        let kept = newest(&lines);
        assert!(kept.chars().count() <= PART_CHARS);
        assert!(!kept.contains("- 0 ") && kept.contains("- 99 "), "{kept}");
        assert_eq!(newest(&lines[..2]), list(&lines[..2]));
        assert_eq!(newest(&[]), "");
    }
}
