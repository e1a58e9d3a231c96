//! Row reader of a CSV, in bounded memory: ends and numbers of cells, and errors with their place.
//! Columns have no roles here.

use super::SweepError;
use super::scan::{self, BadCell, CellDefect, CellSlot, ScannedRow};
use std::borrow::Cow;
use std::io::{self, Read};

/// Maximum length of a row, in bytes.
pub const MAX_ROW_BYTES: usize = 16 << 20;
/// Maximum number of columns in a header.
pub const MAX_COLUMNS: usize = 1 << 16;

/// Number of bytes read at once, while rows are short.
const INITIAL_BUFFER_BYTES: usize = 128 << 10;
/// Number of columns that the first buffer has room for.
const INITIAL_COLUMNS: usize = 512;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reader of the rows of a CSV.
pub(super) struct RowReader<R> {
    source: R,
    file: String,
    header: Vec<String>,
    header_line: u64,
    /// Text, followed by line ends, so that every scan ends in time.
    buffer: Vec<u8>,
    /// Length of the text in the buffer.
    filled: usize,
    /// True if the source is exhausted.
    ended: bool,
    /// Position and line of the next row.
    next: usize,
    line: u64,
    /// Line on which the current row begins.
    row_line: u64,
    /// Start of the current row, and its cells up to the header's length.
    start: usize,
    scanned: ScannedRow,
    slots: Vec<CellSlot>,
}

/// Row of a CSV.
#[derive(Clone, Copy)]
pub(super) struct SweepRow<'a> {
    text: &'a [u8],
    slots: &'a [CellSlot],
    cells: usize,
    line: u64,
}

impl<'a> SweepRow<'a> {
    /// Returns the line on which the row begins.
    pub(super) const fn line(self) -> u64 {
        self.line
    }

    /// Returns the number of cells, which may exceed the header's; those beyond it are not read.
    pub(super) const fn cell_count(self) -> usize {
        self.cells
    }

    /// Returns each cell's number; NaN without a finite one.
    pub(super) fn numbers(self) -> impl Iterator<Item = f64> {
        self.slots.iter().map(|slot| slot.number)
    }

    /// Returns the finite number in a cell.
    pub(super) fn cell_number(self, at: usize) -> Option<f64> {
        self.slots.get(at).map(|slot| slot.number).filter(|number| !number.is_nan())
    }

    /// Returns the unquoted text of a cell.
    pub(super) fn cell_text(self, at: usize) -> Option<Cow<'a, [u8]>> {
        let end = self.slots.get(at)?.end;
        let before = at.checked_sub(1).and_then(|before| self.slots.get(before));
        self.text.get(before.map_or(0, |before| before.end + 1)..end).map(scan::unquote_cell)
    }
}

/// Result of scanning the text after the current row.
enum RowSearch {
    Row,
    BlankLine,
    /// The text ends within a row: more must be read.
    Cut,
    End,
}

impl<R: Read> RowReader<R> {
    /// Opens a reader and reads the header; byte-order marks are removed.
    pub(super) fn new(source: R, file: &str) -> Result<Self, SweepError> {
        Self::with_buffer(source, file, INITIAL_BUFFER_BYTES)
    }

    /// Opens a reader with a buffer of this size, which must exceed the padding.
    pub(super) fn with_buffer(source: R, file: &str, bytes: usize) -> Result<Self, SweepError> {
        let mut rows = Self {
            source,
            file: file.to_owned(),
            header: Vec::new(),
            header_line: 1,
            buffer: vec![b'\n'; bytes],
            filled: 0,
            ended: false,
            next: 0,
            line: 1,
            row_line: 1,
            start: 0,
            scanned: ScannedRow::default(),
            slots: vec![CellSlot::default(); INITIAL_COLUMNS],
        };
        rows.fill_buffer()?;
        while rows.buffer.get(rows.next..).is_some_and(|text| text.starts_with(BYTE_ORDER_MARK)) {
            rows.next += BYTE_ORDER_MARK.len();
        }
        rows.header = rows.read_header()?;
        rows.slots.resize(rows.header.len(), CellSlot::default());
        Ok(rows)
    }

    /// Returns the names in the header.
    pub(super) fn header(&self) -> &[String] {
        &self.header
    }

    /// Returns the line on which the header begins.
    pub(super) const fn header_line(&self) -> u64 {
        self.header_line
    }

    fn read_header(&mut self) -> Result<Vec<String>, SweepError> {
        let file = self.file.clone();
        if !self.advance_to_row()? {
            return Err(SweepError::Empty { file });
        }
        let columns = self.scanned.cells;
        if columns > MAX_COLUMNS {
            let line = self.header_line;
            return Err(SweepError::TooManyColumns { file, line, columns });
        }
        if columns > self.slots.len() {
            self.slots.resize(columns, CellSlot::default());
            (self.next, self.line) = (self.start, self.header_line);
            return self.read_header();
        }
        let row = self.current_row();
        let name = |at| row.cell_text(at).map(|name| String::from_utf8_lossy(&name).into_owned());
        Ok((0..columns).map_while(name).collect())
    }

