//! An idea as text: its title, its file name, and what makes two ideas the same. Nothing here asks a model.

use crate::id::Sha256;
use unicode_normalization::UnicodeNormalization as _;

/// The longest slug in a file name: paths must stay short.
const SLUG_CHARS: usize = 40;
/// The longest title that is kept beside the file.
pub(crate) const TITLE_CHARS: usize = 100;

/// The first line of the `IDEA:` part, or the first line that says anything.
#[must_use]
pub fn title(text: &str) -> String {
    let says_something = |line: &&str| !line.is_empty();
    let after_key = text.lines().map(str::trim).skip_while(|line| key_value(line).is_none());
    let mut lines = after_key.map(|line| key_value(line).unwrap_or(line)).filter(says_something);
    let fallback = || text.lines().map(str::trim).find(says_something);
    let line = lines.next().or_else(fallback).unwrap_or("untitled");
    line.chars().filter(|c| !c.is_control()).take(TITLE_CHARS).collect()
}

fn key_value(line: &str) -> Option<&str> {
    let line = line.trim_start_matches(['#', '*', ' ']);
    let (key, rest) = line.split_once(':')?;
    let key = key.trim_matches(['*', ' ']);
    key.eq_ignore_ascii_case("idea").then(|| rest.trim_matches(['*', ' ']))
}

/// `007_wider_window.md`: ordered by number, readable, safe on every file system.
#[must_use]
pub fn file_name(number: u32, title: &str) -> String {
    format!("{number:03}_{}.md", slug(title))
}

/// `u07_wider_window.md`: an idea of the user's, after all that were asked for and never one of their names.
#[must_use]
pub fn own_file_name(number: u32, title: &str) -> String {
    format!("u{number:02}_{}.md", slug(title))
}

fn slug(title: &str) -> String {
    let mut slug = String::new();
    for c in title.chars() {
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('_') {
            slug.push('_');
        }
        if slug.len() == SLUG_CHARS {
            break;
        }
    }
    let slug = slug.trim_end_matches('_');
    if slug.is_empty() { "idea".to_owned() } else { slug.to_owned() }
}

/// What is left of an idea when its form does not count: Unicode form, line ends, white space, blank lines, bullets, case.
#[must_use]
pub fn normalise(text: &str) -> String {
    let composed: String = text.nfc().collect();
    let lines = composed.lines().map(normal_line).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

fn normal_line(line: &str) -> String {
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

/// Two ideas with the same fingerprint are the same idea.
#[must_use]
pub fn fingerprint(text: &str) -> Sha256 {
    Sha256::of(normalise(text).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_does_not_make_an_idea_new() {
        let plain =
            "IDEA: Widen the window\nREQUIRED_CHANGES:\n- set window to 20\n- keep the rest";
        for same in [
            "IDEA:  widen the   window\r\n\r\nREQUIRED_CHANGES:\r\n* Set window to 20\r\n* keep the rest\r\n",
            "# idea: Widen the window\n\trequired_changes:\n1. set window to 20\n2) keep the rest",
        ] {
            assert_eq!(normalise(same), normalise(plain));
            assert_eq!(fingerprint(same), fingerprint(plain));
        }
        assert_eq!(normalise("cafe\u{301}"), normalise("café"));
        assert_ne!(fingerprint(plain), fingerprint("IDEA: Widen the window to 21"));
        assert_eq!(normalise("2.5 times the window"), "2.5 times the window");
    }

    #[test]
    fn titles_and_file_names() {
        let check = |text: &str, expected: &str| {
            assert_eq!(file_name(7, &title(text)), expected, "{text:?}");
        };
        check("IDEA: Widen the window\nRATIONALE: x", "007_widen_the_window.md");
        check("**IDEA:** Über-smooth!\n", "007_ber_smooth.md");
        check("## IDEA:\n\nTwo lines below\n", "007_two_lines_below.md");
        check("no key at all", "007_no_key_at_all.md");
        check("", "007_untitled.md");
        check("IDEA: ../../etc/passwd con:", "007_etc_passwd_con.md");
        check("IDEA: 漢字", "007_idea.md");
        assert!(file_name(1, &"x".repeat(500)).len() < 50);
        assert_eq!(own_file_name(7, "Widen: the window"), "u07_widen_the_window.md");
    }
}
