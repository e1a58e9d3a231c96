//! `cargo xtask architecture`: the table of modules in ARCHITECTURE.md, from the files' heads.
//!
//! A crate and each of its top-level modules with a folder get a row with the first sentence of
//! their `//!` head, cut to fit. Modules of one file and modules further down are not listed: the
//! document has to stay small. `testkit` has no rows.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, bail};

use crate::sources::SourceFile;
use crate::survey::ModulePlace;

/// Path of the document that has the table.
pub const ARCHITECTURE_PATH: &str = "ARCHITECTURE.md";
/// Line before the table.
pub const BEGIN_MARK: &str = "<!-- files: begin -->";
/// Line after the table.
pub const END_MARK: &str = "<!-- files: end -->";

/// Most characters of a row's statement.
const MAX_STATEMENT_CHARS: usize = 80;

/// Returns the document with the table that belongs there, or `None` if it has no marks.
///
/// # Errors
/// The document is missing, or only one of its marks is, or they are in the wrong order.
pub fn updated_document(files: &[SourceFile]) -> anyhow::Result<Option<String>> {
    let document = files.iter().find(|file| file.path == ARCHITECTURE_PATH);
    let text = &document.with_context(|| format!("{ARCHITECTURE_PATH}: is missing"))?.text;
    let (begin, end) = match (text.find(BEGIN_MARK), text.find(END_MARK)) {
        (None, None) => return Ok(None),
        (Some(begin), Some(end)) if begin < end => (begin + BEGIN_MARK.len(), end),
        (Some(_), Some(_)) => {
            bail!("{ARCHITECTURE_PATH}: `{END_MARK}` stands before `{BEGIN_MARK}`")
        }
        (Some(_), None) => bail!("{ARCHITECTURE_PATH}: `{END_MARK}` is missing"),
        (None, Some(_)) => bail!("{ARCHITECTURE_PATH}: `{BEGIN_MARK}` is missing"),
    };
    Ok(Some(format!("{}\n{}{}", &text[..begin], file_table(files), &text[end..])))
}

/// Builds the table from the sources of the product's crates.
#[must_use]
pub fn file_table(files: &[SourceFile]) -> String {
    let mut rows: BTreeMap<String, String> = BTreeMap::new();
    for (file, place) in files.iter().filter_map(|file| Some((file, listed_place(&file.path)?))) {
        let folder = short_path(&place.folder);
        let row = match &place.modules[..] {
            [] => format!("{folder}/"),
            [module] if has_folder(files, &file.path, &place) => format!("{folder}/{module}/"),
            _ => continue,
        };
        rows.insert(row, short_statement(&first_sentence(&file.text)));
    }
    let mut table = "| module | has |\n| --- | --- |\n".to_owned();
    for (row, statement) in &rows {
        let _ = writeln!(table, "| `{row}` | {} |", statement.replace('|', "\\|"));
    }
    table
}

/// Place of a file that the table may list: not a test or a file of `testkit`.
fn listed_place(path: &str) -> Option<ModulePlace> {
    let place = ModulePlace::from_path(path)?;
    let listed =
        path.starts_with("crates/") && place.folder != "crates/testkit" && !place.is_named_tests();
    listed.then_some(place)
}

/// Tells if a module has files of its own beside its root, not counting tests.
fn has_folder(files: &[SourceFile], path: &str, place: &ModulePlace) -> bool {
    let children = place.child_stem("");
    files.iter().any(|other| {
        other.path != path
            && other.path.starts_with(&children)
            && listed_place(&other.path).is_some()
    })
}

/// Path without the leading `crates/`.
fn short_path(path: &str) -> &str {
    path.strip_prefix("crates/").unwrap_or(path)
}

/// First sentence of a file's `//!` head as Markdown outside of rustdoc, without the full stop.
fn first_sentence(text: &str) -> String {
    let head = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
    let paragraph: Vec<&str> = head.take_while(|line| !line.is_empty()).collect();
    let paragraph = without_doc_links(&paragraph.join(" "));
    let end = paragraph.match_indices(". ").find(|(at, _)| ends_sentence(&paragraph, *at));
    let sentence = end.map_or(paragraph.as_str(), |(at, _)| &paragraph[..at]);
    sentence.trim_end_matches('.').to_owned()
}

/// Cuts a sentence at a pause, or else at a space, so that it fits into a row.
fn short_statement(sentence: &str) -> String {
    let Some((limit, _)) = sentence.char_indices().nth(MAX_STATEMENT_CHARS) else {
        return sentence.to_owned();
    };
    let fits = |at: &usize| *at <= limit && is_outside_code(sentence, *at);
    let last = |mark: &str| sentence.match_indices(mark).map(|(at, _)| at).filter(fits).last();
    // What a colon announces is a list, and half a list misleads.
    match last(": ").max(last("; ")).or_else(|| last(", ")) {
        Some(end) => sentence[..end].to_owned(),
        None => format!("{} …", &sentence[..last(" ").unwrap_or(limit)]),
    }
}

