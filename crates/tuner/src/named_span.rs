//! Names and the place of their literal in a text, as all file kinds use them.

use std::ops::Range;

/// A name and the place of its literal.
pub(super) struct NamedSpan {
    pub(super) name: String,
    pub(super) span: Range<usize>,
}

/// Returns the lines with the offset of each, without line ends and byte order mark.
pub(super) fn lines_with_offsets(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    text.split('\n').map(move |line| {
        let begins = start;
        start += line.len() + 1;
        match line.strip_prefix('\u{feff}') {
            Some(rest) => (begins + '\u{feff}'.len_utf8(), rest.trim_end_matches('\r')),
            None => (begins, line.trim_end_matches('\r')),
        }
    })
}

/// Returns the place of a part of a line.
pub(super) fn span_of_part(start: usize, line: &str, part: &str) -> Option<Range<usize>> {
    let offset = (part.as_ptr() as usize).checked_sub(line.as_ptr() as usize)?;
    let begins = start + offset;
    (!part.is_empty()).then_some(begins..begins + part.len())
}
