//! Starting and ending child processes on Unix: commands, signals, `/proc` and the reaper.

use super::children;
use super::detached::{ChildCount, ProcessUsage};
use super::process_tree::{TREE_MARKER_VARIABLE, TreeMarker};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, kill_process_group, waitid,
    waitpid,
};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// True if descendants whose parent is gone become children of this process.
static IS_REAPER: AtomicBool = AtomicBool::new(false);
/// True if every adopted process was left by the one child that runs.
static RUNS_ONE_CHILD: AtomicBool = AtomicBool::new(false);

/// The flag of the kernel's own threads.
const KERNEL_THREAD_FLAG: u64 = 0x0020_0000;
/// Bytes of a script's first line that the system reads.
const MAX_SCRIPT_LINE_BYTES: usize = 256;
/// More than the `stat` line of a process can have: about 50 numbers and a short name.
const MAX_STAT_LINE_BYTES: usize = 2048;
/// Number of reads, and the pause between them, for a process that has no environment yet.
const MAX_ENVIRONMENT_READS: u32 = 1000;
const ENVIRONMENT_READ_PAUSE: Duration = Duration::from_millis(1);

/// Builds a command for a program, without arguments. A bare name is looked up in the child's own
/// `PATH`: with a full path the system need not copy this process.
pub(super) fn new_command(program: &Path, variables: &[(OsString, OsString)]) -> Command {
    let found = find_program(program, variables);
    #[expect(clippy::disallowed_methods, reason = "this is the one door for processes")]
    let mut command = Command::new(found.as_deref().unwrap_or(program));
    command.arg0(program);
    command
}

/// Returns the path of a named program, if the system would certainly choose this file and start it
/// directly. A script without a `#!` line is left to the shell.
fn find_program(name: &Path, variables: &[(OsString, OsString)]) -> Option<PathBuf> {
    if name.as_os_str().as_bytes().contains(&b'/') {
        return None;
    }
    let (_, path) = variables.iter().rfind(|(variable, _)| variable == "PATH")?;
    for folder in std::env::split_paths(path) {
        let found = folder.join(name);
        if !folder.is_absolute() {
            return None;
        }
        if found.is_file() && access(&found, Access::EXEC_OK).is_ok() {
            return is_directly_executable(&found).then_some(found);
        }
    }
    None
}

fn is_directly_executable(program: &Path) -> bool {
    let mut first = [0; MAX_SCRIPT_LINE_BYTES];
    let read = File::open(program).and_then(|mut file| file.read(&mut first));
    let first = first.get(..read.unwrap_or_default()).unwrap_or_default();
    first.starts_with(b"\x7fELF")
        || parse_interpreter(first).is_some_and(|named| named.is_absolute() && named.exists())
}

/// Returns the interpreter of a script. The system skips a script whose interpreter is gone.
fn parse_interpreter(script: &[u8]) -> Option<&Path> {
    let line = script.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?.trim_ascii_start();
    let name = line.split(|byte| matches!(byte, b' ' | b'\t')).next()?;
    Some(Path::new(OsStr::from_bytes(name)))
}

pub(super) fn exit_signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}

pub(super) fn set_own_group(command: &mut Command) {
    command.process_group(0);
}

/// Asks a child and its group to end. git then removes its lock files.
pub(super) fn ask_group(leader: u32) {
    signal_group(leader, Signal::TERM);
}

pub(super) fn kill_group(leader: u32) {
    signal_group(leader, Signal::KILL);
}

/// Kills a child, its group, and those of its descendants that have left the group. A process whose
/// parent is gone is not found as a descendant, and stays.
pub(super) fn kill_tree(leader: u32) {
    let mut all = ProcessTable::read();
    all.keep_below(vec![leader]);
    kill_group(leader);
    all.0.iter().for_each(|process| send_signal(process.pid, Signal::KILL));
}

/// Waits until one of these processes has ended, and at most this long.
#[cfg(target_os = "linux")]
pub(super) fn wait_for_any(pids: &[u32], most: Duration) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{PidfdFlags, pidfd_open};
    let open = |pid: &u32| {
        let pid = Pid::from_raw(i32::try_from(*pid).ok()?)?;
        pidfd_open(pid, PidfdFlags::empty()).ok()
    };
    let open: Vec<_> = pids.iter().filter_map(open).collect();
    let mut watched: Vec<_> = open.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    let timeout = Timespec::try_from(most).ok();
    // A caller that is woken too early looks, and waits again.
    if timeout.is_none() || poll(&mut watched, timeout.as_ref()).is_err() {
        std::thread::sleep(most);
    }
}

/// Waits this long: this system does not report the end of a process earlier.
#[cfg(not(target_os = "linux"))]
pub(super) fn wait_for_any(_: &[u32], most: Duration) {
    std::thread::sleep(most);
}

