//! Ctrl-C, as the C library of Windows has it.

use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// There is nothing to wait for, so the flag is looked at this often.
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

/// There is no such signal.
#[expect(clippy::unnecessary_wraps, reason = "it is otherwise elsewhere")]
pub(super) fn survive_file_size_limit() -> io::Result<()> {
    Ok(())
}

/// Nobody asks a program to stop for a while.
pub(super) fn note_suspension(_asked: Arc<AtomicBool>) -> io::Result<()> {
    Ok(())
}

/// There are no jobs.
pub(super) fn is_job() -> bool {
    false
}

/// There is nobody else to be asked.
pub(super) fn suspend_group() -> io::Result<()> {
    Ok(())
}

/// A program cannot stop for a while.
pub(super) fn stop_process() -> io::Result<()> {
    Ok(())
}
