//! Makes foreign text safe for a terminal's line. No sequence in it has an effect, nothing reorders
//! or hides neighbouring text, and its width is as measured.

use crate::safe_text::is_reordering;
use crate::width;

/// Width of a tab stop.
const TAB_COLUMNS: usize = 8;
/// Maximum number of combining marks of a character; more would only cover neighbouring lines.
const MAX_MARKS: usize = 3;

/// Returns the text on one line, without terminal sequences, controls and invisible characters.
pub(super) fn make_inert(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let (mut column, mut marks) = (0, 0);
    let (mut rest, mut has_end) = (text, true);
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\u{1b}' => rest = after_escape(rest, &mut has_end),
            '\u{9b}' => rest = after_parameters(rest),
            '\t' => {
                let room = TAB_COLUMNS - column % TAB_COLUMNS;
                shown.extend(std::iter::repeat_n(' ', room));
                column += room;
            }
            c if c.is_control() => {
                shown.push(' ');
                column += 1;
            }
            c if is_invisible(c) => {}
            c if width::char_columns(c) == 0 => {
                marks += 1;
                shown.extend((marks <= MAX_MARKS && column > 0).then_some(c));
            }
            c => {
                marks = 0;
                shown.push(c);
                column += width::char_columns(c);
            }
        }
    }
    shown
}

/// Returns the text after an escape sequence; `has_end` tells whether a string terminator may
/// follow.
fn after_escape<'a>(rest: &'a str, has_end: &mut bool) -> &'a str {
    match rest.chars().next() {
        Some('[') => after_parameters(&rest[1..]),
        Some(']' | 'P' | 'X' | '^' | '_') => after_string(&rest[1..], has_end),
        _ => {
            let rest = rest.trim_start_matches(|c| matches!(c, ' '..='/'));
            rest.strip_prefix(|c| matches!(c, '0'..='~')).unwrap_or(rest)
        }
    }
}

/// Returns the text after the parameters and the final letter of a sequence.
fn after_parameters(rest: &str) -> &str {
    let rest = rest.trim_start_matches(|c| matches!(c, ' '..='?'));
    rest.strip_prefix(|c| matches!(c, '@'..='~')).unwrap_or(rest)
}

/// Returns the text after a string for the terminal. Without a terminator it is no such string, and
/// then no later one has a terminator.
fn after_string<'a>(rest: &'a str, has_end: &mut bool) -> &'a str {
    let end = if *has_end { end_of_string(rest) } else { None };
    *has_end = end.is_some();
    &rest[end.unwrap_or(0)..]
}

/// Returns the position after the first string terminator. It stops there, so that each character
/// is visited once for all strings.
fn end_of_string(text: &str) -> Option<usize> {
    let mut escaped = false;
    let (at, last) = text.char_indices().find(|(_, c)| {
        let ends = matches!(c, '\u{7}' | '\u{9c}') || escaped && *c == '\\';
        escaped = *c == '\u{1b}';
        ends
    })?;
    Some(at + last.len_utf8())
}

/// Returns true for characters without width that are not marks, or whose width depends on the
/// terminal.
const fn is_invisible(c: char) -> bool {
    is_reordering(c)
        // The last two code points of each plane are no characters.
        || c as u32 & 0xfffe == 0xfffe
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{fdd0}'..='\u{fdef}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_obeyed() {
        let check = |text: &str, expected: &str| assert_eq!(make_inert(text), expected, "{text:?}");
        check("plain ü 日本", "plain ü 日本");
        check("\u{1b}[31;1mred\u{1b}[0m", "red");
        check("\u{1b}]0;title\u{7}after", "after");
        check("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link");
        check("\u{1b}]0;never ended", "0;never ended");
        check("\u{1b}]a\u{7}b\u{1b}_c\u{1b}^d", "bcd");
        check("\u{1b}X\u{1b}\u{1b}\\a\u{1b}]\u{1b}x\\\u{9c}b\u{1b}P\\c", "ab\\c");
        check("\u{1b}P1$r\u{9c}x\u{1b}(By\u{1b}cz\u{1b}", "xyz");
        check("\u{9b}2Jclear\u{1b}[", "clear");
        check("\u{1b}[31\u{1b}[2Jx", "x");
        check("a\tb\r\n\u{0}c\u{7f}\u{85}d", "a       b   c  d");
        check("\u{202e}evil\u{2066}\u{200b}\u{feff}\u{2028}", "evil");
        check("e\u{301}\u{301}\u{301}\u{301}\u{301}x", "e\u{301}\u{301}\u{301}x");
        check("\u{301}first", "first");
        check("\u{fdd0}a\u{fffe}b\u{1ffff}c\u{10ffff}\u{e000}", "abc\u{e000}");
        check("👩\u{200d}👩 \u{fe0f}☺", "👩👩 ☺");
    }

    /// Searching from each beginning to the end of the text would take many minutes here.
    #[test]
    fn no_text_takes_more_than_one_look_at_each_character() {
        let megabytes = |text: &str| text.repeat((4 << 20) / text.len());
        for begun in ["\u{1b}]", "\u{1b}P", "\u{1b}X", "\u{1b}^", "\u{1b}_"] {
            assert_eq!(make_inert(&megabytes(begun)), "");
            // Terminators of one kind, and none of the others.
            for end in ["\u{7}", "\u{9c}", "\u{1b}\\"] {
                assert_eq!(make_inert(&megabytes(&format!("{begun}x{end}"))), "");
            }
        }
        assert_eq!(make_inert(&megabytes("\u{1b}[")), "");
    }

    #[test]
    fn what_is_left_is_as_wide_as_its_characters() {
        for text in ["日本\u{1b}[2K語\u{301}", "\u{1f3f4}\u{e0067}\u{e007f}", "x\u{1b}]\u{7}"] {
            let shown = make_inert(text);
            assert!(!shown.chars().any(char::is_control), "{shown:?}");
            assert_eq!(make_inert(&shown), shown);
        }
    }
}
