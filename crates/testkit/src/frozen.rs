//! Stops a program with all of its children, so that it writes nothing during an inspection.
//!
//! Stopped processes are killed in the end.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time for a process to stop, unless the machine hangs.
const STOP_TIMEOUT: Duration = Duration::from_mins(1);

/// Stopped processes, the first one first; killed on drop.
#[derive(Debug)]
pub struct Frozen(Vec<u32>);

impl Frozen {
    /// Stops a process, then its children, and so on. A child is stopped only after its parent has
    /// stopped: a parent waits while a child is being created.
    #[must_use]
    pub fn stop(pid: u32) -> Self {
        let mut stopped = Self(vec![pid]);
        let mut next = 0;
        while let Some(&pid) = stopped.0.get(next) {
            signal(pid, Signal::STOP);
            await_standstill(pid);
            stopped.0.extend(children(pid));
            next += 1;
        }
        stopped
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        for pid in &self.0 {
            signal(*pid, Signal::KILL);
        }
        let begun = Instant::now();
        while self.0.iter().any(|pid| !is_dead(*pid)) && begun.elapsed() < STOP_TIMEOUT {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The process may have ended.
fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

fn await_standstill(pid: u32) {
    let begun = Instant::now();
    while !states(pid).iter().all(|state| matches!(state, 'T' | 't' | 'Z' | 'X')) {
        assert!(begun.elapsed() < STOP_TIMEOUT, "process {pid} does not stop");
        thread::sleep(Duration::from_micros(200));
    }
}

fn is_dead(pid: u32) -> bool {
    states(pid).iter().all(|state| matches!(state, 'Z' | 'X'))
}

/// Returns the state of each thread of a process.
fn states(pid: u32) -> Vec<char> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let state = |entry: fs::DirEntry| Some(stat(&entry.path().join("stat"))?.0);
    threads.flatten().filter_map(state).collect()
}

fn children(parent: u32) -> Vec<u32> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let is_child = |pid: &u32| {
        let stat = stat(format!("/proc/{pid}/stat").as_ref());
        stat.is_some_and(|(_, above)| above == parent)
    };
    let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(is_child).collect()
}

/// Returns the state of a process or thread, and its parent.
fn stat(path: &std::path::Path) -> Option<(char, u32)> {
    let text = fs::read_to_string(path).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}
