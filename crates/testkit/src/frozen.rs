//! A program that is stopped with all that it has started, so that nothing of it writes while somebody looks. What is
//! stopped is killed in the end.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// A process that is told to stop does so within this time, unless the machine hangs.
const PATIENCE: Duration = Duration::from_mins(1);

/// Processes that were stopped, the first one first. They are killed when this is dropped.
#[derive(Debug)]
pub struct Frozen(Vec<u32>);

impl Frozen {
    /// Stops a process, then its children, and so on. A child is stopped only when its parent stands still: one that is
    /// just being born keeps its parent waiting.
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
        while self.0.iter().any(|pid| !is_dead(*pid)) && begun.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// One that has ended by now needs no signal.
fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

fn await_standstill(pid: u32) {
    let begun = Instant::now();
    while !states(pid).iter().all(|state| matches!(state, 'T' | 't' | 'Z' | 'X')) {
        assert!(begun.elapsed() < PATIENCE, "process {pid} does not stop");
        thread::sleep(Duration::from_micros(200));
    }
}

fn is_dead(pid: u32) -> bool {
    states(pid).iter().all(|state| matches!(state, 'Z' | 'X'))
}

/// What each thread of a process is doing.
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

/// The state of a process or thread, and its parent.
fn stat(path: &std::path::Path) -> Option<(char, u32)> {
    let text = fs::read_to_string(path).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}
