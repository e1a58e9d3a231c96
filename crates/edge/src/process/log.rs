//! An output that goes to a file while it comes: its beginning as it is, and its end, with a line between that says how
//! much was left out. Memory and file are bounded, whatever a child writes.

use super::{Captured, drain_by};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, PipeReader, Read, Write as _};
use std::process::Stdio;
use std::sync::mpsc::Receiver;

/// How much is read at a time.
const CHUNK: usize = 64 << 10;

/// A file for both outputs of a child.
#[derive(Debug)]
pub struct Log {
    /// The file.
    pub file: File,
    /// How many bytes of the beginning are written to it.
    pub head: usize,
    /// How many bytes of the end are.
    pub tail: usize,
}

/// A log, and the pipe that it is written from.
pub(super) struct Logged {
    log: Log,
    pipe: PipeReader,
}

/// What a child's standard output and standard error become: pipes of their own, or one that leads to a log.
pub(super) fn outputs(log: Option<Log>) -> io::Result<(Option<Logged>, [Stdio; 2])> {
    let Some(log) = log else { return Ok((None, [Stdio::piped(), Stdio::piped()])) };
    let (pipe, writer) = io::pipe()?;
    let outputs = [writer.try_clone()?.into(), writer.into()];
    Ok((Some(Logged { log, pipe }), outputs))
}

impl Logged {
    /// Writes the log on a thread of its own. What is kept is its end.
    pub(super) fn start(self) -> io::Result<Receiver<io::Result<Captured>>> {
        let Self { log, pipe } = self;
        drain_by(move || write(pipe, log))
    }
}

/// A log that cannot be written, because the disk is full, stops nobody.
fn write(mut pipe: impl Read, mut log: Log) -> io::Result<Captured> {
    let (mut chunk, mut head, mut total) = (vec![0; CHUNK], log.head, 0_u64);
    let mut tail = VecDeque::with_capacity(log.tail + CHUNK);
    loop {
        let read = match pipe.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => chunk.get(..read).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        total += read.len() as u64;
        let now = read.get(..head.min(read.len())).unwrap_or_default();
        head -= now.len();
        if log.file.write_all(now).is_err() {
            head = 0;
        }
        tail.extend(read);
        let over = tail.len().saturating_sub(log.tail);
        tail.drain(..over);
    }
    let bytes: Vec<u8> = tail.into();
    let written = (log.head - head) as u64;
    let unwritten = total - written;
    let rest = bytes.len().min(usize::try_from(unwritten).unwrap_or(usize::MAX));
    let left_out = unwritten - rest as u64;
    let end = bytes.get(bytes.len() - rest..).unwrap_or_default();
    if left_out > 0 {
        let _ = write!(log.file, "\n[{left_out} bytes are left out here]\n");
    }
    let _ = log.file.write_all(end);
    let dropped = total - bytes.len() as u64;
    Ok(Captured { bytes, dropped })
}
