//! Hears when the program is asked to end: Ctrl-C at the terminal, and on Unix also the signals of `kill`, of a machine
//! that goes down and of a terminal that is closed. What is to be done then is for the caller to say. [`Suspension`] is about
//! a stop for a while.

mod suspension;

pub use suspension::Suspension;

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
const ECHO: Duration = Duration::from_millis(50);

/// How long after a child the program itself may be asked: both are told at once, and neither is always the first.
const SOON: Duration = Duration::from_secs(1);
const GLANCE: Duration = Duration::from_millis(5);

static LISTENING: AtomicBool = AtomicBool::new(false);
static HEARD: AtomicBool = AtomicBool::new(false);

/// Whether somebody has asked the program to end, or does so within a moment. Waits that long, if anybody listens.
pub(crate) fn is_heard_soon() -> bool {
    let begun = Instant::now();
    while LISTENING.load(Ordering::SeqCst) && !HEARD.load(Ordering::SeqCst) {
        if begun.elapsed() >= SOON {
            break;
        }
        thread::sleep(GLANCE);
    }
    HEARD.load(Ordering::SeqCst)
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
pub fn listen(mut asked: impl FnMut() + Send + 'static) -> io::Result<()> {
    let mut last: Option<Instant> = None;
    LISTENING.store(true, Ordering::SeqCst);
    system::listen(move || {
        HEARD.store(true, Ordering::SeqCst);
        if last.is_none_or(|last| last.elapsed() >= ECHO) {
            last = Some(Instant::now());
            asked();
        }
    })
}
