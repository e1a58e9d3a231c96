//! Reads and appends `journal.jsonl`: one line per event, synced and never changed, the only truth
//! about a run. A torn last line was never acknowledged and is ignored; other damage is an error.

use super::atomic_file;
use super::disk_format::journal_line::{self, UnendedLine};
use super::error::StoreError;
use super::os::{self, FileStamp};
use super::record_file::{self, RecordKind};
use jiff::Timestamp;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use treebeam_core::event::Event;
use treebeam_core::id::Sha256;

pub use super::disk_format::journal_line::JournalRecord;

/// The longest line that is written or read.
pub const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// Reads a journal line by line. Skips lines of an older epoch after those of a newer one.
#[derive(Debug)]
pub struct JournalReader {
    path: PathBuf,
    input: BufReader<File>,
    line: Vec<u8>,
    /// Offset of the line that was read last.
    line_at: u64,
    /// Offset of the next line.
    next_at: u64,
    begun_at: u64,
    /// The last line that counted, with its event number.
    last: Option<(u64, JournalLine)>,
    highest_epoch: u64,
    end: Option<JournalEnd>,
    /// True if the line that was read last had no line end yet.
    awaits_newline: bool,
}

/// Position and digest of a line in a journal; the next append checks that it is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JournalLine {
    /// Offset of the line.
    pub(super) at: u64,
    /// Length of the line without the line end.
    pub(super) bytes: u64,
    /// Digest of the line without the line end.
    pub(super) digest: Sha256,
}

/// How a journal ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JournalEnd {
    /// The last line has a line end.
    Clean,
    /// The last line is whole but has no line end.
    Unended,
    /// The last line is torn, and begins at this offset.
    Torn(u64),
}

