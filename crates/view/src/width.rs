//! Measures and fits text on a terminal, in columns, of which a wide character takes two. Expects
//! text without control characters.

use unicode_width::UnicodeWidthChar as _;

/// Returns the width of a text in columns.
pub(crate) fn text_columns(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

/// Returns the width of a character in columns.
pub(crate) fn char_columns(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// Cuts a text to at most so many columns; a cut is marked.
pub(crate) fn fit_text(text: &str, most: usize) -> String {
    if text_columns(text) <= most {
        return text.to_owned();
    }
    let Some(room) = most.checked_sub(1) else { return String::new() };
    format!("{}…", fitting_head(text, room).trim_end())
}

/// Wraps a text into lines of at most so many columns, between words if possible.
pub(crate) fn wrap_text(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let gap = usize::from(!line.is_empty());
        if text_columns(&line) + gap + text_columns(word) <= most {
            line.push_str(if gap == 1 { " " } else { "" });
            line.push_str(word);
            continue;
        }
        lines.extend((!line.is_empty()).then(|| std::mem::take(&mut line)));
        line = break_word(word, most, &mut lines);
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// Splits a text into pieces of at most so many columns, at any character.
pub(crate) fn column_pieces(text: &str, most: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let rest = break_word(text, most, &mut pieces);
    if !rest.is_empty() || pieces.is_empty() {
        pieces.push(rest);
    }
    pieces
}

/// Adds the full lines of a word that is too long, and returns its rest.
fn break_word(word: &str, most: usize, lines: &mut Vec<String>) -> String {
    let (mut line, mut taken) = (String::new(), 0);
    for c in word.chars() {
        // A character that is wider than a whole line gets its own line.
        if taken + char_columns(c) > most && !line.is_empty() {
            lines.push(std::mem::take(&mut line));
            taken = 0;
        }
        line.push(c);
        taken += char_columns(c);
    }
    line
}

/// Returns as much of the beginning as fits.
fn fitting_head(text: &str, most: usize) -> &str {
    let mut taken = 0;
    let end = text.char_indices().find(|(_, c)| {
        taken += char_columns(*c);
        taken > most
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_by_columns() {
        let check =
            |text, most, expected| assert_eq!(fit_text(text, most), expected, "{text} {most}");
        check("abc", 3, "abc");
        check("abcd", 3, "ab…");
        check("日本語", 6, "日本語");
        check("日本語", 5, "日本…");
        check("日本語", 4, "日…");
        check("e\u{301}e\u{301}e", 2, "e\u{301}…");
        check("ab", 0, "");
    }

    #[test]
    fn lines_are_broken_between_words() {
        let check = |text, most, expected: &[&str]| assert_eq!(wrap_text(text, most), expected);
        check("", 5, &[""]);
        check("one two three", 7, &["one two", "three"]);
        check("one two three", 3, &["one", "two", "thr", "ee"]);
        check("日本語 x", 4, &["日本", "語 x"]);
        check("日本", 1, &["日", "本"]);
    }
}
