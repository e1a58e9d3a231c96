//! Reads clocks and memory figures of the system, and computes medians.

use crate::{Outcome, must};
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Flag with which the bench starts itself for a measurement in a fresh process.
pub(crate) const CHILD_FLAG: &str = "--child";

/// Returns the processor time of this thread.
pub(crate) fn thread_time() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|n| n.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

/// Returns the processor time of all threads of this process.
pub(crate) fn process_time() -> Outcome<Duration> {
    used(&getrusage(UsageWho::RUSAGE_SELF)?)
}

fn used(usage: &Usage) -> Outcome<Duration> {
    let micros = (usage.user_time() + usage.system_time()).num_microseconds();
    Ok(Duration::from_micros(micros.try_into()?))
}

/// Time of a piece of work, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkTime {
    pub(crate) processor: f64,
    pub(crate) wall: f64,
}

/// Measures a command from its start to its end, with its output discarded.
pub(crate) fn whole(command: &mut Command) -> Outcome<WorkTime> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let before = used(&getrusage(UsageWho::RUSAGE_CHILDREN)?)?;
    let begun = Instant::now();
    must(command)?;
    let wall = begun.elapsed().as_secs_f64();
    let after = used(&getrusage(UsageWho::RUSAGE_CHILDREN)?)?;
    Ok(WorkTime { processor: after.saturating_sub(before).as_secs_f64(), wall })
}

/// Returns the processor time of this process and the children that it has waited for, in clock
/// ticks.
pub(crate) fn ticks() -> u32 {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let times = after_name.split_whitespace().skip(11).take(4);
    times.filter_map(|time| time.parse::<u32>().ok()).sum()
}

/// Returns the memory of a process in KiB, named `self` or by its number.
pub(crate) fn memory(process: &str) -> Outcome<u32> {
    status(process, "VmRSS:")
}

/// Returns the peak memory of a process in KiB.
pub(crate) fn most_memory(process: &str) -> Outcome<u32> {
    status(process, "VmHWM:")
}

fn status(process: &str, name: &str) -> Outcome<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let memory = status.lines().find_map(|line| line.strip_prefix(name));
    let memory = memory.and_then(|line| line.split_whitespace().next());
    Ok(memory.ok_or("no memory in `status`")?.parse()?)
}

/// Returns the peak memory of this process in KiB.
pub(crate) fn peak_memory() -> u32 {
    most_memory("self").unwrap_or(0)
}

/// Runs a task in a fresh process, and returns its peak memory in KiB as reported by itself.
pub(crate) fn peak_of(task: &str, folder: &Path) -> Outcome<u32> {
    let output =
        Command::new(std::env::current_exe()?).args([CHILD_FLAG, task]).arg(folder).output()?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let why = || format!("{task}: {}", String::from_utf8_lossy(&output.stderr));
    said.parse().map_err(|_| why().into())
}

/// Creates a folder in memory where the system has one: fsync costs nothing there, and the memory
/// is not this process's.
pub(crate) fn in_memory() -> Outcome<TempDir> {
    let memory = PathBuf::from("/dev/shm");
    let made = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
    Ok(made?)
}

/// Creates a temporary folder, which is assumed to be on a disk.
pub(crate) fn on_disk() -> Outcome<TempDir> {
    Ok(TempDir::new()?)
}

pub(crate) fn median(figures: &[f64]) -> f64 {
    let mut figures = figures.to_vec();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Formats the median and the range of figures.
pub(crate) fn spread(figures: &[f64]) -> String {
    let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
    let most = figures.iter().copied().fold(0.0, f64::max);
    format!("{:.2} ({least:.2} to {most:.2})", median(figures))
}

/// Formats the median and the range of the middle half of figures.
pub(crate) fn middle_half(figures: &[f64]) -> String {
    let mut figures = figures.to_vec();
    figures.sort_by(f64::total_cmp);
    let at =
        |quarters: usize| figures.get(figures.len() * quarters / 4).copied().unwrap_or(f64::NAN);
    format!("{:.2} ({:.2} to {:.2})", at(2), at(1), at(3))
}

/// Converts a count to a divisor; no count here comes near the limit.
pub(crate) fn number(count: impl TryInto<u32>) -> f64 {
    f64::from(count.try_into().unwrap_or(u32::MAX))
}
