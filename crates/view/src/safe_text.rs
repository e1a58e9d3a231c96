//! Makes text from a model or a program fit for one line: no line ends or controls, limited length.
//! Escaping for a format is done by that format's module.

/// Makes characters that a terminal would obey visible (`\u{1b}`). Line ends are kept, and the
/// following line is indented, so that it cannot be mistaken for a line of this program.
#[must_use]
pub fn escape_controls(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        match c {
            '\n' if letters.peek() == Some(&' ') => shown.push('\n'),
            '\n' => shown.push_str("\n  "),
            c if c.is_control() || is_reordering(c) => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

/// Maximum length of a reason in a view; the record has the whole text.
pub(crate) const MAX_SHOWN_REASON_CHARS: usize = 240;

/// Returns the text on one line: white space and control characters become single spaces.
pub(crate) fn one_line(text: &str) -> String {
    let tame = |c: char| if c.is_control() || is_reordering(c) { ' ' } else { c };
    let tamed: String = text.chars().map(tame).collect();
    tamed.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns true for invisible characters that change the text direction or end a line.
pub(crate) const fn is_reordering(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Returns true for invisible characters that may have an effect: controls, those that change the
/// direction, and characters without width except those that join others.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control()
        || is_reordering(c)
        || matches!(c, '\u{ad}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Returns at most `most` characters; a cut is marked.
pub(crate) fn shorten_text(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Maximum length of the last output line of a command in a message, in characters.
const MAX_LAST_LINE_CHARS: usize = 200;

/// Returns a message on one line: its first line, and if that ends in a colon, also its last.
#[must_use]
pub fn message_gist(message: &str) -> String {
    let mut lines = message.lines().map(str::trim_end).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    match lines.next_back() {
        Some(last) if first.ends_with(':') => {
            format!("{first} {}", shorten_text(last.trim_start(), MAX_LAST_LINE_CHARS))
        }
        _ => first.to_owned(),
    }
}

/// Describes a failure in at most `most` characters: the whole message if it fits, else its gist.
pub(crate) fn format_failure(what: &str, message: &str, most: usize) -> String {
    let whole = one_line(&format!("{what}: {message}"));
    if whole.chars().count() <= most {
        return whole;
    }
    shorten_text(&one_line(&format!("{what}: {}", message_gist(message))), most)
}

/// Formats a line of a screen: name and value.
pub(crate) fn format_field(name: &str, value: &str) -> String {
    format!("{name:<12}{value}")
}

/// Joins the first few items, with a note on how many more there are.
pub(crate) fn first_few(items: impl Iterator<Item = String>, most: usize) -> String {
    let mut items: Vec<_> = items.collect();
    let more = items.len().saturating_sub(most);
    items.truncate(most);
    if more > 0 {
        items.push(format!("{more} more"));
    }
    items.join(", ")
}

/// Formats several values as lines, of which only the first has the name.
pub(crate) fn field_lines(name: &str, values: impl IntoIterator<Item = String>) -> Vec<String> {
    let names = std::iter::once(name).chain(std::iter::repeat(""));
    names.zip(values).map(|(name, value)| format_field(name, &value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_on_its_line() {
        assert_eq!(one_line(" a\r\n\tb\u{1b}[31m \u{202e}c\u{2028}d "), "a b [31m c d");
        assert_eq!(
            escape_controls("a\u{1b}[31m\tb\r\nhint: ü\u{202e}"),
            "a\\u{1b}[31m\\tb\\r\n  hint: ü\\u{202e}"
        );
        assert_eq!(escape_controls("a:\n  b\nc\n"), "a:\n  b\n  c\n  ");
        assert_eq!(shorten_text("abcdef", 6), "abcdef");
        assert_eq!(shorten_text("abcd efgh", 6), "abcd…");
        assert_eq!(shorten_text("äöüß", 3), "äö…");
        let ids = || ["a", "b", "c"].into_iter().map(str::to_owned);
        assert_eq!(first_few(ids(), 3), "a, b, c");
        assert_eq!(first_few(ids(), 1), "a, 2 more");
    }

    #[test]
    fn a_failure_that_is_too_long_keeps_what_was_said_last() {
        let trace = format!("it exited 1:\n{}\nValueError: \u{1b}no\n", "  a line\n".repeat(50));
        assert_eq!(format_failure("at sweep", &trace, 80), "at sweep: it exited 1: ValueError: no");
        assert_eq!(format_failure("at sweep", &trace, 36), "at sweep: it exited 1: ValueError:…");
        assert_eq!(format_failure("at sweep", "exited:\n a\n b", 80), "at sweep: exited: a b");
        assert_eq!(format_failure("at sweep", "one\ntwo", 14), "at sweep: one");
        let long = format!("it exited 1:\na\n{}", "x".repeat(300));
        assert_eq!(
            message_gist(&long),
            format!("it exited 1: {}…", "x".repeat(MAX_LAST_LINE_CHARS - 1))
        );
    }
}
