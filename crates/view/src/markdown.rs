//! Builds Markdown in which foreign text is harmless. Table cells are escaped by their type, and a
//! row has as many cells as its head. Nothing here knows about runs.

use crate::figure::NOT_AVAILABLE;
use crate::safe_text::one_line;
use std::fmt;

/// Inline Markdown that is safe in a sentence and in a table cell.
#[derive(Clone, Debug)]
pub(crate) struct MarkdownText(String);

impl MarkdownText {
    /// Escapes text, which is then shown literally.
    pub(crate) fn from_text(text: &str) -> Self {
        Self(escape_markdown(&one_line(text)))
    }

    /// Formats a name as code, or as text if it would break out of its quotes.
    pub(crate) fn code_span(name: &str) -> Self {
        if name.is_empty() || name.contains(['`', '|', '\n', '\r', '\\']) {
            return Self::from_text(name);
        }
        Self(format!("`{name}`"))
    }

    /// Formats a link to a file of the run.
    pub(crate) fn link(label: &str, path: &str) -> Self {
        Self(format!("[{}]({})", escape_markdown(&one_line(label)), percent_encode(path)))
    }

    /// Returns the placeholder for a missing value.
    pub(crate) fn not_available() -> Self {
        Self(NOT_AVAILABLE.to_owned())
    }

    /// Joins the parts; returns the placeholder if there are none.
    pub(crate) fn join_all(parts: impl IntoIterator<Item = Self>, between: &str) -> Self {
        let parts: Vec<_> = parts.into_iter().map(|part| part.0).collect();
        if parts.is_empty() { Self::not_available() } else { Self(parts.join(between)) }
    }
}

impl fmt::Display for MarkdownText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A table with `N` columns.
pub(crate) struct MarkdownTable<const N: usize>(String);

impl<const N: usize> MarkdownTable<N> {
    /// Creates a table without rows.
    pub(crate) fn new(head: [&str; N]) -> Self {
        Self(format!("| {} |\n|{}\n", head.join(" | "), " --- |".repeat(N)))
    }

    /// Adds a row.
    pub(crate) fn add_row(&mut self, cells: [MarkdownText; N]) {
        self.0.extend(["| ", &cells.map(|cell| cell.0).join(" | "), " |\n"]);
    }
}

impl<const N: usize> fmt::Display for MarkdownTable<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Escapes every character that has a meaning in Markdown. An underscore inside a word has none.
fn escape_markdown(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut in_word = false;
    while let Some(c) = chars.next() {
        let joins = in_word && chars.peek().is_some_and(|next| next.is_alphanumeric());
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '\\' | '`' | '|' | '*' | '[' | ']' | '~' | '$' => safe.extend(['\\', c]),
            '_' if !joins => safe.push_str("\\_"),
            _ => safe.push(c),
        }
        in_word = c.is_alphanumeric();
    }
    safe
}

/// Encodes a path as the target of a link.
pub(crate) fn percent_encode(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    let written =
        |byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    path.bytes().map(written).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_loses_its_meaning() {
        let check =
            |text: &str, safe: &str| assert_eq!(MarkdownText::from_text(text).to_string(), safe);
        check("a|b\\|c", "a\\|b\\\\\\|c");
        check("<b>`x`</b>\n# y", "&lt;b&gt;\\`x\\`&lt;/b&gt; # y");
        check("top_n of __init__", "top_n of \\_\\_init\\_\\_");
        check("[x](javascript:y) *z* &amp;", "\\[x\\](javascript:y) \\*z\\* &amp;amp;");
        assert_eq!(MarkdownText::code_span("a`b").to_string(), "a\\`b");
        assert_eq!(
            MarkdownText::link("a]b", "x y/(z).csv").to_string(),
            "[a\\]b](x%20y/%28z%29.csv)"
        );
        assert_eq!(MarkdownText::join_all([], " · ").to_string(), "n/a");
    }
}