/// Tells if the byte at `at` is not between backticks.
fn is_outside_code(text: &str, at: usize) -> bool {
    text[..at].matches('`').count().is_multiple_of(2)
}

/// Tells if the full stop at `at` ends a sentence, and is not part of code or an abbreviation.
fn ends_sentence(text: &str, at: usize) -> bool {
    let next = text[at + 2..].chars().next();
    is_outside_code(text, at)
        && next.is_some_and(|next| next.is_uppercase() || matches!(next, '`' | '['))
}

/// Replaces links to Rust items by what they show: `[mod@rank]` is the module `rank`.
fn without_doc_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, shown, after)) = next_doc_link(rest) {
        plain.push_str(before);
        let name = shown.split_once('@').map_or(shown, |(_, name)| name);
        let _ = write!(plain, "`{name}`");
        rest = after;
    }
    plain.push_str(rest);
    plain
}

/// Splits a text at its first link whose label is code: before it, the code, after it.
fn next_doc_link(text: &str) -> Option<(&str, &str, &str)> {
    let (before, link) = text.split_once("[`")?;
    let (shown, after) = link.split_once("`]")?;
    let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
    Some((before, shown, target.map_or(after, |(_, after)| after)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(document: &str) -> Vec<SourceFile> {
        let code = [
            ("crates/core/src/event.rs", "//! Everything that can happen. More.\n"),
            ("crates/core/src/event/kind.rs", "//! Names of events.\n"),
            ("crates/core/src/lib.rs", "//! Facts and decisions.\n"),
            ("crates/core/src/gate.rs", "//! Checks.\n"),
            ("crates/core/src/rank.rs", "//! Ranks.\n"),
            ("crates/core/src/rank/tests.rs", ""),
            ("crates/treebeam/src/git/call/mod.rs", "//! Calls.\n"),
            ("crates/treebeam/src/git/call/open.rs", "//! Opens.\n"),
            (
                "crates/treebeam/src/git/mod.rs",
                "//! Door to\n//! [`git`](crate::git): a | b\n//!\n//! C.\n",
            ),
            ("crates/testkit/src/lib.rs", "//! Tests.\n"),
            ("crates/testkit/src/memory/mod.rs", "//! A world.\n"),
            ("xtask/src/survey/mod.rs", "//! A survey.\n"),
            (ARCHITECTURE_PATH, document),
        ];
        code.iter().map(|(path, text)| SourceFile::new(*path, *text)).collect()
    }

    const EXPECTED_TABLE: &str = "\
| module | has |
| --- | --- |
| `core/` | Facts and decisions |
| `core/event/` | Everything that can happen |
| `treebeam/git/` | Door to `git`: a \\| b |
";

    #[test]
    fn the_table_lists_crates_and_modules_with_folders() {
        assert_eq!(file_table(&files("")), EXPECTED_TABLE);
    }

    #[test]
    fn a_long_statement_is_cut_at_a_pause_outside_of_code_or_else_at_a_space() {
        let (word, code) = ("word ".repeat(20), "`a, b` ".repeat(20));
        for (sentence, expected) in [
            ("Short: enough, and kept", "Short: enough, and kept".to_owned()),
            (&*format!("The lock: held, {word}"), "The lock".to_owned()),
            (&*format!("Held, {word}"), "Held".to_owned()),
            (&*format!("A {word}"), format!("A {} …", ["word"; 15].join(" "))),
            (&*format!("A list, {code}"), "A list".to_owned()),
        ] {
            assert_eq!(short_statement(sentence), expected);
        }
    }

    #[test]
    fn the_table_goes_between_the_marks() {
        let old = format!("# A\n{BEGIN_MARK}\nold\n{END_MARK}\nrest\n");
        let new = format!("# A\n{BEGIN_MARK}\n{EXPECTED_TABLE}{END_MARK}\nrest\n");
        assert_eq!(updated_document(&files(&old)).unwrap(), Some(new.clone()));
        assert_eq!(updated_document(&files(&new)).unwrap(), Some(new));
    }

    #[test]
    fn a_document_without_marks_is_left_alone_and_one_with_half_of_them_is_refused() {
        assert_eq!(updated_document(&files("# A\n")).unwrap(), None);
        for document in [BEGIN_MARK, END_MARK, &format!("{END_MARK}\n{BEGIN_MARK}\n")] {
            assert!(updated_document(&files(document)).is_err(), "{document}");
        }
        assert!(updated_document(&[]).is_err());
    }

    #[test]
    fn the_first_sentence_ends_at_a_full_stop_before_a_new_one() {
        for (head, expected) in [
            ("One. Two.", "One"),
            ("Reads e.g. tables. `x` too.", "Reads e.g. tables"),
            ("Has `a. B` inside.", "Has `a. B` inside"),
            ("[`mod@rank`] and [`fn@drive`](fn@drive) [x]", "`rank` and `drive` [x]"),
        ] {
            assert_eq!(first_sentence(&format!("//! {head}\n")), expected);
        }
        assert_eq!(first_sentence("use std::fmt;\n"), "");
    }
}
