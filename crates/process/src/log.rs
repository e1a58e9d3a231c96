//! An output that goes to a file while it comes: its beginning as it is, and its end, with a line between that says how
//! much was left out. Memory and file are bounded, whatever a child writes.

use super::CapturedOutput;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, PipeReader, Write as _};
use std::process::Stdio;

/// A file for both outputs of a child.
#[derive(Debug)]
pub struct ChildLog {
    /// The file.
    pub file: File,
    /// How many bytes of the beginning are written to it.
    pub head: usize,
    /// How many bytes of the end are.
    pub tail: usize,
}

/// A log, and the pipe that it is written from.
pub(super) struct LogPipe {
    pub(super) writer: LogWriter,
    pub(super) pipe: PipeReader,
}

/// What a child's standard output and standard error become: pipes of their own, or one that leads to a log.
pub(super) fn open_outputs(log: Option<ChildLog>) -> io::Result<(Option<LogPipe>, [Stdio; 2])> {
    let Some(log) = log else { return Ok((None, [Stdio::piped(), Stdio::piped()])) };
    let (pipe, writer) = io::pipe()?;
    let outputs = [writer.try_clone()?.into(), writer.into()];
    Ok((Some(LogPipe { writer: LogWriter::new(log), pipe }), outputs))
}

/// A log that is being written. One that cannot be, because the disk is full, stops nobody.
pub(super) struct LogWriter {
    log: ChildLog,
    /// How much of the beginning is still to come.
    head: usize,
    /// How much of it has been written.
    written: u64,
    tail: VecDeque<u8>,
    total: u64,
}

impl LogWriter {
    fn new(log: ChildLog) -> Self {
        Self { head: log.head, log, written: 0, tail: VecDeque::new(), total: 0 }
    }

    pub(super) fn write_chunk(&mut self, read: &[u8]) {
        self.total += read.len() as u64;
        let now = read.get(..self.head.min(read.len())).unwrap_or_default();
        self.head -= now.len();
        match self.log.file.write_all(now) {
            Ok(()) => self.written += now.len() as u64,
            Err(_) => self.head = 0,
        }
        self.tail.extend(read);
        let over = self.tail.len().saturating_sub(self.log.tail);
        self.tail.drain(..over);
    }

    /// Writes the end. What is kept is that.
    pub(super) fn finish(mut self) -> CapturedOutput {
        let bytes: Vec<u8> = self.tail.into();
        let unwritten = self.total - self.written;
        let rest = bytes.len().min(usize::try_from(unwritten).unwrap_or(usize::MAX));
        let left_out = unwritten - rest as u64;
        let end = bytes.get(bytes.len() - rest..).unwrap_or_default();
        if left_out > 0 {
            let _ = write!(self.log.file, "\n[{left_out} bytes are left out here]\n");
        }
        let _ = self.log.file.write_all(end);
        let dropped = self.total - bytes.len() as u64;
        CapturedOutput { bytes, dropped }
    }
}
