//! Ideas as text: title, file name, and the fingerprint that finds repeats. Calls no model.

use crate::id::Sha256;
use unicode_normalization::UnicodeNormalization as _;

/// Maximum length of the slug in a file name: paths must stay short.
const MAX_SLUG_CHARS: usize = 40;
/// Maximum length of the title that is kept beside the idea's file.
pub const MAX_TITLE_CHARS: usize = 100;

/// Part of an idea.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IdeaPart {
    /// The change in one line.
    Idea,
    /// The reason for the change.
    Rationale,
    /// The change, file by file.
    RequiredChanges,
}

impl IdeaPart {
    /// Returns the key of the part, as prompts request it.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Idea => "IDEA",
            Self::Rationale => "RATIONALE",
            Self::RequiredChanges => "REQUIRED_CHANGES",
        }
    }
}

/// Line that begins a part of an idea.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartHeading<'a> {
    /// Part that the line begins.
    pub part: IdeaPart,
    /// True if the key has a number, as in `Idea 2:`.
    pub is_numbered: bool,
    /// Text after the colon.
    pub rest: &'a str,
}

/// Parses a line that begins a part of an idea. Markdown around the key is ignored: headings,
/// bullets, numbers, quotes, emphasis, table cells.
#[must_use]
pub fn parse_part_heading(line: &str) -> Option<PartHeading<'_>> {
    let (key, rest) = strip_markdown_start(line).split_once(':')?;
    let key = key.trim_matches(MARKDOWN_MARKS).to_ascii_lowercase().replace([' ', '-'], "_");
    let (word, number) = match key.split_once('_') {
        Some(("idea", number)) => ("idea", number),
        _ => (key.as_str(), ""),
    };
    let part = match word {
        "idea" if number.trim_start_matches('#').bytes().all(|b| b.is_ascii_digit()) => {
            IdeaPart::Idea
        }
        "rationale" => IdeaPart::Rationale,
        "required_changes" | "required_change" => IdeaPart::RequiredChanges,
        _ => return None,
    };
    Some(PartHeading { part, is_numbered: !number.is_empty(), rest: strip_markdown_end(rest) })
}

/// Markdown characters that may surround words.
const MARKDOWN_MARKS: [char; 5] = ['*', '_', '`', '|', ' '];

/// Strips the Markdown at the start of a line.
fn strip_markdown_start(line: &str) -> &str {
    let noise = |c: char| MARKDOWN_MARKS.contains(&c) || "#>-+•\t".contains(c);
    let line = line.trim_start_matches(noise);
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    match digits.strip_prefix(['.', ')']) {
        Some(rest) if digits.len() < line.len() => rest.trim_start_matches(noise),
        _ => line,
    }
}

/// Strips, from the text after a key, the end of the Markdown that surrounds key and text.
fn strip_markdown_end(rest: &str) -> &str {
    let rest =
        rest.trim_start_matches(['*', '_', ' ', '\t']).trim_end_matches(['|', ' ', '\t', '\r']);
    match rest.strip_suffix("**") {
        Some(inner) if !inner.contains("**") => inner.trim_end(),
        _ => rest,
    }
}

/// Returns the first line of the `IDEA:` part, or else the first line that is not empty.
#[must_use]
pub fn idea_title(text: &str) -> String {
    let says_something = |line: &&str| !line.is_empty();
    let after_key = text.lines().map(str::trim).skip_while(|line| idea_line_text(line).is_none());
    let mut lines =
        after_key.map(|line| idea_line_text(line).unwrap_or(line)).filter(says_something);
    let fallback = || text.lines().map(str::trim).find(says_something);
    let line = lines.next().or_else(fallback).unwrap_or("untitled");
    line.chars().filter(|c| !c.is_control()).take(MAX_TITLE_CHARS).collect()
}

fn idea_line_text(line: &str) -> Option<&str> {
    let begun = parse_part_heading(line).filter(|begun| begun.part == IdeaPart::Idea)?;
    Some(begun.rest.trim_matches(['*', ' ']))
}

/// Builds the file name of an idea, such as `007_wider_window.md`: ordered by number, readable,
/// safe on every file system.
#[must_use]
pub fn idea_file_name(number: u32, title: &str) -> String {
    format!("{number:03}_{}.md", title_slug(title))
}

/// Builds the file name of a user's idea, such as `u07_wider_window.md`: sorted after the generated
/// ideas and never equal to one of their names.
#[must_use]
pub fn user_idea_file_name(number: u32, title: &str) -> String {
    format!("u{number:02}_{}.md", title_slug(title))
}

fn title_slug(title: &str) -> String {
    let mut slug = String::new();
    for c in title.chars() {
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('_') {
            slug.push('_');
        }
        if slug.len() == MAX_SLUG_CHARS {
            break;
        }
    }
    let slug = slug.trim_end_matches('_');
    if slug.is_empty() { "idea".to_owned() } else { slug.to_owned() }
}

/// Reduces an idea to its content: Unicode form, line ends, white space, blank lines, bullets and
/// case are normalised.
#[must_use]
pub fn normalise_idea(text: &str) -> String {
    let composed: String = text.nfc().collect();
    let lines = composed.lines().map(normalise_line).filter(|line| !line.is_empty());
    // Composed again: a letter may have a composed form in lower case only.
    lines.collect::<Vec<_>>().join("\n").nfc().collect()
}

