//! Compares the open journal with the file at its path before each append. Only the process of the
//! run still has the whole record if the journal is removed, cut or changed meanwhile. A journal
//! that lost its name is written back; one that was changed is left as it is.

use super::atomic_file;
use super::disk_format::journal_line;
use super::error::StoreError;
use super::journal::{JournalLine, JournalReader, JournalWriter};
use super::os::{self, FileStamp};
use super::record_file::{self, RecordKind, UnusableFile};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};

/// Length of the journal's end that is searched for lines of a later owner.
const SEARCHED_TAIL_BYTES: u64 = 1 << 20;

/// Result of comparing a journal on disk with what this process wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum JournalCondition {
    /// The journal is what was written.
    Intact,
    /// The content is whole, but the file has no name any more.
    Nameless,
    /// The journal was cut or changed, in this way.
    Changed(String),
}

impl JournalWriter {
    /// Compares the open journal with what was written, and with the file at its path.
    pub(super) fn check_condition(&mut self) -> Result<JournalCondition, StoreError> {
        let found = os::file_stamp(self.file()).map_err(StoreError::io("look at", self.path()))?;
        let content = self.content_change(found);
        if let Some(why) = content.map_err(StoreError::io("look at", self.path()))? {
            return Ok(JournalCondition::Changed(why));
        }
        if found != self.stamp() {
            if let Some(why) = self.earlier_line_change()? {
                return Ok(JournalCondition::Changed(why));
            }
            self.set_stamp(found);
        }
        let look = || -> io::Result<JournalCondition> {
            match record_file::open_record(self.path(), RecordKind::Journal) {
                Ok(found) if os::file_id(&found)? == os::file_id(self.file())? => {
                    Ok(JournalCondition::Intact)
                }
                Ok(_) => Ok(JournalCondition::Changed("another file has its name".to_owned())),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    Ok(JournalCondition::Nameless)
                }
                Err(error) => match UnusableFile::in_error(&error) {
                    Some(why) => Ok(JournalCondition::Changed(why.to_string())),
                    None => Err(error),
                },
            }
        };
        look().map_err(StoreError::io("look at", self.path()))
    }

    /// Describes how the content of the open file differs from what was written, if it does.
    fn content_change(&self, found: FileStamp) -> io::Result<Option<String>> {
        let (length, written) = (found.length, self.length());
        if length < written {
            return Ok(Some(format!("it has {length} bytes, {written} were written")));
        }
        if let Some(last) = self.last_line()
            && !is_line_intact(self.file(), last)?
        {
            return Ok(Some(format!("its last line, event {}, was changed", self.seq())));
        }
        if length > written && !self.has_only_inert_lines(written)? {
            return Ok(Some(format!("something was added to it after event {}", self.seq())));
        }
        Ok(None)
    }

    /// How an earlier line of the open file differs from what was written. Each line names the
    /// digest of the line before it, so that a chain which leads to the last line is the one that
    /// was written.
    fn earlier_line_change(&self) -> Result<Option<String>, StoreError> {
        let Some(last) = self.last_line() else { return Ok(None) };
        let io_error = || StoreError::io("read", self.path());
        let file = self.file().try_clone().map_err(io_error())?;
        let mut reader = JournalReader::from_file(self.path(), file, 0).map_err(io_error())?;
        loop {
            let before = reader.last_position().map_or(0, |(seq, _)| seq);
            let changed = |why: &str| {
                let place = if before == 0 {
                    "its first line".to_owned()
                } else {
                    format!("an earlier line, after event {before},")
                };
                Ok(Some(format!("{place} was changed: {why}")))
            };
            match reader.next_record() {
                Ok(Some(record)) if record.seq < self.seq() => {}
                Ok(Some(_))
                    if reader.last_line().is_some_and(|line| line.digest == last.digest) =>
                {
                    return Ok(None);
                }
                Ok(Some(_)) => return changed("the lines do not lead to the last one"),
                Ok(None) => return changed("the last event is not reached"),
                Err(StoreError::BadLine { why, .. }) => return changed(&why),
                Err(error @ StoreError::Io { .. }) => return Err(error),
                Err(error) => return changed(&error.to_string()),
            }
        }
    }

    /// Returns true if everything from this offset on is lines of older epochs, which readers skip.
    fn has_only_inert_lines(&self, from: u64) -> io::Result<bool> {
        let mut file = self.file();
        file.seek(SeekFrom::Start(from))?;
        let mut added = Vec::new();
        file.take(SEARCHED_TAIL_BYTES).read_to_end(&mut added)?;
        let Some(lines) = added.strip_suffix(b"\n") else { return Ok(false) };
        let is_inert = |text: &[u8]| {
            journal_line::parse_line(text).is_ok_and(|(record, _)| record.epoch < self.epoch())
        };
        Ok(lines.split(|byte| *byte == b'\n').all(is_inert))
    }

    /// Writes a copy of a journal that lost its name to the old path, and continues the copy.
    pub(super) fn restore_name(&mut self) -> Result<(), StoreError> {
        let path = self.path().to_owned();
        let (mut old, length) = (self.file(), self.length());
        let copy = |new: &mut File| -> io::Result<()> {
            old.seek(SeekFrom::Start(0))?;
            io::copy(&mut old.take(length), new).map(drop)
        };
        let file = atomic_file::create_and_open(&path, copy);
        let file = file.map_err(StoreError::io("put back", &path))?;
        let folder = path.parent().unwrap_or(&path);
        atomic_file::sync_dir(folder).map_err(StoreError::io("sync", folder))?;
        self.switch_file(file).map_err(StoreError::io("look at", &path))
    }
}

/// Returns true if a line of a journal is unchanged at its position.
fn is_line_intact(mut file: &File, line: &JournalLine) -> io::Result<bool> {
    file.seek(SeekFrom::Start(line.at))?;
    let mut found = Vec::new();
    file.take(line.bytes).read_to_end(&mut found)?;
    Ok(journal_line::line_digest(&found) == line.digest)
}

/// Returns true if a journal's end has lines of a later epoch: another process has the run.
pub(super) fn has_later_epoch(path: &std::path::Path, epoch: u64) -> bool {
    let search = || -> io::Result<bool> {
        let length = record_file::open_record(path, RecordKind::Journal)?.metadata()?.len();
        let mut reader =
            JournalReader::open_at_or_after(path, length.saturating_sub(SEARCHED_TAIL_BYTES))?;
        while let Ok(Some(record)) = reader.next_record() {
            if record.epoch > epoch {
                return Ok(true);
            }
        }
        Ok(false)
    };
    search().unwrap_or(false)
}
