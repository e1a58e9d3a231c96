//! Writes a child's output to a file as it comes: its beginning, and at the end its last bytes. A
//! line between them says how much was left out. Memory and file are bounded.

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
    /// Number of bytes of the beginning that are written.
    pub head: usize,
    /// Number of bytes of the end that are written.
    pub tail: usize,
}

/// A log, and the pipe that it is written from.
pub(super) struct LogPipe {
    pub(super) writer: LogWriter,
    pub(super) pipe: PipeReader,
}

/// Opens a child's two outputs: a pipe for each, or one shared pipe that leads to a log.
pub(super) fn open_outputs(log: Option<ChildLog>) -> io::Result<(Option<LogPipe>, [Stdio; 2])> {
    let Some(log) = log else { return Ok((None, [Stdio::piped(), Stdio::piped()])) };
    let (pipe, writer) = io::pipe()?;
    let outputs = [writer.try_clone()?.into(), writer.into()];
    Ok((Some(LogPipe { writer: LogWriter::new(log), pipe }), outputs))
}

/// A log that is being written. A failing write, as on a full disk, stops nothing.
pub(super) struct LogWriter {
    log: ChildLog,
    /// Bytes of the beginning that are still to come.
    head: usize,
    /// Bytes that have been written to the file.
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

    /// Writes the end of the output to the file, and returns it.
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
