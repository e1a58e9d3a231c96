//! Signals, as Unix has them: interrupt, termination and hangup.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs;
use std::io;
use std::thread;

/// Calls `asked` for each signal.
pub(super) fn listen(mut asked: impl FnMut() + Send + 'static) -> io::Result<()> {
    let hangup = fs::read_to_string("/proc/self/status").is_ok_and(|own| !ignores(&own, SIGHUP));
    let mut signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup.then_some(SIGHUP)))?;
    thread::Builder::new().spawn(move || signals.forever().for_each(|_| asked()))?;
    Ok(())
}

/// Whether a process ignores a signal, by its `/proc/<pid>/status`. One that was started by `nohup` is to outlive its
/// terminal; where that cannot be known, a hangup does what it always does.
fn ignores(status: &str, signal: i32) -> bool {
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
            assert_eq!(ignores(&status, SIGHUP), expected, "{mask}");
        };
        check("0000000000000000", false);
        check("0000000000001000", false);
        check("0000000000001001", true);
        check("odd", true);
        assert!(ignores("", SIGHUP));
    }
}