impl JournalReader {
    /// Opens a journal at its first line.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_at(path, 0).map_err(StoreError::io("open", path))
    }

    /// Opens a journal at the offset of a line.
    pub(super) fn open_at(path: &Path, at: u64) -> io::Result<Self> {
        Self::from_file(path, record_file::open_record(path, RecordKind::Journal)?, at)
    }

    /// Reads an open journal from where a line begins.
    pub(super) fn from_file(path: &Path, mut file: File, at: u64) -> io::Result<Self> {
        file.seek(SeekFrom::Start(at))?;
        Ok(Self {
            path: path.to_owned(),
            input: BufReader::with_capacity(64 * 1024, file),
            line: Vec::new(),
            line_at: at,
            next_at: at,
            begun_at: at,
            last: None,
            highest_epoch: 0,
            end: None,
            awaits_newline: false,
        })
    }

    /// Opens a journal at the first line that begins at this offset or later.
    pub(super) fn open_at_or_after(path: &Path, at: u64) -> io::Result<Self> {
        let Some(before) = at.checked_sub(1) else { return Self::open_at(path, 0) };
        let mut input = BufReader::new(record_file::open_record(path, RecordKind::Journal)?);
        input.seek(SeekFrom::Start(before))?;
        let skipped = u64::try_from(input.skip_until(b'\n')?).unwrap_or(u64::MAX);
        Self::open_at(path, before.saturating_add(skipped))
    }

    /// Continues after the end, with the lines written since. A torn line is read again.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn resume_reading(&mut self) -> Result<(), StoreError> {
        let Some(end) = self.end else { return Ok(()) };
        let length = self.path.metadata().map_err(StoreError::io("look at", &self.path))?.len();
        let at = if let JournalEnd::Torn(at) = end { at } else { self.next_at };
        // A journal that got shorter is another file: the run continued from its manifest.
        let (at, last) = if length < at { (0, None) } else { (at, self.last) };
        let again = Self::open_at(&self.path, at).map_err(StoreError::io("open", &self.path))?;
        let owed = at > 0 && (self.awaits_newline || end == JournalEnd::Unended);
        *self = Self { last, awaits_newline: owed, highest_epoch: self.highest_epoch, ..again };
        Ok(())
    }

    /// Returns the next line that counts; none at the end.
    ///
    /// # Errors
    /// When a line is damaged, out of order, too long, or unknown to this treebeam.
    pub fn next_record(&mut self) -> Result<Option<JournalRecord>, StoreError> {
        while self.end.is_none() {
            if !self.read_line()? {
                break;
            }
            let (record, digest) =
                journal_line::parse_line(&self.line).map_err(|why| self.bad_line(why))?;
            if record.epoch < self.highest_epoch {
                continue;
            }
            self.check_follows(&record)?;
            self.highest_epoch = record.epoch;
            let bytes = u64::try_from(self.line.len()).unwrap_or(u64::MAX);
            self.last = Some((record.seq, JournalLine { at: self.line_at, bytes, digest }));
            return Ok(Some(record));
        }
        Ok(None)
    }

    /// Refuses a line whose number or digest of the previous line does not fit that line.
    fn check_follows(&self, record: &JournalRecord) -> Result<(), StoreError> {
        let Some((seq, line)) = self.last else { return Ok(()) };
        if record.seq != seq + 1 {
            return Err(self.bad_line(format!("event {} follows event {seq}", record.seq)));
        }
        if record.prev.is_some_and(|prev| prev != line.digest) {
            let why = format!("event {seq} is not the line that event {} names", record.seq);
            return Err(self.bad_line(format!("{why}: one of the two was changed")));
        }
        Ok(())
    }

    /// Reads the next whole line into `self.line`; returns false at the end.
    fn read_line(&mut self) -> Result<bool, StoreError> {
        self.skip_late_newline()?;
        self.line.clear();
        self.line_at = self.next_at;
        let most = u64::try_from(MAX_LINE_BYTES).unwrap_or(u64::MAX);
        let read = (&mut self.input).take(most).read_until(b'\n', &mut self.line);
        let read = read.map_err(StoreError::io("read", &self.path))?;
        self.next_at += u64::try_from(read).unwrap_or(u64::MAX);
        if read == 0 {
            self.end.get_or_insert(JournalEnd::Clean);
            return Ok(false);
        }
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
            return Ok(true);
        }
        if read == MAX_LINE_BYTES {
            return Err(self.bad_line(format!("the line is longer than {MAX_LINE_BYTES} bytes")));
        }
        self.judge_last_line()
    }

    /// Skips the line end of a line that was read before its line end was written.
    fn skip_late_newline(&mut self) -> Result<(), StoreError> {
        if !self.awaits_newline {
            return Ok(());
        }
        let ahead = self.input.fill_buf().map_err(StoreError::io("read", &self.path))?;
        if ahead.first() == Some(&b'\n') {
            self.input.consume(1);
            self.next_at += 1;
            self.awaits_newline = false;
        }
        Ok(())
    }

    fn judge_last_line(&mut self) -> Result<bool, StoreError> {
        match journal_line::judge_unended(&self.line) {
            UnendedLine::Whole => {
                self.end = Some(JournalEnd::Unended);
                Ok(true)
            }
            UnendedLine::Followed => {
                Err(self.bad_line("something follows the line's end".to_owned()))
            }
            UnendedLine::Torn => {
                self.end = Some(JournalEnd::Torn(self.line_at));
                Ok(false)
            }
        }
    }

    /// Returns the path of the journal.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number and the offset of the last line that counted.
    pub(super) fn last_position(&self) -> Option<(u64, u64)> {
        self.last.map(|(seq, line)| (seq, line.at))
    }

    /// Returns the last line that counted.
    pub(super) fn last_line(&self) -> Option<JournalLine> {
        self.last.map(|(_, line)| line)
    }

    /// Returns the highest epoch of the lines that were read.
    pub(super) fn highest_epoch(&self) -> u64 {
        self.highest_epoch
    }

    /// Returns the number of bytes that were read.
    pub(super) fn bytes_read(&self) -> u64 {
        self.next_at - self.begun_at
    }

    /// Returns the offset of the next line.
    pub(super) fn position(&self) -> u64 {
        self.next_at
    }

    /// Returns how the journal ends, once it is read to its end.
    pub(super) fn journal_end(&self) -> JournalEnd {
        self.end.unwrap_or(JournalEnd::Clean)
    }

    /// Builds an error for the line that was read last, with its number.
    pub(super) fn bad_line(&self, why: String) -> StoreError {
        StoreError::BadLine { path: self.path.clone(), line: self.line_number(), why }
    }

    /// Counts the lines up to the one that was read last; needed only for errors.
    pub(super) fn line_number(&self) -> u64 {
        let before = record_file::open_record(&self.path, RecordKind::Journal)
            .map(|file| BufReader::new(file.take(self.line_at)));
        let ends = before.map(|input| input.bytes().filter(|b| matches!(b, Ok(b'\n'))).count());
        u64::try_from(ends.unwrap_or(0)).unwrap_or(u64::MAX) + 1
    }
}