fn normalise_line(line: &str) -> String {
    let words: Vec<_> = line.split_whitespace().collect();
    let line = words.join(" ").to_lowercase();
    let bare = line.trim_start_matches(['-', '*', '+', '•', '#', '>', ' ']);
    let digits = bare.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = digits.len() < bare.len();
    match digits.strip_prefix(". ").or_else(|| digits.strip_prefix(") ")) {
        Some(rest) if numbered => rest.to_owned(),
        _ => bare.to_owned(),
    }
}

/// Computes the fingerprint of an idea; two ideas with equal fingerprints count as the same idea.
#[must_use]
pub fn idea_fingerprint(text: &str) -> Sha256 {
    Sha256::hash_bytes(normalise_idea(text).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn form_does_not_make_an_idea_new() {
        let plain =
            "IDEA: Widen the window\nREQUIRED_CHANGES:\n- set window to 20\n- keep the rest";
        for same in [
            "IDEA:  widen the   window\r\n\r\nREQUIRED_CHANGES:\r\n* Set window to 20\r\n* keep the rest\r\n",
            "# idea: Widen the window\n\trequired_changes:\n1. set window to 20\n2) keep the rest",
        ] {
            assert_eq!(normalise_idea(same), normalise_idea(plain));
            assert_eq!(idea_fingerprint(same), idea_fingerprint(plain));
        }
        assert_eq!(normalise_idea("cafe\u{301}"), normalise_idea("café"));
        assert_eq!(
            normalise_idea("J\u{30c}"),
            normalise_idea("\u{1f0}"),
            "composed in lower case alone"
        );
        assert_ne!(idea_fingerprint(plain), idea_fingerprint("IDEA: Widen the window to 21"));
        assert_eq!(normalise_idea("2.5 times the window"), "2.5 times the window");
    }

    #[test]
    fn markdown_around_a_key_does_not_count() {
        let check = |line: &str, expect: Option<(IdeaPart, bool, &str)>| {
            let found =
                parse_part_heading(line).map(|begun| (begun.part, begun.is_numbered, begun.rest));
            assert_eq!(found, expect, "{line:?}");
        };
        for line in [
            "IDEA: Widen it",
            "idea : Widen it  ",
            "## **IDEA:** Widen it",
            "**IDEA: Widen it**",
            "- **Idea**: Widen it",
            "3. IDEA: Widen it",
            "> * __IDEA__: Widen it\r",
            "| IDEA: Widen it |",
            "\t`IDEA`: Widen it",
        ] {
            check(line, Some((IdeaPart::Idea, false, "Widen it")));
        }
        for line in ["Idea 2: Widen it", "### Idea #2: Widen it", "2) **IDEA 2:** Widen it"] {
            check(line, Some((IdeaPart::Idea, true, "Widen it")));
        }
        check(
            "**Rationale:** it is **too** narrow",
            Some((IdeaPart::Rationale, false, "it is **too** narrow")),
        );
        check("- Required changes:", Some((IdeaPart::RequiredChanges, false, "")));
        check(
            "REQUIRED_CHANGES: use `a**b`",
            Some((IdeaPart::RequiredChanges, false, "use `a**b`")),
        );
        for line in ["", ":", "I have no idea: sorry", "ideas: two", "Idea two: x", "idea", "12:30"]
        {
            check(line, None);
        }
    }

    proptest! {
        #[test]
        fn file_names_are_safe_on_every_file_system(number in 0_u32..2000, title in "\\PC{0,80}|(con|NUL|\\.|/|\\\\|:| |-){0,60}") {
            for name in [idea_file_name(number, &title), user_idea_file_name(number, &title)] {
                prop_assert!(name.len() < 60, "{name}");
                prop_assert!(name.strip_suffix(".md").is_some_and(|stem| !stem.ends_with('_')), "{name}");
                let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '.';
                prop_assert!(name.chars().all(plain) && name.matches('.').count() == 1, "{name}");
                // With a number before it, a device name of Windows is an ordinary name.
                prop_assert!(name.starts_with(|c: char| c.is_ascii_digit() || c == 'u'), "{name}");
            }
        }

        #[test]
        fn any_text_has_a_title_and_a_fingerprint(text in "(IDEA|:|\\*|#|\\PC|\n|\r|\u{301}|İ){0,80}") {
            prop_assert!(!idea_title(&text).contains(char::is_control) && idea_title(&text).chars().count() <= MAX_TITLE_CHARS);
            let crlf = text.replace('\r', "").replace('\n', "\r\n");
            prop_assert_eq!(idea_fingerprint(&text.replace('\r', "")), idea_fingerprint(&crlf));
        }
    }

    #[test]
    fn titles_and_file_names() {
        let check = |text: &str, expected: &str| {
            assert_eq!(idea_file_name(7, &idea_title(text)), expected, "{text:?}");
        };
        check("IDEA: Widen the window\nRATIONALE: x", "007_widen_the_window.md");
        check("**IDEA:** Über-smooth!\n", "007_ber_smooth.md");
        check("## IDEA:\n\nTwo lines below\n", "007_two_lines_below.md");
        check("no key at all", "007_no_key_at_all.md");
        check("", "007_untitled.md");
        check("IDEA: ../../etc/passwd con:", "007_etc_passwd_con.md");
        check("IDEA: 漢字", "007_idea.md");
        assert!(idea_file_name(1, &"x".repeat(500)).len() < 50);
        assert_eq!(user_idea_file_name(7, "Widen: the window"), "u07_widen_the_window.md");
    }
}
