//! An asynchronous runtime on one thread of its own. That thread is started by the standard
//! library, which returns an error where the system allows no more threads; the workers of tokio's
//! multi-threaded runtime panic there.

use std::io;
use std::thread::{self, JoinHandle};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A runtime and the thread that drives it, until it is dropped.
#[derive(Debug)]
pub struct RuntimeThread {
    handle: Handle,
    /// Dropping it ends the thread.
    keep_alive: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl RuntimeThread {
    /// Starts a runtime.
    ///
    /// # Errors
    /// When the system allows no further thread, or the runtime cannot be built.
    pub fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (keep_alive, ended) = oneshot::channel();
        let thread = thread::Builder::new().name("runtime".to_owned());
        let thread = thread.spawn(move || {
            // The sender sends nothing: an error says that it was dropped.
            drop(runtime.block_on(ended));
        })?;
        Ok(Self { handle, keep_alive: Some(keep_alive), thread: Some(thread) })
    }

    /// Spawns tasks on the runtime, or blocks on a future of the caller's.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for RuntimeThread {
    fn drop(&mut self) {
        drop(self.keep_alive.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Does what blocks on a thread of its own and waits for the result; none where it panicked.
///
/// # Errors
/// When the system allows no further thread.
pub async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Option<T>> {
    let (sender, result) = oneshot::channel();
    thread::Builder::new().spawn(move || drop(sender.send(work())))?;
    Ok(result.await.ok())
}