/// Returns the time on the journal's first line, if that can be read.
pub(super) fn first_line_time(path: &Path) -> Option<Timestamp> {
    let mut reader = JournalReader::open(path).ok()?;
    reader.next_record().ok()?.map(|record| record.t)
}

/// Appends to a journal. Refuses every write after an error: the disk's state is then unknown.
#[derive(Debug)]
pub(super) struct JournalWriter {
    path: PathBuf,
    file: File,
    epoch: u64,
    /// The number of the last event.
    seq: u64,
    /// The line of the last event, if it is in the file.
    line: Option<JournalLine>,
    length: u64,
    /// The stamp of the file as this process left it.
    stamp: FileStamp,
    broken: bool,
}

/// The position from which a journal is continued.
#[derive(Clone, Copy, Debug)]
pub(super) struct AppendPoint {
    /// The number of the last event.
    pub(super) seq: u64,
    /// The line of the last event, if it is in the file.
    pub(super) line: Option<JournalLine>,
    /// How the file ends.
    pub(super) end: JournalEnd,
    /// Offset of the end of the last line that was read, a torn one not counted.
    pub(super) length: u64,
}

impl JournalWriter {
    /// Creates an empty journal.
    pub(super) fn create(path: &Path, epoch: u64, seq: u64) -> Result<Self, StoreError> {
        let mut how = OpenOptions::new();
        let file = how.read(true).append(true).create_new(true).open(path);
        let file = file.map_err(StoreError::io("create", path))?;
        let stamp = os::file_stamp(&file).map_err(StoreError::io("look at", path))?;
        let path = path.to_owned();
        Ok(Self { path, file, epoch, seq, line: None, length: 0, stamp, broken: false })
    }

    /// Continues a journal, after cutting off a torn last line.
    pub(super) fn resume(path: &Path, epoch: u64, tip: AppendPoint) -> Result<Self, StoreError> {
        let mut how = OpenOptions::new();
        let file =
            record_file::open_record_with(how.read(true).append(true), path, RecordKind::Journal);
        Self::from_file(path, file.map_err(StoreError::io("open", path))?, epoch, tip)
    }

    /// Continues a copy that takes the journal's name. A former owner writes to a nameless file.
    pub(super) fn resume_on_copy(
        path: &Path,
        epoch: u64,
        tip: AppendPoint,
    ) -> Result<Self, StoreError> {
        let old = record_file::open_record(path, RecordKind::Journal);
        let mut old = old.map_err(StoreError::io("open", path))?.take(tip.length);
        let copy = |file: &mut File| io::copy(&mut old, file).map(drop);
        let file =
            atomic_file::replace_and_open(path, copy).map_err(StoreError::io("copy", path))?;
        let folder = path.parent().unwrap_or(path);
        atomic_file::sync_dir(folder).map_err(StoreError::io("sync", folder))?;
        let end =
            if tip.end == JournalEnd::Unended { JournalEnd::Unended } else { JournalEnd::Clean };
        Self::from_file(path, file, epoch, AppendPoint { end, ..tip })
    }

    fn from_file(
        path: &Path,
        file: File,
        epoch: u64,
        tip: AppendPoint,
    ) -> Result<Self, StoreError> {
        let stamp = repair_end(&file, tip.end).map_err(StoreError::io("mend", path))?;
        let AppendPoint { seq, line, .. } = tip;
        let (path, length) = (path.to_owned(), stamp.length);
        Ok(Self { path, file, epoch, seq, line, length, stamp, broken: false })
    }

