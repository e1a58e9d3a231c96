//! Scanner of one row: the ends of its cells and their numbers. Quotes as in RFC 4180: a quoted
//! cell ends at the next quote that is not doubled, and text after it up to the comma belongs to
//! the cell. Column names are not used.

use super::cell;
use super::decimal::parse_decimal;
use memchr::{memchr, memchr3};
use std::borrow::Cow;

/// Number of extra line ends that must follow a text to be scanned.
pub(super) const PADDING_BYTES: usize = 64;

/// Cell of a row.
#[derive(Clone, Copy, Default)]
pub(super) struct CellSlot {
    /// End of the cell, counted from the row's beginning.
    pub(super) end: usize,
    /// Number in the cell; NaN without a finite one.
    pub(super) number: f64,
}

/// Result of scanning a row.
#[derive(Clone, Copy, Default)]
pub(super) struct ScannedRow {
    /// Number of cells.
    pub(super) cells: usize,
    /// Position of the line end.
    pub(super) end: usize,
    /// True if a cell begins with a quote.
    pub(super) quoted: bool,
}

/// Defect of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellDefect {
    OpenQuote,
    Nul,
    NotUtf8,
}

/// Cell with a defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadCell {
    pub(super) snag: CellDefect,
    /// Index of the cell in the row, from 0.
    pub(super) cell: usize,
    /// Start and end of the cell.
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Scans the row that begins at `start`, and fills as many slots as there are.
pub(super) fn scan_row(
    text: &[u8],
    start: usize,
    slots: &mut [CellSlot],
) -> Result<ScannedRow, BadCell> {
    let mut marks = CellMarks::new(text, start);
    let (mut at, mut cells, mut quoted) = (start, 0, false);
    let mut slots = slots.iter_mut();
    loop {
        let mark = marks.next_mark();
        let (mut end, mut number) = (mark, parse_decimal(text, at, mark));
        if number.is_none() || !ends_cell(text, mark) {
            let trouble = |(end, snag)| BadCell { snag, cell: cells, start: at, end };
            (end, number) = scan_any_cell(text, at).map_err(trouble)?;
            quoted |= text.get(at) == Some(&b'"');
        }
        if end != mark {
            marks = CellMarks::new(text, end + 1);
        }
        cells += 1;
        if let Some(slot) = slots.next() {
            *slot = CellSlot { end: end - start, number: number.unwrap_or(f64::NAN) };
        }
        if text.get(end) != Some(&b',') {
            return Ok(ScannedRow { cells, end, quoted });
        }
        at = end + 1;
    }
}

/// The number 1 in every byte of a word.
const BYTE_ONES: u64 = 0x0101_0101_0101_0101;

/// Possible cell ends: commas and line ends, but also other bytes below 16 and those in quotes.
struct CellMarks<'a> {
    text: &'a [u8],
    block: usize,
    bits: u64,
}

impl<'a> CellMarks<'a> {
    const BLOCK_BYTES: usize = 64;

    fn new(text: &'a [u8], start: usize) -> Self {
        Self { text, block: start, bits: Self::block_bits(text, start) }
    }

    /// Returns the next mark; after the text there are always more.
    #[inline]
    fn next_mark(&mut self) -> usize {
        while self.bits == 0 {
            self.block += Self::BLOCK_BYTES;
            self.bits = Self::block_bits(self.text, self.block);
        }
        let at = self.block + self.bits.trailing_zeros() as usize;
        self.bits &= self.bits - 1;
        at
    }

    /// Returns a bit for each byte of a block, set where there is a mark.
    #[inline]
    fn block_bits(text: &[u8], block: usize) -> u64 {
        let Some(block) = text.get(block..).and_then(<[u8]>::first_chunk::<64>) else { return 1 };
        let (words, _) = block.as_chunks::<8>();
        words.iter().rev().fold(0, |bits, word| (bits << 8) | mark_bits(u64::from_le_bytes(*word)))
    }
}

/// Returns a bit for each byte of a word, set where it is a comma or below 16.
#[inline]
const fn mark_bits(word: u64) -> u64 {
    let comma = word ^ (BYTE_ONES * b',' as u64);
    let comma = ((comma & (BYTE_ONES * 0x7f)) + BYTE_ONES * 0x7f) | comma;
    let low = ((word & (BYTE_ONES * 0x70)) + BYTE_ONES * 0x70) | word;
    let found = !(comma & low) & (BYTE_ONES * 0x80);
    ((found >> 7).wrapping_mul(0x0102_0408_1020_4080)) >> 56
}

/// Returns true if a cell can end at this position.
fn ends_cell(text: &[u8], at: usize) -> bool {
    matches!(text.get(at), Some(b',' | b'\n' | b'\r'))
}

/// Returns the end of any cell with its number, or with its defect.
#[cold]
fn scan_any_cell(text: &[u8], start: usize) -> Result<(usize, Option<f64>), (usize, CellDefect)> {
    let mut bare = start;
    if text.get(start) == Some(&b'"') {
        let all = text.len() - PADDING_BYTES;
        bare = closing_quote(text, start).ok_or((all, CellDefect::OpenQuote))? + 1;
    }
    let rest = text.get(bare..).unwrap_or_default();
    let end = memchr3(b',', b'\n', b'\r', rest).map_or(text.len(), |at| bare + at);
    let content = unquote_cell(text.get(start..end).unwrap_or_default());
    let number = cell::parse_number(&content);
    if number.is_none() && content.contains(&0) {
        return Err((end, CellDefect::Nul));
    }
    if number.is_none() && std::str::from_utf8(&content).is_err() {
        return Err((end, CellDefect::NotUtf8));
    }
    Ok((end, number))
}

/// Returns the position of the quote that closes the one at `start`.
fn closing_quote(text: &[u8], start: usize) -> Option<usize> {
    let own = text.get(..text.len() - PADDING_BYTES)?;
    let mut from = start + 1;
    loop {
        let quote = from + memchr(b'"', own.get(from..)?)?;
        if own.get(quote + 1) != Some(&b'"') {
            return Some(quote);
        }
        from = quote + 2;
    }
}

/// Removes the quotes around and within a cell.
pub(super) fn unquote_cell(cell: &[u8]) -> Cow<'_, [u8]> {
    let [b'"', inner @ ..] = cell else { return Cow::Borrowed(cell) };
    match memchr(b'"', inner) {
        Some(close) if close + 1 == inner.len() => {
            Cow::Borrowed(inner.get(..close).unwrap_or_default())
        }
        Some(_) | None => Cow::Owned(unescape_quotes(inner)),
    }
}

/// Unescapes the text after an opening quote: doubled quotes become one, the first other one
/// closes, the rest is literal.
fn unescape_quotes(inner: &[u8]) -> Vec<u8> {
    let mut said = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(quote) = memchr(b'"', rest) {
        let (before, after) = rest.split_at(quote);
        said.extend_from_slice(before);
        match after {
            [b'"', b'"', more @ ..] => {
                said.push(b'"');
                rest = more;
            }
            after => {
                rest = after.get(1..).unwrap_or_default();
                break;
            }
        }
    }
    said.extend_from_slice(rest);
    said
}
