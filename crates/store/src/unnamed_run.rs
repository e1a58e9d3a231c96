//! Directories of runs in the making; those whose maker died are removed, never continued.

use super::atomic_file::UNFINISHED_PREFIX;
use super::layout::RunDir;
use super::lease::{DEFAULT_STALE_AFTER, ProcessState};
use super::os;
use std::fs;
use std::path::Path;
use treebeam_core::id::RunId;

/// Returns the directory in which this process creates a run.
pub(super) fn unnamed_run_dir(runs_root: &Path, run: &RunId) -> RunDir {
    let name = format!("{UNFINISHED_PREFIX}{run}-{}-{}", short_boot_id(), std::process::id());
    RunDir::new(runs_root.join(name))
}

/// Removes the directories of runs whose maker died. What stays is tried with the next run.
pub(super) fn remove_abandoned(runs_root: &Path) {
    for entry in fs::read_dir(runs_root).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(UNFINISHED_PREFIX) && (is_maker_dead(&name) || is_old(&entry.path())) {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

/// Returns the start of this machine's boot id, short enough for a name.
fn short_boot_id() -> String {
    os::boot_id().map_or_else(|| "0".to_owned(), |id| id.chars().take(8).collect())
}

/// Returns true if the process in a name is of this boot of this machine, and dead.
fn is_maker_dead(name: &str) -> bool {
    let mut parts = name.rsplit('-');
    let process = parts.next().and_then(|pid| pid.parse().ok());
    let here = parts.next().is_some_and(|part| part == short_boot_id());
    here && process.is_some_and(|pid| os::process_state(pid) == ProcessState::Gone)
}

/// Returns true if a directory is too old to be still in the making, which takes no time.
fn is_old(path: &Path) -> bool {
    let modified = path.metadata().and_then(|found| found.modified());
    modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > DEFAULT_STALE_AFTER))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::super::removal::list_unfinished_runs;
    use super::*;

    #[test]
    fn only_what_a_dead_process_left_goes() {
        let folder = tempfile::tempdir().unwrap();
        let run: RunId = "a-b".parse().unwrap();
        let ours = unnamed_run_dir(folder.path(), &run);
        let (boot, dead) = (short_boot_id(), u32::MAX);
        let kept = [format!(".new-a-b-{boot}x-{dead}"), ".new-a-b".to_owned(), "a-b".to_owned()];
        let gone = format!(".new-a-b-{boot}-{dead}");
        fs::create_dir(ours.root()).unwrap();
        for name in kept.iter().chain([&gone]) {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        remove_abandoned(folder.path());
        assert!(!folder.path().join(gone).exists());
        assert!(ours.root().is_dir());
        assert!(kept.iter().all(|name| folder.path().join(name).is_dir()));
        remove_abandoned(&folder.path().join("none"));
    }

    #[test]
    fn one_with_the_longest_name_is_seen_too() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a".to_owned(), "a".repeat(40)] {
            let run: RunId = name.parse().unwrap();
            let ours = unnamed_run_dir(folder.path(), &run);
            fs::create_dir(ours.root()).unwrap();
            let found = list_unfinished_runs(folder.path()).unwrap();
            assert!(found.iter().any(|unborn| unborn.path == ours.root()), "{name}");
        }
    }
}
