//! The rows of a CSV, one at a time, in bounded memory. Says what is wrong with the text and where; what the cells mean
//! is none of its business.

use super::SweepError;
use csv::ByteRecord;
use std::io::{self, Chain, Cursor, Read};

/// The longest row that is read, in bytes.
pub const MAX_ROW_BYTES: usize = 16 << 20;
/// The most columns that a header may have.
pub const MAX_COLUMNS: usize = 1 << 16;

/// A row of its own after the end of the file. In a file that ends within quotes it is no row of its own: that is how
/// an unterminated quote shows. It holds NUL bytes, which no row may.
const END: &[u8] = b"\n\0end of file\0\n";
const END_ROW: &[u8] = b"\0end of file\0";
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

type Source<R> = Chain<Chain<Cursor<Vec<u8>>, R>, &'static [u8]>;

/// Reads rows.
pub(super) struct Records<R> {
    reader: csv::Reader<Meter<Source<R>>>,
    file: String,
    record: ByteRecord,
}

/// Counts the bytes read for one row, and stops where it gets too long.
struct Meter<R> {
    source: R,
    row_bytes: usize,
    too_long: bool,
    line_end: Option<LineEnd>,
}

/// How the file's lines end; the reader counts a `\n` after `\r` to the next row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    Single,
    CrLf,
}

impl LineEnd {
    fn find(text: &[u8]) -> Option<Self> {
        let at = text.iter().position(|byte| matches!(byte, b'\r' | b'\n'))?;
        Some(if text.get(at..at + 2) == Some(b"\r\n") { Self::CrLf } else { Self::Single })
    }
}

impl<R: Read> Read for Meter<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.too_long = self.row_bytes > MAX_ROW_BYTES;
        if self.too_long {
            return Err(io::Error::other("row too long"));
        }
        loop {
            match self.source.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(bytes) => {
                    self.row_bytes += bytes;
                    self.line_end = self.line_end.or_else(|| LineEnd::find(buffer.get(..bytes)?));
                    return Ok(bytes);
                }
            }
        }
    }
}

impl<R: Read> Records<R> {
    /// Starts to read; a byte-order mark is removed.
    pub(super) fn new(mut source: R, file: &str) -> Result<Self, SweepError> {
        let mut head = Vec::new();
        (&mut source)
            .take(BYTE_ORDER_MARK.len() as u64)
            .read_to_end(&mut head)
            .map_err(|source| SweepError::Io { file: file.to_owned(), line: 1, source })?;
        if head == BYTE_ORDER_MARK {
            head.clear();
        }
        let source = Cursor::new(head).chain(source).chain(END);
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .buffer_capacity(64 << 10)
            .from_reader(Meter { source, row_bytes: 0, too_long: false, line_end: None });
        Ok(Self { reader, file: file.to_owned(), record: ByteRecord::new() })
    }

    /// The header's names.
    pub(super) fn header(&mut self) -> Result<Vec<String>, SweepError> {
        let file = self.file.clone();
        if self.next()?.is_none() {
            return Err(SweepError::Empty { file });
        }
        let (line, columns) = (self.line(), self.record.len());
        if columns > MAX_COLUMNS {
            return Err(SweepError::TooManyColumns { file, line, columns });
        }
        let names = self.record.iter().enumerate().map(|(at, name)| {
            let name = std::str::from_utf8(name).map(str::to_owned);
            name.map_err(|_| SweepError::HeaderNotUtf8 { file: file.clone(), line, column: at + 1 })
        });
        names.collect()
    }

    /// The next row that is not an empty line, while there is one.
    pub(super) fn next(&mut self) -> Result<Option<&ByteRecord>, SweepError> {
        if !self.read()? {
            return Ok(None);
        }
        if !self.record.as_slice().contains(&0) {
            return Ok(Some(&self.record));
        }
        let error = self.refuse();
        if self.record.as_slice() == END_ROW && !self.read()? {
            return Ok(None);
        }
        Err(error)
    }

    fn read(&mut self) -> Result<bool, SweepError> {
        self.reader.get_mut().row_bytes = 0;
        self.reader.read_byte_record(&mut self.record).map_err(|error| {
            let line = self.record.position().map_or(1, csv::Position::line);
            let (file, line) = (self.file.clone(), line + u64::from(self.line_end_pending()));
            if self.reader.get_ref().too_long {
                SweepError::RowTooLong { file, line }
            } else {
                SweepError::Io { file, line, source: error.into() }
            }
        })
    }

    /// Whether the line end after a row is still to be counted.
    fn line_end_pending(&self) -> bool {
        self.reader.get_ref().line_end == Some(LineEnd::CrLf) && self.reader.position().record() > 1
    }

    /// Whether the current row is one that a quote never closed made of all the rest.
    fn is_unterminated(&self) -> bool {
        self.record.iter().next_back().is_some_and(|last| last.ends_with(END))
    }

    /// The line that the current row begins on: of those counted so far, less those within the row and after it.
    fn line(&self) -> u64 {
        let within = self.record.as_slice().split(|byte| *byte == b'\n').skip(1).count() as u64;
        let single = self.reader.get_ref().line_end == Some(LineEnd::Single);
        let after = u64::from(single && !self.is_unterminated());
        self.reader.position().line().saturating_sub(within + after).max(1)
    }

    /// What is wrong with a row that has a NUL byte in it.
    fn refuse(&self) -> SweepError {
        let (file, line) = (self.file.clone(), self.line());
        if self.is_unterminated() {
            return SweepError::UnterminatedQuote { file, line };
        }
        let column = self.record.iter().position(|cell| cell.contains(&0)).map_or(1, |at| at + 1);
        SweepError::NulByte { file, line, column }
    }
}
