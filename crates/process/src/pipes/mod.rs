//! Serves the pipes of a child while it is waited for: no full pipe can block it. The kept output
//! is bounded. The pipes do not know how a child ends.

use super::CapturedOutput;
use super::log::LogWriter;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

#[cfg(unix)]
#[path = "unix.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;

pub(super) use system::ChildPipes;

/// Bytes read at a time, allocated for each child; most children write only a few lines.
const READ_CHUNK_BYTES: usize = 16 << 10;

/// The destination of an output.
enum OutputSink {
    /// Keeps the beginning.
    Beginning { most: usize, captured: CapturedOutput },
    /// Keeps the end: the last lines of an error output state the reason.
    End { most: usize, kept: VecDeque<u8>, dropped: u64 },
    /// Writes to a log file.
    Logged(Box<LogWriter>),
}

impl OutputSink {
    fn keep_beginning(most: usize) -> Self {
        Self::Beginning { most, captured: CapturedOutput::default() }
    }

    const fn keep_end(most: usize) -> Self {
        Self::End { most, kept: VecDeque::new(), dropped: 0 }
    }

    fn write_chunk(&mut self, read: &[u8]) {
        match self {
            Self::Beginning { most, captured } => {
                let room = *most - captured.bytes.len();
                let (kept, dropped) = read.split_at(room.min(read.len()));
                captured.bytes.extend_from_slice(kept);
                captured.dropped += dropped.len() as u64;
            }
            Self::End { most, kept, dropped } => {
                kept.extend(read);
                let over = kept.len().saturating_sub(*most);
                kept.drain(..over);
                *dropped += over as u64;
            }
            Self::Logged(writer) => writer.write_chunk(read),
        }
    }

    fn finish(self) -> CapturedOutput {
        match self {
            Self::Beginning { captured, .. } => captured,
            Self::End { kept, dropped, .. } => CapturedOutput { bytes: kept.into(), dropped },
            Self::Logged(writer) => writer.finish(),
        }
    }
}

/// Reads once. `None`: try again.
fn read_once<'a>(pipe: &mut impl io::Read, chunk: &'a mut [u8]) -> io::Result<Option<&'a [u8]>> {
    match pipe.read(chunk) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
        read => Ok(chunk.get(..read?)),
    }
}

/// Writes the input on a thread; write errors are ignored, as a child need not read all of it.
fn feed_in_thread<W: io::Write + Send + 'static>(
    pipe: Option<W>,
    input: Arc<[u8]>,
) -> io::Result<()> {
    if let Some(mut pipe) = pipe {
        std::thread::Builder::new().spawn(move || pipe.write_all(&input).is_ok())?;
    }
    Ok(())
}
