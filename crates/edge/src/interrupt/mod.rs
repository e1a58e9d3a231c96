//! Hears when the program is asked to end: Ctrl-C at the terminal, and on Unix also the signals of `kill`, of a machine
//! that goes down and of a terminal that is closed. What is to be done then is for the caller to say.

use std::io;
use std::time::{Duration, Instant};

#[cfg(unix)]
#[path = "unix.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;

/// `timeout` signals a child and then its group, a terminal that is closed does likewise: that is one request.
const ECHO: Duration = Duration::from_millis(50);

/// From now on calls `asked` at each request, on a thread of its own. The program no longer ends by itself then.
///
/// # Errors
/// When the system lets nobody listen.
pub fn listen(mut asked: impl FnMut() + Send + 'static) -> io::Result<()> {
    let mut last: Option<Instant> = None;
    system::listen(move || {
        if last.is_none_or(|last| last.elapsed() >= ECHO) {
            last = Some(Instant::now());
            asked();
        }
    })
}
