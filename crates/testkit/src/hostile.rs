//! Provides a program that resists termination, and finds its processes.
//!
//! It ignores SIGTERM and SIGHUP, and starts others that leave its group and its session, lose
//! their parents and keep its output open. Each can be found by a word among its arguments.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// A program for `python3 -c`, whose first argument is the word that all of its processes have, and
/// whose second is `wait` or `leave`: `wait` keeps the first process running. With the third
/// argument `bare`, some are started without any environment. It prints `ready` once all are
/// running.
pub const PROCESS_TREE_SCRIPT: &str = r#"
import os, signal, sys, time
word, stay, bare = sys.argv[1], sys.argv[2], sys.argv[3:] == ["bare"]
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
done_read, done_write = os.pipe()
SLEEP = "import signal, sys, time, os\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nos.write(int(sys.argv[2]), b'x')\nos.close(int(sys.argv[2]))\ntime.sleep(300)"
def sleep(empty):
    os.set_inheritable(done_write, True)
    environment = {} if empty else os.environ
    os.execve(sys.executable, [sys.executable, "-c", SLEEP, word, str(done_write)], environment)
def child(work):
    if os.fork() == 0:
        try:
            work()
        finally:
            os._exit(0)
def daemon(empty):
    os.setsid()
    child(lambda: sleep(empty))
plans = [lambda: sleep(False), lambda: (os.setsid(), sleep(False)), lambda: daemon(False)]
if bare:
    plans += [lambda: (os.setsid(), sleep(True)), lambda: daemon(True)]
for plan in plans:
    child(plan)
for _ in plans:
    os.read(done_read, 1)
print("ready", flush=True)
if stay == "wait":
    time.sleep(300)
"#;

/// Returns the running processes that have this word among their arguments.
#[must_use]
pub fn with_word(word: &str) -> Vec<u32> {
    having("cmdline", word)
}

/// Returns the processes that have this text in a file of their `/proc` folder.
fn having(file: &str, text: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has = |pid: &u32| {
        let texts = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        texts.split(|byte| *byte == 0).any(|found| found == text.as_bytes())
    };
    pids.filter(|pid| *pid != std::process::id()).filter(has).collect()
}

/// Returns the running processes that were started with this value of `TREEBEAM_MARK`.
#[must_use]
pub fn with_mark(mark: &Path) -> Vec<u32> {
    let variable = format!("TREEBEAM_MARK={}", mark.display());
    having("environ", &variable)
}

/// Returns the processes with this word that still run after two seconds; returns early if there
/// are none.
#[must_use]
pub fn survivors(word: &str) -> Vec<u32> {
    let begun = Instant::now();
    loop {
        let left = with_word(word);
        if left.is_empty() || begun.elapsed() >= Duration::from_secs(2) {
            return left;
        }
        thread::sleep(Duration::from_millis(20));
    }
}
