//! Serves the pipes of a child on Unix by `poll`, on the thread that waits for the child.

use super::{OutputSink, READ_CHUNK_BYTES, feed_in_thread, read_once};
use crate::log::LogPipe;
use crate::{CapturedOutput, OutputLimits};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, ChildStdin};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The pipes of a child: its input and both outputs.
pub(crate) struct ChildPipes {
    input: FedInput,
    stdout: DrainedOutput,
    stderr: DrainedOutput,
    /// Handle that is readable after the watched child's end; `None` where the system has none.
    end: Option<OwnedFd>,
    chunk: Vec<u8>,
}

impl ChildPipes {
    pub(crate) fn new(
        child: &mut Child,
        input: Arc<[u8]>,
        keep: OutputLimits,
        log: Option<LogPipe>,
    ) -> io::Result<Self> {
        let pipe = child.stdout.take().map(OwnedFd::from);
        let stdout = match log {
            None => DrainedOutput::new(pipe, OutputSink::keep_beginning(keep.stdout)),
            Some(log) => {
                DrainedOutput::new(Some(log.pipe.into()), OutputSink::Logged(log.writer.into()))
            }
        };
        Ok(Self {
            input: FedInput::new(child.stdin.take(), input)?,
            stdout,
            stderr: DrainedOutput::new(
                child.stderr.take().map(OwnedFd::from),
                OutputSink::keep_end(keep.stderr),
            ),
            end: None,
            chunk: vec![0; READ_CHUNK_BYTES],
        })
    }

    /// Starts to watch for the end of the child.
    pub(crate) fn watch_exit(&mut self, child: &Child) {
        self.end = exit_handle(child);
    }

    /// Serves the pipes until the watched child has ended, and at most this long.
    pub(crate) fn serve_for(&mut self, most: Duration) -> io::Result<()> {
        let due = Instant::now() + most;
        while let Some([fed, out, err, ended]) = self.poll_ready(Some(due))? {
            self.serve_ready([fed, out, err])?;
            if ended {
                self.end = None;
                break;
            }
        }
        Ok(())
    }

    /// Serves the pipes until no process holds the outputs open. `None`: too late.
    pub(crate) fn finish(
        mut self,
        due: Option<Instant>,
    ) -> io::Result<Option<[CapturedOutput; 2]>> {
        self.end = None;
        while self.stdout.pipe.is_some() || self.stderr.pipe.is_some() {
            let Some([fed, out, err, _]) = self.poll_ready(due)? else { return Ok(None) };
            self.serve_ready([fed, out, err])?;
        }
        self.input.feed_rest()?;
        Ok(Some([self.stdout.sink.finish(), self.stderr.sink.finish()]))
    }

    fn serve_ready(&mut self, [fed, out, err]: [bool; 3]) -> io::Result<()> {
        if fed {
            self.input.write();
        }
        if out {
            self.stdout.read(&mut self.chunk)?;
        }
        if err {
            self.stderr.read(&mut self.chunk)?;
        }
        Ok(())
    }

    /// Waits until a pipe is ready or the child has ended, and returns which. `None`: too late.
    fn poll_ready(&self, due: Option<Instant>) -> io::Result<Option<[bool; 4]>> {
        let end = self.end.as_ref().map(|end| PollFd::new(end, PollFlags::IN));
        let watched = [self.input.poll_fd(), self.stdout.poll_fd(), self.stderr.poll_fd(), end];
        let mut open: Vec<PollFd<'_>> = watched.iter().flatten().cloned().collect();
        let left = due.map(|due| due.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(None);
        }
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut open, timeout.as_ref()) {
            Err(Errno::INTR) => return Ok(Some([false; 4])),
            Ok(0) => return Ok(None),
            polled => polled?,
        };
        let mut events = open.iter().map(|one| !one.revents().is_empty());
        Ok(Some(watched.map(|one| one.is_some() && events.next().unwrap_or(false))))
    }
}

/// Returns a handle that is readable when a child has ended.
#[cfg(target_os = "linux")]
fn exit_handle(child: &Child) -> Option<OwnedFd> {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    let pid = Pid::from_raw(i32::try_from(child.id()).ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// Returns `None`: this system has no such handle.
#[cfg(not(target_os = "linux"))]
fn exit_handle(_: &Child) -> Option<OwnedFd> {
    None
}

/// The input of a child, and how much of it was written.
struct FedInput {
    pipe: Option<ChildStdin>,
    bytes: Arc<[u8]>,
    written: usize,
}

impl FedInput {
    fn new(pipe: Option<ChildStdin>, bytes: Arc<[u8]>) -> io::Result<Self> {
        let mut fed = Self { pipe, bytes, written: 0 };
        if let Some(pipe) = &fed.pipe {
            fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
            fed.write();
        }
        Ok(fed)
    }

    fn poll_fd(&self) -> Option<PollFd<'_>> {
        self.pipe.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::OUT))
    }

    /// Writes as much as has room; errors are ignored, as a child need not read all of it.
    fn write(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        while let Some(rest @ [_, ..]) = self.bytes.get(self.written..) {
            match pipe.write(rest) {
                Ok(written) => self.written += written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => break,
            }
        }
        self.pipe = None;
    }

    /// Writes the rest on a thread: a child that has closed both outputs may still read.
    fn feed_rest(mut self) -> io::Result<()> {
        let Some(pipe) = self.pipe.take() else { return Ok(()) };
        fcntl_setfl(&pipe, fcntl_getfl(&pipe)? - OFlags::NONBLOCK)?;
        feed_in_thread(Some(pipe), self.bytes.get(self.written..).unwrap_or_default().into())
    }
}

/// An output, until its end.
struct DrainedOutput {
    pipe: Option<File>,
    sink: OutputSink,
}

impl DrainedOutput {
    fn new(pipe: Option<OwnedFd>, sink: OutputSink) -> Self {
        Self { pipe: pipe.map(File::from), sink }
    }

    fn poll_fd(&self) -> Option<PollFd<'_>> {
        self.pipe.as_ref().map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN))
    }

    /// Reads the bytes that are there.
    fn read(&mut self, chunk: &mut [u8]) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        let Some(read) = read_once(pipe, chunk)? else { return Ok(()) };
        if read.is_empty() {
            self.pipe = None;
        }
        self.sink.write_chunk(read);
        Ok(())
    }
}
