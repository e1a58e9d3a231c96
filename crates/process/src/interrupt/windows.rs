//! Ctrl-C, by the C library of Windows.

use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Interval at which the Ctrl-C flag is polled: there is nothing to wait for.
const CTRL_C_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Calls `asked` for each Ctrl-C.
pub(super) fn listen_for_interrupts(mut asked: impl FnMut() + Send + 'static) -> io::Result<()> {
    let pressed = Arc::new(AtomicBool::new(false));
    flag::register(SIGINT, Arc::clone(&pressed))?;
    thread::Builder::new().spawn(move || {
        loop {
            if pressed.swap(false, Ordering::SeqCst) {
                asked();
            }
            thread::sleep(CTRL_C_POLL_INTERVAL);
        }
    })?;
    Ok(())
}

/// Does nothing: Windows has no signal for files that grow too large.
#[expect(clippy::unnecessary_wraps, reason = "it is otherwise elsewhere")]
pub(super) fn survive_file_size_limit() -> io::Result<()> {
    Ok(())
}

/// Does nothing: Windows has no requests to stop for a while.
pub(super) fn note_suspension(_asked: Arc<AtomicBool>) -> io::Result<()> {
    Ok(())
}

/// Returns false: Windows has no shell jobs.
pub(super) fn is_job() -> bool {
    false
}

/// Does nothing: there is no group of a shell job.
pub(super) fn suspend_group() -> io::Result<()> {
    Ok(())
}

/// Does nothing: a program cannot stop for a while on Windows.
pub(super) fn stop_process() -> io::Result<()> {
    Ok(())
}