    /// Reads the next row that is not blank, if there is one.
    pub(super) fn next_row(&mut self) -> Result<Option<SweepRow<'_>>, SweepError> {
        Ok(if self.advance_to_row()? { Some(self.current_row()) } else { None })
    }

    fn current_row(&self) -> SweepRow<'_> {
        let ScannedRow { cells, end, .. } = self.scanned;
        let text = self.buffer.get(self.start..end).unwrap_or_default();
        let slots = self.slots.get(..cells).unwrap_or(&self.slots);
        SweepRow { text, slots, cells, line: self.row_line }
    }

    fn advance_to_row(&mut self) -> Result<bool, SweepError> {
        loop {
            match self.scan_next()? {
                RowSearch::Row => return Ok(true),
                RowSearch::BlankLine => {}
                RowSearch::Cut => self.fill_buffer()?,
                RowSearch::End => return Ok(false),
            }
        }
    }

    fn scan_next(&mut self) -> Result<RowSearch, SweepError> {
        if self.next >= self.filled {
            return Ok(if self.ended { RowSearch::End } else { RowSearch::Cut });
        }
        let text = self.buffer.get(..self.filled + scan::PADDING_BYTES).unwrap_or_default();
        let scanned = match scan::scan_row(text, self.next, &mut self.slots) {
            Ok(scanned) => scanned,
            Err(trouble) if self.is_cut(trouble.end) => return Ok(RowSearch::Cut),
            Err(trouble) => return Err(self.cell_error(&trouble)),
        };
        let Some(next) = self.after_line_end(scanned.end) else { return Ok(RowSearch::Cut) };
        (self.start, self.next, self.scanned) = (self.next, next, scanned);
        self.row_line = self.line;
        let row = self.current_row().text;
        let blank = scanned.cells == 1 && self.header.len() != 1 && row.trim_ascii().is_empty();
        let found = if blank || row.is_empty() { RowSearch::BlankLine } else { RowSearch::Row };
        let line = self.line;
        self.line += 1 + if scanned.quoted { count_line_ends(row) } else { 0 };
        if self.header.is_empty() {
            self.header_line = line;
        }
        Ok(found)
    }

    /// Returns true if more text could change the token that ends here.
    const fn is_cut(&self, end: usize) -> bool {
        end >= self.filled && !self.ended
    }

    /// Returns the start of the next line, if it can be determined yet.
    fn after_line_end(&self, at: usize) -> Option<usize> {
        let two = self.buffer.get(at..at + 2) == Some(b"\r\n") && at + 1 < self.filled;
        let cut = if self.buffer.get(at) == Some(&b'\r') { at + 1 } else { at };
        (!self.is_cut(cut)).then_some(if two { at + 2 } else { at + 1 })
    }

    /// Moves the remaining text to the front, and fills the rest of the buffer.
    fn fill_buffer(&mut self) -> Result<(), SweepError> {
        let done = self.next.min(self.filled);
        self.buffer.copy_within(done..self.filled, 0);
        (self.filled, self.next) = (self.filled - done, 0);
        if self.filled + scan::PADDING_BYTES >= MAX_ROW_BYTES {
            return Err(SweepError::RowTooLong { file: self.file.clone(), line: self.line });
        }
        if self.filled * 2 > self.buffer.len().saturating_sub(scan::PADDING_BYTES) {
            self.buffer.resize(self.buffer.len() * 2, b'\n');
        }
        let mut free = self.buffer.get_mut(self.filled..).unwrap_or_default();
        let padding = free.len().saturating_sub(scan::PADDING_BYTES);
        free = free.get_mut(..padding).unwrap_or_default();
        let read = read_full(&mut self.source, free).map_err(|source| {
            let (file, line) = (self.file.clone(), self.line);
            SweepError::Io { file, line, source }
        })?;
        self.ended = read < free.len();
        self.filled += read;
        let padding = self.buffer.get_mut(self.filled..).unwrap_or_default();
        padding.iter_mut().take(scan::PADDING_BYTES).for_each(|byte| *byte = b'\n');
        Ok(())
    }

    /// Creates the error for a bad cell of the scanned row.
    fn cell_error(&self, trouble: &BadCell) -> SweepError {
        let before = self.buffer.get(self.next..trouble.start).unwrap_or_default();
        let (file, line) = (self.file.clone(), self.line + count_line_ends(before));
        let number = trouble.cell + 1;
        let name = self.header.get(trouble.cell);
        let column = name.map_or_else(|| number.to_string(), |name| format!("{number} (`{name}`)"));
        match trouble.snag {
            CellDefect::OpenQuote => SweepError::UnterminatedQuote { file, line, column },
            CellDefect::Nul => SweepError::NulByte { file, line, column },
            CellDefect::NotUtf8 => SweepError::NotUtf8 { file, line, column },
        }
    }
}

/// Reads until the buffer is full or the source is exhausted.
fn read_full(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(free) = buffer.get_mut(filled..).filter(|free| !free.is_empty()) {
        match source.read(free) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Counts the line ends in a text; `\r\n` is one end, and so is `\r` alone.
fn count_line_ends(text: &[u8]) -> u64 {
    let feeds = memchr::memchr_iter(b'\n', text).count();
    let returns = memchr::memchr_iter(b'\r', text);
    let alone = returns.filter(|at| text.get(at + 1) != Some(&b'\n')).count();
    (feeds + alone) as u64
}
