//! Renders foreign text in HTML: escaped, with control and direction characters made visible. It
//! does not shorten or lay out.

use crate::safe_text::{is_hidden, one_line, shorten_text};
use maud::Render;

/// Maximum length of a title; the idea has the whole text.
const MAX_TITLE_CHARS: usize = 120;

/// Text shown as it is, with its line breaks, and with `\u{1b}` for invisible characters.
pub(crate) struct VisibleText<'a>(pub(crate) &'a str);

impl Render for VisibleText<'_> {
    fn render_to(&self, html: &mut String) {
        escape_pieces(self.0, |piece| html.push_str(piece));
    }
}

/// Passes an escaped text to `show`, piece by piece.
fn escape_pieces(text: &str, mut show: impl FnMut(&str)) {
    let mut rest = text;
    loop {
        // Skips plain bytes at once, as most of a text needs no escaping.
        let plain = rest.bytes().position(|byte| !is_plain_byte(byte)).unwrap_or(rest.len());
        let (before, from) = rest.split_at(plain);
        show(before);
        let mut letters = from.chars();
        let Some(c) = letters.next() else { return };
        rest = letters.as_str();
        match c {
            '&' => show("&amp;"),
            '<' => show("&lt;"),
            '>' => show("&gt;"),
            '"' => show("&quot;"),
            '\r' if rest.starts_with('\n') => {}
            _ if is_hidden(c) => show(&c.escape_unicode().to_string()),
            _ => show(c.encode_utf8(&mut [0; 4])),
        }
    }
}

const fn is_plain_byte(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\t' | b' '..=b'~') && !matches!(byte, b'&' | b'<' | b'>' | b'"')
}

/// Returns text for a place that takes only plain text: as it is, with invisible characters made
/// visible.
#[must_use]
pub fn escape_hidden(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.replace("\r\n", "\n").chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            _ if is_hidden(c) => shown.extend(c.escape_unicode()),
            _ => shown.push(c),
        }
    }
    shown
}

/// Returns the length of a text in bytes once it is escaped.
#[must_use]
pub fn shown_bytes(text: &str) -> usize {
    let mut bytes = 0;
    escape_pieces(text, |piece| bytes += piece.len());
    bytes
}

/// Returns a title on one line, shortened.
pub(crate) fn short_title(text: &str) -> String {
    short_line(text, MAX_TITLE_CHARS)
}

/// Returns a text on one line of at most `most` characters.
pub(crate) fn short_line(text: &str, most: usize) -> String {
    shorten_text(&one_line(text), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text_and_shows_what_is_hidden() {
        let check = |text: &str, html: &str| {
            assert_eq!(VisibleText(text).render().into_string(), html);
            assert_eq!(shown_bytes(text), html.len());
            let unescaped = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
            let plain =
                unescaped.iter().fold(html.to_owned(), |html, (from, to)| html.replace(from, to));
            assert_eq!(escape_hidden(text), plain);
        };
        check("a <b> & \"c\"\n\td", "a &lt;b&gt; &amp; &quot;c&quot;\n\td");
        check("a\r\nb\rc", "a\nb\\u{d}c");
        check("\u{1b}[31m\u{202e}x\u{200b}\u{0}", "\\u{1b}[31m\\u{202e}x\\u{200b}\\u{0}");
        check("Über 漢字 👩‍👧", "Über 漢字 👩‍👧");
    }
}
