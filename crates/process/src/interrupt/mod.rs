//! Hears when the program is asked to end: Ctrl-C at the terminal, and on Unix also the signals of `kill`, of a machine
//! that goes down and of a terminal that is closed. What is to be done then is for the caller to say. [`SuspendRequest`] is about
//! a stop for a while.

mod suspension;

pub use suspension::SuspendRequest;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[cfg(unix)]
#[path = "unix.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;

/// `timeout` signals a child and then its group, a terminal that is closed does likewise: that is one request.
const ECHO_INTERVAL: Duration = Duration::from_millis(50);

/// How long after a child the program itself may be asked: both are told at once, and neither is always the first.
const SIGNAL_DELAY_LIMIT: Duration = Duration::from_secs(1);
const SIGNAL_POLL_INTERVAL: Duration = Duration::from_millis(5);

static IS_LISTENING: AtomicBool = AtomicBool::new(false);
static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Whether somebody has asked the program to end, or does so within a moment. Waits that long, if anybody listens.
pub(crate) fn is_interrupted_soon() -> bool {
    let begun = Instant::now();
    while IS_LISTENING.load(Ordering::SeqCst) && !IS_INTERRUPTED.load(Ordering::SeqCst) {
        if begun.elapsed() >= SIGNAL_DELAY_LIMIT {
            break;
        }
        thread::sleep(SIGNAL_POLL_INTERVAL);
    }
    IS_INTERRUPTED.load(Ordering::SeqCst)
}

/// Lets a write fail that would make a file larger than this process may, instead of ending the process. Programs that are
/// started from here are ended as they would be otherwise.
///
/// # Errors
/// When the system does not let it.
pub fn survive_file_size_limit() -> io::Result<()> {
    system::survive_file_size_limit()
}

/// From now on calls `asked` at each request, on a thread of its own. The program no longer ends by itself then.
///
/// # Errors
/// When the system lets nobody listen.
pub fn listen_for_interrupts(mut asked: impl FnMut() + Send + 'static) -> io::Result<()> {
    let mut last: Option<Instant> = None;
    IS_LISTENING.store(true, Ordering::SeqCst);
    system::listen_for_interrupts(move || {
        IS_INTERRUPTED.store(true, Ordering::SeqCst);
        if last.is_none_or(|last| last.elapsed() >= ECHO_INTERVAL) {
            last = Some(Instant::now());
            asked();
        }
    })
}