pub(super) fn ask_all(pids: &[u32]) {
    for pid in pids {
        send_signal(*pid, Signal::TERM);
    }
}

/// Kills each of these processes, also one that is stopped.
pub(super) fn kill_all(pids: &[u32]) {
    for pid in pids {
        send_signal(*pid, Signal::KILL);
    }
}

fn send_signal(pid: u32, signal: Signal) {
    if let Some(pid) = as_pid(pid) {
        // The process may be gone already.
        let _ = kill_process(pid, signal);
    }
}

fn as_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// Returns true if a child has ended. The child keeps its process id until it is waited for.
pub(super) fn has_ended(child: &mut Child) -> io::Result<bool> {
    let Some(pid) = as_pid(child.id()) else { return Ok(true) };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    loop {
        match waitid(WaitId::Pid(pid), options) {
            Err(Errno::INTR) => {}
            ended => return Ok(ended?.is_some()),
        }
    }
}

/// Makes this process the parent of each descendant whose own parent is gone.
pub(super) fn become_reaper(children: ChildCount) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        IS_REAPER.store(true, Ordering::SeqCst);
        RUNS_ONE_CHILD.store(children == ChildCount::One, Ordering::SeqCst);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = children;
    Ok(())
}

/// Leaves the session and the terminal that this process was started in.
pub(super) fn lead_session() -> io::Result<()> {
    Ok(rustix::process::setsid().map(drop)?)
}

/// Returns the resources used by all children that were waited for, and by theirs.
pub(super) fn usage_of_children() -> Option<ProcessUsage> {
    use nix::sys::resource::{UsageWho, getrusage};
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?;
    let time = |time: nix::sys::time::TimeVal| {
        let (seconds, micros) = (time.tv_sec().try_into().ok()?, time.tv_usec().try_into().ok()?);
        Some(Duration::from_secs(seconds) + Duration::from_micros(micros))
    };
    // Linux counts kilobytes here, macOS bytes.
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    let peak_memory = u64::try_from(usage.max_rss()).ok()?.checked_mul(unit)?;
    Some(ProcessUsage { cpu: time(usage.user_time())? + time(usage.system_time())?, peak_memory })
}

/// Returns true if a child of this thread, which has ended, certainly left no process behind. Such
/// a process would have been adopted by the first thread, or by the thread whose child it called
/// its sibling. A list of children may lack entries if others leave while it is read: it proves
/// nothing unless the child is alone on it.
pub(super) fn has_left_nothing(leader: u32) -> bool {
    let is_alone = |children: io::Result<Vec<u32>>| {
        children.is_ok_and(|children| children.iter().all(|child| *child == leader))
    };
    IS_REAPER.load(Ordering::SeqCst)
        && is_alone(children_of(&first_thread()))
        && is_alone(children_of("thread-self"))
}

/// Returns the path of the first thread of this process below `/proc`.
fn first_thread() -> String {
    format!("self/task/{}", std::process::id())
}

/// Returns the children of a thread of this process.
fn children_of(thread: &str) -> io::Result<Vec<u32>> {
    let list = fs::read_to_string(format!("/proc/{thread}/children"))?;
    Ok(list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect())
}

/// Returns the live processes of a child's group, those with the mark, and their descendants; where
/// this process runs one child, all its adopted processes too. Reaps adopted processes that have
/// ended. A process older than this one was not started by a child of it.
pub(super) fn find_survivors(leader: Option<u32>, mark: &TreeMarker) -> Vec<u32> {
    let mut all = ProcessTable::read();
    let (own, of_one) = (std::process::id(), RUNS_ONE_CHILD.load(Ordering::SeqCst));
    let since = leader.and_then(|_| Some(ProcessStat::read(own)?.started)).unwrap_or(0);
    all.reap_ended();
    all.0.retain(|process| !process.ended && process.pid != own);
    let roots = all.0.iter().filter(|process| {
        Some(process.group) == leader
            || (of_one && process.parent == own)
            || (!process.of_kernel && process.started >= since && is_marked(process, mark))
    });
    let mut roots: Vec<u32> = roots.map(|process| process.pid).collect();
    roots.extend(leader);
    let found = roots.clone();
    all.keep_below(roots);
    let living = |pid: &u32| Some(*pid) != leader || !has_gone(*pid);
    let below = all.0.iter().map(|process| process.pid);
    let mut survivors: Vec<u32> = found.into_iter().filter(living).chain(below).collect();
    survivors.sort_unstable();
    survivors.dedup();
    survivors
}

/// Reaps adopted processes that have ended.
pub(super) fn reap_adopted() {
    reap_pids(children_of(&first_thread()).unwrap_or_default());
}

