//! Parsing of one cell: a number, an id, or a value to compare. Independent of columns and rows.

use std::hash::{DefaultHasher, Hasher};

/// Id of a row's configuration: a whole number, or the fingerprint of any other text. Numbers are
/// ordered by value and come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowId(i64);

impl RowId {
    /// Bound of numbers on both sides of 0; fingerprints go from here to twice this: a bit is free.
    const NUMBER_LIMIT: i64 = 1 << 61;

    /// Converts a number, truncated towards zero; `None` if it is too large.
    fn from_number(number: f64) -> Option<Self> {
        #[expect(clippy::cast_possible_truncation, reason = "to truncate it is what is asked for")]
        let id = number as i64;
        (-Self::NUMBER_LIMIT < id && id < Self::NUMBER_LIMIT).then_some(Self(id))
    }

    /// Creates the id of the row with this number.
    pub(super) fn from_row_number(number: u32) -> Self {
        Self(number.into())
    }

    fn from_text(text: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(text);
        Self(Self::NUMBER_LIMIT + (hasher.finish() >> 3).cast_signed())
    }

    /// Returns the number, if the id is one.
    #[must_use]
    pub const fn as_number(self) -> Option<i64> {
        if self.0 < Self::NUMBER_LIMIT { Some(self.0) } else { None }
    }

    /// Packs the id and a bit into one number.
    pub(super) const fn with_bit(self, bit: bool) -> i64 {
        (self.0 << 1) | bit as i64
    }

    /// Unpacks the id and the bit.
    pub(super) const fn split_bit(both: i64) -> (Self, bool) {
        (Self(both >> 1), both & 1 == 1)
    }
}

/// Parses the finite number in a cell, ignoring surrounding white space.
pub(super) fn parse_number(cell: &[u8]) -> Option<f64> {
    let parsed = fast_float2::parse::<f64, _>(cell).ok().or_else(|| {
        let trimmed = std::str::from_utf8(cell).ok()?.trim();
        (trimmed.len() < cell.len()).then(|| fast_float2::parse(trimmed).ok())?
    });
    parsed.filter(|number| number.is_finite())
}

/// Parses the finite number in an id cell. The separators `0x1c`–`0x1f` around it are white space
/// too, as in the system that the scoring oracle comes from.
pub(super) fn parse_id_number(cell: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(cell).ok()?;
    parse_number(
        text.trim_matches(|c: char| c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)).as_bytes(),
    )
}

/// Returns the id of a cell, given the number in it.
pub(super) fn row_id(cell: Option<&[u8]>, number: Option<f64>) -> RowId {
    let text = || RowId::from_text(cell.unwrap_or_default().trim_ascii());
    number.and_then(RowId::from_number).unwrap_or_else(text)
}

/// Adds a cell to a fingerprint: `1.0` equals `1.00`, and `0` equals `-0`; a missing cell, an empty
/// one and `nan` are three different values.
pub(super) fn hash_cell(hasher: &mut DefaultHasher, cell: Option<&[u8]>, number: Option<f64>) {
    /// Bits that no finite number has.
    const NO_NUMBER_BITS: u64 = u64::MAX;
    match (cell, number) {
        (_, Some(number)) => hasher.write_u64((number + 0.0).to_bits()),
        (None, None) => hasher.write_u64(NO_NUMBER_BITS),
        (Some(text), None) => {
            let text = text.trim_ascii();
            hasher.write_u64(NO_NUMBER_BITS - 1);
            hasher.write_usize(text.len());
            hasher.write(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_number() {
        for (text, expect) in [
            ("1", Some(1.0)),
            (" 2.5\t", Some(2.5)),
            ("\u{a0}1.5", Some(1.5)),
            ("+3", Some(3.0)),
            ("5.", Some(5.0)),
            (".5", Some(0.5)),
            ("-1E-2", Some(-0.01)),
            ("1e-320", Some(1e-320)),
            ("9007199254740993", Some(9_007_199_254_740_992.0)),
            ("", None),
            (" ", None),
            (".", None),
            ("-", None),
            ("1e", None),
            ("--1", None),
            ("+-1", None),
            ("1 2", None),
            ("1,5", None),
            ("1_000", None),
            ("\u{661}\u{662}", None),
            ("1d5", None),
            ("0x10", None),
            ("True", None),
            ("nan", None),
            ("NaN", None),
            ("inf", None),
            ("-Infinity", None),
            ("1e400", None),
            ("\x1c1", None),
        ] {
            assert_eq!(parse_number(text.as_bytes()), expect, "{text:?}");
        }
        assert_eq!(parse_number(b"1\xff"), None);
    }

    #[test]
    fn what_is_an_id() {
        let of = |text: &str| row_id(Some(text.as_bytes()), parse_id_number(text.as_bytes()));
        for (text, expect) in
            [("1", 1), ("1.9", 1), ("-1.9", -1), ("1e2", 100), ("\x1c1", 1), ("-0", 0)]
        {
            assert_eq!(of(text).as_number(), Some(expect), "{text:?}");
        }
        assert_eq!(of("a").as_number(), None);
        assert_eq!(of("1e300").as_number(), None);
        assert_ne!(of("99999999999999999999"), of("99999999999999999998"));
        assert_ne!(of("a"), of("b"));
        assert_eq!(of(" a"), of("a"));
        assert_eq!(of(""), row_id(None, None));
    }
}
