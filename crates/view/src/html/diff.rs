//! Renders a change with coloured lines and with coloured keywords, numbers, strings and comments.
//! It guesses by the look of a token, knows no language, and leaves everything else uncoloured.

use super::visible_text::VisibleText;
use maud::{Markup, html};

/// Keywords that many languages share.
const SHARED_KEYWORDS: [&str; 46] = [
    "and", "as", "async", "await", "break", "case", "catch", "class", "const", "continue", "def",
    "del", "do", "elif", "else", "enum", "except", "finally", "fn", "for", "from", "func",
    "function", "if", "impl", "import", "in", "is", "let", "match", "mut", "not", "or", "pass",
    "pub", "raise", "return", "self", "static", "struct", "try", "use", "var", "while", "with",
    "yield",
];
/// Length above which a line is not coloured, as it was not written by a person.
const MAX_COLOURED_LINE_BYTES: usize = 2_000;
/// Names of common constant values.
const VALUE_WORDS: [&str; 8] = ["False", "None", "True", "false", "nil", "null", "this", "true"];

/// Kind of a diff's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DiffLineKind {
    Head,
    Place,
    Added,
    Removed,
    Same,
}

impl DiffLineKind {
    fn from_line(line: &str, in_hunk: bool) -> Self {
        match line.as_bytes().first() {
            _ if line.starts_with("diff ") => Self::Head,
            Some(b'@') => Self::Place,
            Some(b'+') if in_hunk => Self::Added,
            Some(b'-') if in_hunk => Self::Removed,
            _ if in_hunk => Self::Same,
            _ => Self::Head,
        }
    }

    const fn css_class(self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Place => "place",
            Self::Added => "ins",
            Self::Removed => "del",
            Self::Same => "same",
        }
    }
}

/// Renders a change line by line.
pub(crate) fn render_diff(text: &str) -> Markup {
    html! {
        pre.diff tabindex="0" { code { @for (kind, line) in classify_lines(text) { (render_line(kind, line)) "\n" } } }
    }
}

fn classify_lines(text: &str) -> impl Iterator<Item = (DiffLineKind, &str)> {
    let mut in_hunk = false;
    text.lines().map(move |line| {
        let kind = DiffLineKind::from_line(line, in_hunk);
        in_hunk = kind != DiffLineKind::Head;
        (kind, line)
    })
}

fn render_line(kind: DiffLineKind, line: &str) -> Markup {
    match kind {
        DiffLineKind::Same => render_tokens(line),
        DiffLineKind::Added | DiffLineKind::Removed => {
            html! { span class=(kind.css_class()) { (render_tokens(line)) } }
        }
        DiffLineKind::Head | DiffLineKind::Place => {
            html! { span class=(kind.css_class()) { (VisibleText(line)) } }
        }
    }
}

/// A piece of a line, and the class of its colour.
type CodeToken<'a> = (Option<&'static str>, &'a str);

fn render_tokens(line: &str) -> Markup {
    if line.len() > MAX_COLOURED_LINE_BYTES {
        return html! { (VisibleText(line)) };
    }
    html! {
        @for (class, text) in split_tokens(line) {
            @if let Some(class) = class { span class=(class) { (VisibleText(text)) } } @else { (VisibleText(text)) }
        }
    }
}

/// Splits a line into tokens, which together are the line.
fn split_tokens(line: &str) -> Vec<CodeToken<'_>> {
    let mut tokens: Vec<CodeToken<'_>> = Vec::new();
    let mut rest = line;
    let mut plain = 0;
    while let Some(first) = rest.get(plain..).and_then(|rest| rest.chars().next()) {
        let (before, from) = rest.split_at(plain);
        let (class, length) = next_token(first, from);
        if class.is_none() {
            plain += length;
            continue;
        }
        if !before.is_empty() {
            tokens.push((None, before));
        }
        let (token, after) = from.split_at(length);
        tokens.push((class, token));
        (rest, plain) = (after, 0);
    }
    if !rest.is_empty() {
        tokens.push((None, rest));
    }
    tokens
}

/// Returns class and length of the token at the start of a text.
fn next_token(first: char, text: &str) -> (Option<&'static str>, usize) {
    let run = |more: fn(char) -> bool| text.find(|c| !more(c)).unwrap_or(text.len());
    match first {
        '#' => (Some("c"), text.len()),
        '/' if text.starts_with("//") => (Some("c"), text.len()),
        '"' | '\'' => quoted_token(first, text),
        _ if first.is_ascii_digit() => {
            (Some("n"), run(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_')))
        }
        _ if first.is_alphabetic() || first == '_' => {
            let length = run(|c| c.is_alphanumeric() || c == '_');
            let word = text.get(..length).unwrap_or_default();
            let class = SHARED_KEYWORDS.binary_search(&word).map(|_| "k").ok();
            (class.or_else(|| VALUE_WORDS.contains(&word).then_some("n")), length)
        }
        _ => (None, first.len_utf8()),
    }
}

/// Returns class and length of a quoted string; a quote that is never closed is plain text.
fn quoted_token(quote: char, text: &str) -> (Option<&'static str>, usize) {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return (Some("s"), at + quote.len_utf8()),
            _ => {}
        }
    }
    (None, quote.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_line_and_know_the_plainest_tokens() {
        let check = |line: &str, expect: &[(&str, &str)]| {
            let tokens = split_tokens(line);
            assert_eq!(tokens.iter().map(|(_, text)| *text).collect::<String>(), line);
            let known = tokens.iter().filter_map(|(class, text)| Some(((*class)?, *text)));
            assert_eq!(known.collect::<Vec<_>>(), expect, "{line}");
        };
        check("+RATE = 0.05  # how much", &[("n", "0.05"), ("c", "# how much")]);
        check(" if x1 is None: # a", &[("k", "if"), ("k", "is"), ("n", "None"), ("c", "# a")]);
        check("f('it\\'s', \"b\")", &[("s", "'it\\'s'"), ("s", "\"b\"")]);
        check("don't // 漢字", &[("c", "// 漢字")]);
        check("format_x = übel", &[]);
        check("", &[]);
        assert!(SHARED_KEYWORDS.is_sorted());
    }

    #[test]
    fn lines_know_their_side() {
        let text = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n--- a\n+b\n c\ndiff --git a/y b/y\n--- a/y";
        let shown = render_diff(text).into_string();
        assert_eq!(shown.matches("class=\"head\"").count(), 5, "{shown}");
        assert!(shown.contains("<span class=\"del\">--- a</span>"), "{shown}");
        assert!(shown.contains("<span class=\"ins\">+b</span>\n c\n"), "{shown}");
    }
}
