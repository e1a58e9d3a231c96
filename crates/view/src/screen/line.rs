//! A line of the screen: pieces of text, each with how it looks. Text comes in through [`Line::add`] alone, and is inert
//! from then on. Nothing here knows what a terminal has to be told to show it.

use super::inert::inert;
use crate::width;

/// More of a text than any screen is wide is not looked at.
const WIDEST: usize = 4_000;

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// As it is.
    #[default]
    Plain,
    /// Less important.
    Dim,
    /// More important.
    Strong,
    /// Good news.
    Good,
    /// Bad news.
    Bad,
    /// Something to look at.
    Busy,
    /// Where the cursor is.
    Chosen,
}

/// A piece of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    text: String,
    tone: Tone,
}

impl Span {
    /// What it says: no control characters, no line ends.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How it looks.
    #[must_use]
    pub const fn tone(&self) -> Tone {
        self.tone
    }
}

/// A line of the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    spans: Vec<Span>,
}

impl Line {
    /// A line of one piece.
    pub(super) fn of(tone: Tone, text: &str) -> Self {
        Self::default().add(tone, text)
    }

    /// The line with one more piece.
    pub(super) fn add(mut self, tone: Tone, text: &str) -> Self {
        let end = text.char_indices().nth(WIDEST).map_or(text.len(), |(at, _)| at);
        let text = inert(&text[..end]);
        if !text.is_empty() {
            self.spans.push(Span { text, tone });
        }
        self
    }

    /// The pieces, from left to right.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The whole line without its looks.
    #[must_use]
    pub fn text(&self) -> String {
        self.spans.iter().map(Span::text).collect()
    }

    /// How many columns it takes.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.spans.iter().map(|span| width::columns(&span.text)).sum()
    }

    /// The line in so many columns; a cut is marked.
    pub(super) fn fit(mut self, most: usize) -> Self {
        let mut room = most;
        let mut kept = Vec::new();
        let whole = self.columns() <= most;
        for span in self.spans.drain(..) {
            let taken = width::columns(&span.text);
            if whole || taken < room {
                room = room.saturating_sub(taken);
                kept.push(span);
                continue;
            }
            // The mark stands for this piece's end or for all that follows.
            let text = width::fit(&format!("{}……", span.text), room);
            kept.push(Span { text, tone: span.tone });
            break;
        }
        Self { spans: kept }
    }

    /// The same text as what the cursor is on, over the whole width.
    pub(super) fn chosen(self, columns: usize) -> Self {
        let mut text = self.text();
        text.extend(std::iter::repeat_n(' ', columns.saturating_sub(width::columns(&text))));
        Self { spans: vec![Span { text, tone: Tone::Chosen }] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_where_it_ends() {
        let line = || Line::of(Tone::Strong, "abc").add(Tone::Plain, "日本").add(Tone::Dim, "x");
        let check = |most, expected: &str| {
            let cut = line().fit(most);
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
        assert_eq!(line().chosen(10).text(), "abc日本x  ");
    }
}
