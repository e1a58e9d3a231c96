//! Requests to stop for a while (Ctrl-Z, `kill -TSTP`), obeyed at a moment that the program
//! chooses. A program must first restore a terminal that it changed. Systems without job control
//! never send one.

use super::system;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag for requests to stop for a while; only [`SuspendRequest::suspend_process`] obeys them.
#[derive(Debug)]
pub struct SuspendRequest {
    asked: Arc<AtomicBool>,
}

impl SuspendRequest {
    /// Starts to record requests to stop; the program no longer stops by itself then.
    ///
    /// # Errors
    /// When the handler cannot be installed.
    pub fn listen() -> io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        system::note_suspension(Arc::clone(&asked))?;
        Ok(Self { asked })
    }

    /// Returns true if a request to stop has come.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    /// Returns true if a shell controls this process as a job, and could let it go on.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        system::is_job()
    }

    /// Stops this process, and returns when it is continued.
    ///
    /// # Errors
    /// When the system does not stop it.
    pub fn suspend_process(&self) -> io::Result<()> {
        self.asked.store(false, Ordering::SeqCst);
        system::stop_process()
    }

    /// Stops all processes of this shell job, and returns when this process is continued.
    ///
    /// # Errors
    /// When the system does not stop them.
    pub fn suspend_job(&self) -> io::Result<()> {
        system::suspend_group()?;
        self.suspend_process()
    }
}