    /// Appends events in one write and one sync.
    pub(super) fn append(&mut self, events: &[Event]) -> Result<(), StoreError> {
        if self.broken {
            return Err(StoreError::Broken { path: self.path.clone() });
        }
        if events.is_empty() {
            return Ok(());
        }
        self.broken = true;
        let (lines, last) = self.encode_events(events)?;
        let write = self.file.write_all(&lines).and_then(|()| self.file.sync_data());
        // Read from the file: a former owner may have appended a late line in between.
        let left =
            write.and_then(|()| Ok((self.file.stream_position()?, os::file_stamp(&self.file)?)));
        (self.length, self.stamp) = left.map_err(StoreError::io("append to", &self.path))?;
        self.broken = false;
        self.seq += u64::try_from(events.len()).unwrap_or(u64::MAX);
        let written = u64::try_from(lines.len()).unwrap_or(u64::MAX);
        let begin = self.length.checked_sub(written);
        self.line = begin.map(|begin| JournalLine { at: begin + last.at, ..last });
        Ok(())
    }

    /// Encodes events as lines, and returns them with the last line.
    fn encode_events(&self, events: &[Event]) -> Result<(Vec<u8>, JournalLine), StoreError> {
        let now = Timestamp::now();
        let mut lines = Vec::new();
        let digest = self.line.map_or_else(journal_line::chain_start, |line| line.digest);
        let mut last = JournalLine { at: 0, bytes: 0, digest };
        for (seq, event) in (self.seq + 1..).zip(events) {
            let start = lines.len();
            let written =
                journal_line::write_line(seq, self.epoch, now, last.digest, event, &mut lines);
            written.map_err(io::Error::from).map_err(StoreError::io("write", &self.path))?;
            let bytes = lines.len() - start;
            if bytes > MAX_LINE_BYTES {
                let (path, limit) = (self.path.clone(), MAX_LINE_BYTES);
                return Err(StoreError::TooLong { path, bytes, limit });
            }
            let line = lines.get(start..).and_then(|line| line.strip_suffix(b"\n"));
            let line = line.unwrap_or_default();
            let number = |size: usize| u64::try_from(size).unwrap_or(u64::MAX);
            let (at, bytes) = (number(start), number(line.len()));
            last = JournalLine { at, bytes, digest: journal_line::line_digest(line) };
        }
        Ok((lines, last))
    }

    /// Switches to another file of the same content.
    pub(super) fn switch_file(&mut self, file: File) -> io::Result<()> {
        self.stamp = os::file_stamp(&file)?;
        self.file = file;
        Ok(())
    }

    /// The stamp of the file as it was left, or as it was found with all lines intact.
    pub(super) fn stamp(&self) -> FileStamp {
        self.stamp
    }

    /// Remembers the stamp of a file whose lines have been found intact.
    pub(super) fn set_stamp(&mut self, stamp: FileStamp) {
        self.stamp = stamp;
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
    /// Returns the open file.
    pub(super) fn file(&self) -> &File {
        &self.file
    }
    pub(super) fn seq(&self) -> u64 {
        self.seq
    }
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }
    pub(super) fn last_line(&self) -> Option<&JournalLine> {
        self.line.as_ref()
    }
    pub(super) fn length(&self) -> u64 {
        self.length
    }
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }
}

/// Ends the file after its last whole line, and returns the length of the file.
fn repair_end(mut file: &File, end: JournalEnd) -> io::Result<FileStamp> {
    match end {
        JournalEnd::Clean => return os::file_stamp(file),
        JournalEnd::Unended => file.write_all(b"\n")?,
        JournalEnd::Torn(at) => file.set_len(at)?,
    }
    file.sync_all()?;
    os::file_stamp(file)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use treebeam_core::event::StopReason;

    #[test]
    fn a_failed_write_is_final() {
        let path = Path::new("/dev/full");
        let file = OpenOptions::new().append(true).open(path).unwrap();
        let tip = AppendPoint { seq: 4, line: None, end: JournalEnd::Clean, length: 0 };
        let mut writer = JournalWriter::from_file(path, file, 1, tip).unwrap();
        let stop = Event::Stopped { reason: StopReason::NoIdeas, at: Timestamp::UNIX_EPOCH };
        assert!(matches!(writer.append(std::slice::from_ref(&stop)), Err(StoreError::Io { .. })));
        assert!(matches!(
            writer.append(std::slice::from_ref(&stop)),
            Err(StoreError::Broken { .. })
        ));
        assert_eq!(writer.seq(), 4);
    }
}
