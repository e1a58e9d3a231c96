//! A stop for a while, as Ctrl-Z and `kill -TSTP` ask for, at a moment that the program chooses itself: whoever has changed the
//! terminal has to give it back first. Where the system knows no such thing, nobody ever asks.

use super::system;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Notes requests to stop for a while; they are obeyed by [`SuspendRequest::suspend_process`] alone.
#[derive(Debug)]
pub struct SuspendRequest {
    asked: Arc<AtomicBool>,
}

impl SuspendRequest {
    /// From now on the program no longer stops by itself.
    ///
    /// # Errors
    /// When the system lets nobody listen.
    pub fn listen() -> io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        system::note_suspension(Arc::clone(&asked))?;
        Ok(Self { asked })
    }

    /// Whether somebody has asked for it.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    /// Whether there is a shell that would notice, and could let the program go on.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        system::is_job()
    }

    /// Stops this process, and returns when it is to go on.
    ///
    /// # Errors
    /// When the system does not stop it.
    pub fn suspend_process(&self) -> io::Result<()> {
        self.asked.store(false, Ordering::SeqCst);
        system::stop_process()
    }

    /// The same for all that the shell started together with it.
    ///
    /// # Errors
    /// When the system does not stop them.
    pub fn suspend_job(&self) -> io::Result<()> {
        system::suspend_group()?;
        self.suspend_process()
    }
}
