//! Defines a line of the screen: pieces of text, each with a tone. Text is only added by `new` and
//! `with_span`, which make it inert. Nothing here knows the codes of a terminal.

use super::inert_text::make_inert;
use crate::width;

/// Maximum number of characters read of a text, more than any screen is wide.
const MAX_LINE_CHARS: usize = 4_000;

/// Look of a piece of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScreenTone {
    /// Normal text.
    #[default]
    Plain,
    /// Less important text.
    Dim,
    /// More important text.
    Strong,
    /// Good news.
    Good,
    /// Bad news.
    Bad,
    /// Text that deserves attention.
    Busy,
    /// Line of the cursor.
    Chosen,
}

/// A piece of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineSpan {
    text: String,
    tone: ScreenTone,
}

impl LineSpan {
    /// Returns the text, which has no control characters and no line ends.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the look of the text.
    #[must_use]
    pub const fn tone(&self) -> ScreenTone {
        self.tone
    }
}

/// A line of the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScreenLine {
    spans: Vec<LineSpan>,
}

impl ScreenLine {
    /// Creates a line of one piece.
    pub(super) fn new(tone: ScreenTone, text: &str) -> Self {
        Self::default().with_span(tone, text)
    }

    /// Appends a piece.
    pub(super) fn with_span(mut self, tone: ScreenTone, text: &str) -> Self {
        let end = text.char_indices().nth(MAX_LINE_CHARS).map_or(text.len(), |(at, _)| at);
        let text = make_inert(&text[..end]);
        if !text.is_empty() {
            self.spans.push(LineSpan { text, tone });
        }
        self
    }

    /// Returns the pieces from left to right.
    #[must_use]
    pub fn spans(&self) -> &[LineSpan] {
        &self.spans
    }

    /// Returns the text of the whole line.
    #[must_use]
    pub fn text(&self) -> String {
        self.spans.iter().map(LineSpan::text).collect()
    }

    /// Returns the width in columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.spans.iter().map(|span| width::text_columns(&span.text)).sum()
    }

    /// Cuts the line to at most so many columns; a cut is marked.
    pub(super) fn fit_columns(mut self, most: usize) -> Self {
        let mut room = most;
        let mut kept = Vec::new();
        let whole = self.columns() <= most;
        for span in self.spans.drain(..) {
            let taken = width::text_columns(&span.text);
            if whole || taken < room {
                room = room.saturating_sub(taken);
                kept.push(span);
                continue;
            }
            // The ellipsis marks a cut of this piece or of all that follows.
            let text = width::fit_text(&format!("{}……", span.text), room);
            kept.push(LineSpan { text, tone: span.tone });
            break;
        }
        Self { spans: kept }
    }

    /// Returns the line in the look of the cursor, padded to the whole width.
    pub(super) fn highlighted(self, columns: usize) -> Self {
        let mut text = self.text();
        text.extend(std::iter::repeat_n(' ', columns.saturating_sub(width::text_columns(&text))));
        Self { spans: vec![LineSpan { text, tone: ScreenTone::Chosen }] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_where_it_ends() {
        let line = || {
            ScreenLine::new(ScreenTone::Strong, "abc")
                .with_span(ScreenTone::Plain, "日本")
                .with_span(ScreenTone::Dim, "x")
        };
        let check = |most, expected: &str| {
            let cut = line().fit_columns(most);
            assert_eq!((cut.text().as_str(), cut.columns() <= most), (expected, true), "{most}");
        };
        check(8, "abc日本x");
        check(7, "abc日…");
        check(6, "abc日…");
        check(5, "abc…");
        check(4, "abc…");
        check(3, "ab…");
        check(1, "…");
        check(0, "");
        assert_eq!(line().highlighted(10).text(), "abc日本x  ");
    }
}
