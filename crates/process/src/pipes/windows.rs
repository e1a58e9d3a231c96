//! Serves the pipes of a child on Windows, with a thread for each.

use super::{OutputSink, READ_CHUNK_BYTES, feed_in_thread, read_once};
use crate::log::LogPipe;
use crate::{CapturedOutput, OutputLimits};
use std::io::{self, Read};
use std::process::Child;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

type DrainedOutput = Receiver<io::Result<CapturedOutput>>;

/// The pipes of a child: its input and both outputs.
pub(crate) struct ChildPipes {
    stdout: DrainedOutput,
    stderr: DrainedOutput,
}

impl ChildPipes {
    pub(crate) fn new(
        child: &mut Child,
        input: Arc<[u8]>,
        keep: OutputLimits,
        log: Option<LogPipe>,
    ) -> io::Result<Self> {
        feed_in_thread(child.stdin.take(), input)?;
        let stdout = match log {
            None => drain_in_thread(child.stdout.take(), OutputSink::keep_beginning(keep.stdout))?,
            Some(log) => drain_in_thread(Some(log.pipe), OutputSink::Logged(log.writer.into()))?,
        };
        Ok(Self {
            stdout,
            stderr: drain_in_thread(child.stderr.take(), OutputSink::keep_end(keep.stderr))?,
        })
    }

    /// Does nothing: there is no handle to watch, and the caller polls for the end.
    #[expect(clippy::unused_self, reason = "it is otherwise elsewhere")]
    pub(crate) fn watch_exit(&mut self, _: &Child) {}

    /// Waits this long: the threads serve the pipes.
    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "it is otherwise elsewhere")]
    pub(crate) fn serve_for(&mut self, most: Duration) -> io::Result<()> {
        thread::sleep(most);
        Ok(())
    }

    /// Waits until no process holds the outputs open. `None`: too late.
    pub(crate) fn finish(self, due: Option<Instant>) -> io::Result<Option<[CapturedOutput; 2]>> {
        let Some(stdout) = receive_output(&self.stdout, due)? else { return Ok(None) };
        let Some(stderr) = receive_output(&self.stderr, due)? else { return Ok(None) };
        Ok(Some([stdout, stderr]))
    }
}

fn drain_in_thread<R: Read + Send + 'static>(
    pipe: Option<R>,
    sink: OutputSink,
) -> io::Result<DrainedOutput> {
    let (sender, receiver) = mpsc::channel();
    // The receiver is gone once the child was killed.
    thread::Builder::new().spawn(move || sender.send(capture_output(pipe, sink)).is_ok())?;
    Ok(receiver)
}

fn capture_output(pipe: Option<impl Read>, mut sink: OutputSink) -> io::Result<CapturedOutput> {
    let Some(mut pipe) = pipe else { return Ok(sink.finish()) };
    let mut chunk = vec![0; READ_CHUNK_BYTES];
    loop {
        match read_once(&mut pipe, &mut chunk)? {
            None => {}
            Some([]) => return Ok(sink.finish()),
            Some(read) => sink.write_chunk(read),
        }
    }
}

fn receive_output(
    captured: &DrainedOutput,
    due: Option<Instant>,
) -> io::Result<Option<CapturedOutput>> {
    let lost = || io::Error::other("the thread that read its output is gone");
    let Some(due) = due else { return captured.recv().map_err(|_| lost())?.map(Some) };
    match captured.recv_timeout(due.saturating_duration_since(Instant::now())) {
        Ok(captured) => captured.map(Some),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Err(lost()),
    }
}
