//! Requests to end the program: Ctrl-C, and on Unix also the signals of `kill`, shutdown and
//! hangup. The reaction is the caller's. [`SuspendRequest`] handles requests to stop for a while.

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

/// Requests within this time count as one: `timeout` or a closed terminal signals more than once.
const ECHO_INTERVAL: Duration = Duration::from_millis(50);

/// Longest lead of a child's interrupt over the program's: both come at once, in no fixed order.
const SIGNAL_DELAY_LIMIT: Duration = Duration::from_secs(1);
const SIGNAL_POLL_INTERVAL: Duration = Duration::from_millis(5);

static IS_LISTENING: AtomicBool = AtomicBool::new(false);
static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Returns true if the program was asked to end, or is within a moment. Waits for that moment only
/// while [`listen_for_interrupts`] is active.
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

/// Makes a write fail that exceeds the process's limit on file sizes, instead of ending the
/// process. Child programs keep the default behaviour.
///
/// # Errors
/// When the system refuses.
pub fn survive_file_size_limit() -> io::Result<()> {
    system::survive_file_size_limit()
}

/// Calls `asked` at each request, on a thread of its own; the program no longer ends by itself.
///
/// # Errors
/// When the handler cannot be installed.
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
