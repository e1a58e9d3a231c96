//! The pipes of a child on Windows: a thread for each.

use super::{CHUNK, Sink, feed, read};
use crate::log::Logged;
use crate::{Captured, Keep};
use std::io::{self, Read};
use std::process::Child;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

type Drained = Receiver<io::Result<Captured>>;

/// What a child reads, and what it writes.
pub(crate) struct Pipes {
    stdout: Drained,
    stderr: Drained,
}

impl Pipes {
    pub(crate) fn new(
        child: &mut Child,
        input: Arc<[u8]>,
        keep: Keep,
        log: Option<Logged>,
    ) -> io::Result<Self> {
        feed(child.stdin.take(), input)?;
        let stdout = match log {
            None => drain(child.stdout.take(), Sink::beginning(keep.stdout))?,
            Some(log) => drain(Some(log.pipe), Sink::Logged(log.writer.into()))?,
        };
        Ok(Self { stdout, stderr: drain(child.stderr.take(), Sink::last(keep.stderr))? })
    }

    /// Nothing would say it: whoever serves them looks.
    #[expect(clippy::unused_self, reason = "it is otherwise elsewhere")]
    pub(crate) fn watch(&mut self, _: &Child) {}

    /// Waits this long: the threads serve them.
    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "it is otherwise elsewhere")]
    pub(crate) fn serve(&mut self, most: Duration) -> io::Result<()> {
        thread::sleep(most);
        Ok(())
    }

    /// Waits until nobody holds the outputs open. `None`: too late.
    pub(crate) fn finish(self, due: Option<Instant>) -> io::Result<Option<[Captured; 2]>> {
        let Some(stdout) = receive(&self.stdout, due)? else { return Ok(None) };
        let Some(stderr) = receive(&self.stderr, due)? else { return Ok(None) };
        Ok(Some([stdout, stderr]))
    }
}

fn drain<R: Read + Send + 'static>(pipe: Option<R>, sink: Sink) -> io::Result<Drained> {
    let (sender, receiver) = mpsc::channel();
    // Nobody listens any more once the child was killed.
    thread::Builder::new().spawn(move || sender.send(capture(pipe, sink)).is_ok())?;
    Ok(receiver)
}

fn capture(pipe: Option<impl Read>, mut sink: Sink) -> io::Result<Captured> {
    let Some(mut pipe) = pipe else { return Ok(sink.end()) };
    let mut chunk = vec![0; CHUNK];
    loop {
        match read(&mut pipe, &mut chunk)? {
            None => {}
            Some([]) => return Ok(sink.end()),
            Some(read) => sink.take(read),
        }
    }
}

fn receive(captured: &Drained, due: Option<Instant>) -> io::Result<Option<Captured>> {
    let lost = || io::Error::other("the thread that read its output is gone");
    let Some(due) = due else { return captured.recv().map_err(|_| lost())?.map(Some) };
    match captured.recv_timeout(due.saturating_duration_since(Instant::now())) {
        Ok(captured) => captured.map(Some),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Err(lost()),
    }
}
