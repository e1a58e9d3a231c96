//! The signals of Unix: interrupt, termination, hangup and the stop of a terminal.

use rustix::process::{Signal, getpgrp, getsid, kill_current_process_group};
use signal_hook::consts::signal::SIGXFSZ;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};
use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

/// Calls `asked` for each signal that asks the program to end.
pub(super) fn listen_for_interrupts(mut asked: impl FnMut() + Send + 'static) -> io::Result<()> {
    let hangup = is_signal_obeyed(SIGHUP).then_some(SIGHUP);
    let mut signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup))?;
    thread::Builder::new().spawn(move || signals.forever().for_each(|_| asked()))?;
    Ok(())
}

/// Catches `SIGXFSZ`, so that a write beyond the limit fails, as where the signal is ignored.
pub(super) fn survive_file_size_limit() -> io::Result<()> {
    flag::register(SIGXFSZ, Arc::default()).map(drop)
}

/// Sets the flag at each request to stop for a while.
pub(super) fn note_suspension(asked: Arc<AtomicBool>) -> io::Result<()> {
    if is_signal_obeyed(SIGTSTP) {
        flag::register(SIGTSTP, asked)?;
    }
    Ok(())
}

/// Returns true if a shell started the program as a job, not as the session's own group.
pub(super) fn is_job() -> bool {
    getsid(None).is_ok_and(|session| session != getpgrp())
}

/// Asks the whole job to stop for a while, this process too.
pub(super) fn suspend_group() -> io::Result<()> {
    Ok(kill_current_process_group(Signal::TSTP)?)
}

/// Stops this process until it is continued.
pub(super) fn stop_process() -> io::Result<()> {
    low_level::emulate_default_handler(SIGTSTP)
}

/// Returns true if a signal has any effect on this process.
fn is_signal_obeyed(signal: i32) -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|own| !is_signal_ignored(&own, signal))
}

/// Returns true if a process ignores a signal, by its `/proc/<pid>/status`. A process started by
/// `nohup` is to outlive its terminal; true where the mask cannot be read, so that the signal keeps
/// its default effect.
fn is_signal_ignored(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_none_or(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_known() {
        let check = |mask: &str, expected| {
            let status = format!("SigBlk:\t0000000000000000\nSigIgn:\t{mask}\nSigCgt:\t0\n");
            assert_eq!(is_signal_ignored(&status, SIGHUP), expected, "{mask}");
        };
        check("0000000000000000", false);
        check("0000000000001000", false);
        check("0000000000001001", true);
        check("odd", true);
        assert!(is_signal_ignored("", SIGHUP));
    }
}