/// Reaps those of these children that were adopted and have ended, if this process is a reaper.
/// Children that were started here are waited for elsewhere.
fn reap_pids(children: Vec<u32>) {
    if !IS_REAPER.load(Ordering::SeqCst) {
        return;
    }
    for pid in children::ALL_CHILDREN.retain_unknown(children).into_iter().filter_map(as_pid) {
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

/// Returns true if a process was started with the mark, as far as it may be read. A process in the
/// middle of an exec shows no environment, or a part of one, and is read again.
fn is_marked(process: &ProcessStat, mark: &TreeMarker) -> bool {
    let mut whole = process.environment;
    for _ in 0..MAX_ENVIRONMENT_READS {
        let Ok(shown) = fs::read(format!("/proc/{}/environ", process.pid)) else { return false };
        if has_marker(&shown, mark) {
            return true;
        }
        if whole == Some(shown.len()) {
            return false;
        }
        std::thread::sleep(ENVIRONMENT_READ_PAUSE);
        whole = match ProcessStat::read(process.pid) {
            Some(process) if !process.ended => process.environment,
            _ => return false,
        };
    }
    false
}

fn has_marker(environment: &[u8], mark: &TreeMarker) -> bool {
    let value = |variable: &[u8]| {
        variable
            .strip_prefix(TREE_MARKER_VARIABLE.as_bytes())?
            .strip_prefix(b"=")
            .map(<[u8]>::to_owned)
    };
    let mut found = environment.split(|byte| *byte == 0).filter_map(value);
    found.any(|value| value == mark.0.as_bytes())
}

fn has_gone(pid: u32) -> bool {
    ProcessStat::read(pid).is_none_or(|process| process.ended)
}

/// A process, by its `/proc/<pid>/stat`.
struct ProcessStat {
    pid: u32,
    parent: u32,
    group: u32,
    /// True if the process waits to be reaped.
    ended: bool,
    /// True for a thread of the kernel, which has no environment.
    of_kernel: bool,
    /// Start time since the start of the machine; an exec does not change it.
    started: u64,
    /// Length of the environment, once the process has one.
    environment: Option<usize>,
}

impl ProcessStat {
    /// Reads the `stat` line of a process. After the name in brackets, which may hold anything,
    /// come state, parent, group, session, terminal, its group, flags; much later the start time,
    /// the address of the code (0 before there is an environment), begin and end of the
    /// environment.
    fn read(pid: u32) -> Option<Self> {
        // A single read returns the whole line if the buffer is long enough.
        let mut line = [0; MAX_STAT_LINE_BYTES];
        let length = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut line).ok()?;
        let line = String::from_utf8_lossy(line.get(..length)?);
        let mut fields = line.rsplit_once(')')?.1.split_whitespace();
        let ended = matches!(fields.next()?, "Z" | "X" | "x");
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let flags: u64 = fields.nth(3)?.parse().ok()?;
        let started = fields.nth(12)?.parse().ok()?;
        let code: u64 = fields.nth(3)?.parse().ok()?;
        let begin: usize = fields.nth(23)?.parse().ok()?;
        let end: usize = fields.next()?.parse().ok()?;
        let environment = (code != 0).then(|| end.saturating_sub(begin));
        let of_kernel = flags & KERNEL_THREAD_FLAG != 0;
        Some(Self { pid, parent, group, ended, of_kernel, started, environment })
    }
}

/// All processes, at one moment.
struct ProcessTable(Vec<ProcessStat>);

impl ProcessTable {
    fn read() -> Self {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pid = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
        Self(entries.filter_map(pid).filter_map(ProcessStat::read).collect())
    }

    /// Keeps the descendants of these processes.
    fn keep_below(&mut self, mut found: Vec<u32>) {
        let given = found.len();
        let mut next = 0;
        while let Some(&above) = found.get(next) {
            let below = self.0.iter().filter(|process| process.parent == above);
            let below: Vec<u32> =
                below.map(|process| process.pid).filter(|pid| !found.contains(pid)).collect();
            found.extend(below);
            next += 1;
        }
        let below = found.split_off(given);
        self.0.retain(|process| below.contains(&process.pid));
    }

    /// Reaps adopted processes that have ended.
    fn reap_ended(&self) {
        let own = std::process::id();
        let dead = self.0.iter().filter(|process| process.ended && process.parent == own);
        reap_pids(dead.map(|process| process.pid).collect());
    }
}

/// Signals a group; a group that is gone needs no signal.
fn signal_group(leader: u32, signal: Signal) {
    if let Some(group) = as_pid(leader) {
        let _ = kill_process_group(group, signal);
    }
}

/// Returns the bytes that a user may still write in the file system of a folder.
pub(super) fn free_space(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    found.f_bavail.checked_mul(found.f_frsize)
}
