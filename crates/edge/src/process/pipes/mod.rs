//! What a child reads and writes, served by whoever waits for the child: no full pipe can stop it, and what it writes is
//! bounded. It does not know how a child ends.

use super::Captured;
use super::log::Writer;
use std::io;
use std::sync::Arc;

#[cfg(unix)]
#[path = "unix.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;

pub(super) use system::Pipes;

/// How much of an output is read at a time. Most children write a few lines: more room would have to be made for each of them.
const CHUNK: usize = 16 << 10;

/// Where an output goes.
enum Sink {
    /// Its beginning is kept.
    Kept { most: usize, captured: Captured },
    /// To a file.
    Logged(Box<Writer>),
}

impl Sink {
    fn kept(most: usize) -> Self {
        Self::Kept { most, captured: Captured::default() }
    }

    fn take(&mut self, read: &[u8]) {
        match self {
            Self::Kept { most, captured } => {
                let room = *most - captured.bytes.len();
                let (kept, dropped) = read.split_at(room.min(read.len()));
                captured.bytes.extend_from_slice(kept);
                captured.dropped += dropped.len() as u64;
            }
            Self::Logged(writer) => writer.take(read),
        }
    }

    fn end(self) -> Captured {
        match self {
            Self::Kept { captured, .. } => captured,
            Self::Logged(writer) => writer.end(),
        }
    }
}

/// Reads once. `None`: try again.
fn read<'a>(pipe: &mut impl io::Read, chunk: &'a mut [u8]) -> io::Result<Option<&'a [u8]>> {
    match pipe.read(chunk) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
        read => Ok(chunk.get(..read?)),
    }
}

/// A child may end without reading all of its input: that is its own affair.
fn feed<W: io::Write + Send + 'static>(pipe: Option<W>, input: Arc<[u8]>) -> io::Result<()> {
    if let Some(mut pipe) = pipe {
        std::thread::Builder::new().spawn(move || pipe.write_all(&input).is_ok())?;
    }
    Ok(())
}
