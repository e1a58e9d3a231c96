//! Finds what the program must not leave behind: temporary files and processes. Removes nothing.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time that a git may outlive its parent.
const GIT_END_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the temporary files of a run, which were to be renamed.
#[must_use]
pub fn strays(run: &Path) -> Vec<String> {
    strays_at(run, 0)
}

fn strays_at(folder: &Path, depth: u32) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let entry = entry.expect("an entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        let submission = depth > 1 && name.starts_with('s');
        if [".link", ".part"].iter().any(|end| name.ends_with(end)) || name.starts_with(".new-") {
            found.push(entry.path().display().to_string());
        } else if entry.file_type().expect("a kind").is_dir() && !submission {
            found.extend(strays_at(&entry.path(), depth + 1));
        }
    }
    found
}

/// Asserts that no process works in the folder or names it, or will not for long.
#[track_caller]
pub fn no_process(folder: &Path) {
    let begun = Instant::now();
    while let Some((pid, said)) = processes(folder).into_iter().next() {
        assert!(begun.elapsed() < GIT_END_TIMEOUT, "still there: {pid}: {said}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the processes that work in the folder or name it, with their arguments; not this one.
#[must_use]
pub fn processes(folder: &Path) -> Vec<(u32, String)> {
    let text = folder.display().to_string();
    let entries = fs::read_dir("/proc").expect("processes").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let about = |pid: u32| {
        let within =
            fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|at| at.starts_with(folder));
        let said = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let said = String::from_utf8_lossy(&said).replace('\0', " ");
        (within || said.contains(&text)).then_some((pid, said))
    };
    pids.filter(|pid| *pid != std::process::id()).filter_map(about).collect()
}
