//! Removes whole runs, and finds unfinished ones: directories never named, files never renamed.
//! Does not touch what a run has in the user's repository.
//!
//! Removal begins with one atomic rename, after which the directory is no run any more. If the
//! removal is then cut off, the name of the remaining folder says that it has to go.

use super::atomic_file::{self, UNFINISHED_PREFIX};
use super::error::StoreError;
use super::layout::RunDir;
use super::lease::{DEFAULT_STALE_AFTER, LockedRun, ProcessState, RunClaim};
use super::os;
use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;
use treebeam_core::id::RunId;
use treebeam_core::path::{EVAL_RESULT_FILE, RESULTS_CSV};

/// Name prefix of a directory that was a run and is to be removed.
const REMOVED_PREFIX: &str = ".gone-";
/// Time after which a process that creates a run has finished.
const RUN_CREATION_LIMIT: Duration = Duration::from_mins(1);
/// How many levels of a directory are measured.
const MAX_MEASURED_DEPTH: u32 = 64;

/// A run whose directory was renamed away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedRun {
    /// The name that the run's directory had.
    pub name: RunId,
    /// Path of what is left of the run.
    pub path: PathBuf,
}

/// An entry in the folder of all runs that never became a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfinishedRun {
    /// Path of the entry.
    pub path: PathBuf,
    /// True if the entry's maker may still be working on it.
    pub is_in_progress: bool,
}

/// The process that made an unfinished entry.
#[derive(Clone, Copy)]
enum RunMaker {
    Process(u32),
    Unnamed,
}

/// A run that is about to be removed, locked against other processes.
#[derive(Debug)]
pub struct RunRemoval {
    /// The name of the run's directory.
    pub name: RunId,
    run: RunDir,
    above: PathBuf,
    taken: LockedRun,
}

/// Locks a run for removal, unless a process runs it.
///
/// # Errors
/// When another process runs it, or its name cannot be that of a run.
pub fn begin_removal(run: &RunDir, claim: impl Into<RunClaim>) -> Result<RunRemoval, StoreError> {
    let name = run.root().file_name().and_then(OsStr::to_str).and_then(|name| name.parse().ok());
    let (Some(name), Some(above)) = (name, run.root().parent()) else {
        return Err(StoreError::NotARun { path: run.root().to_owned() });
    };
    let taken = LockedRun::take_lock(run, claim.into())?;
    Ok(RunRemoval { name, run: run.clone(), above: above.to_owned(), taken })
}

impl RunRemoval {
    /// Renames the run's directory away.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn rename_away(self) -> Result<RemovedRun, StoreError> {
        let Self { name, run, above, taken } = self;
        let path = free_removed_path(&above, &name);
        let mut renamed = fs::rename(run.root(), &path);
        if matches!(&renamed, Err(error) if error.kind() == ErrorKind::PermissionDenied) {
            // Some systems rename no folder in which a file is open, and the lock is such a file.
            drop(taken);
            renamed = fs::rename(run.root(), &path);
        }
        renamed.map_err(StoreError::io("rename", run.root()))?;
        atomic_file::sync_dir(&above).map_err(StoreError::io("sync", &above))?;
        Ok(RemovedRun { name, path })
    }
}

/// Returns a free path to rename a run to: an earlier run of that name may be removed only in part.
fn free_removed_path(above: &Path, name: &RunId) -> PathBuf {
    let mut path = above.join(format!("{REMOVED_PREFIX}{name}"));
    let mut number = 2;
    while path.symlink_metadata().is_ok() {
        path = above.join(format!("{REMOVED_PREFIX}{name}.{number}"));
        number += 1;
    }
    path
}

/// Lists the runs below a folder that were renamed away and are still there.
///
/// # Errors
/// When the folder cannot be listed.
pub fn list_removed_runs(runs_root: &Path) -> Result<Vec<RemovedRun>, StoreError> {
    let read = |entry: &DirEntry| {
        let name = entry.file_name();
        let name = name.to_str()?.strip_prefix(REMOVED_PREFIX)?;
        let name = name.split('.').next()?.parse().ok()?;
        Some(RemovedRun { name, path: entry.path() })
    };
    let mut found: Vec<_> = list_entries(runs_root)?.iter().filter_map(read).collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Lists the entries below a folder that never became runs: their maker died, or is still working.
///
/// # Errors
/// When the folder cannot be listed.
pub fn list_unfinished_runs(runs_root: &Path) -> Result<Vec<UnfinishedRun>, StoreError> {
    let read = |entry: &DirEntry| {
        let maker = parse_maker(entry)?;
        let may_become_one = !is_abandoned(entry, maker);
        Some(UnfinishedRun { path: entry.path(), is_in_progress: may_become_one })
    };
    let mut found: Vec<_> = list_entries(runs_root)?.iter().filter_map(read).collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Returns the maker of an entry named by treebeam: an unfinished run or a temporary file.
fn parse_maker(entry: &DirEntry) -> Option<RunMaker> {
    let name = entry.file_name();
    let rest = name.to_str()?.strip_prefix(UNFINISHED_PREFIX)?;
    if entry.file_type().ok()?.is_dir() {
        let (run, process) = rest.rsplit_once('-')?;
        // The boot id stands before the process id: with it the name may be too long for a run.
        let is_run = |name: &str| name.parse::<RunId>().is_ok();
        let ours = is_run(run) || run.rsplit_once('-').is_some_and(|(run, _)| is_run(run));
        ours.then_some(())?;
        return process.parse().ok().map(RunMaker::Process);
    }
    let random = rest.len() == 6 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (random && entry.file_type().ok()?.is_file()).then_some(RunMaker::Unnamed)
}

/// Returns true if an entry is abandoned. Its age decides if the process may be elsewhere.
fn is_abandoned(entry: &DirEntry, maker: RunMaker) -> bool {
    let modified = entry.metadata().and_then(|found| found.modified());
    let age = modified.ok().and_then(|time| time.elapsed().ok()).unwrap_or_default();
    let dead = match maker {
        RunMaker::Process(number) => os::process_state(number) == ProcessState::Gone,
        RunMaker::Unnamed => true,
    };
    age > DEFAULT_STALE_AFTER || (dead && age > RUN_CREATION_LIMIT)
}

/// Lists the unfinished files of a run. Its lease shows whether a process is writing them.
#[must_use]
pub fn list_unfinished_files(run: &RunDir) -> Vec<PathBuf> {
    let files = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
    };
    let begun =
        |entry: &DirEntry| entry.file_name().to_string_lossy().starts_with(UNFINISHED_PREFIX);
    let mut found: Vec<_> = files(run.root()).filter(begun).map(|entry| entry.path()).collect();
    let evals = fs::read_dir(run.root().join("eval")).into_iter().flatten().filter_map(Result::ok);
    let evals = evals.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    for eval in evals.map(|entry| entry.path()) {
        let links = [eval.join(EVAL_RESULT_FILE), eval.join("experiment").join(RESULTS_CSV)];
        let links = links.map(|file| atomic_file::pending_link_path(&file));
        found.extend(links.into_iter().filter(|link| link.symlink_metadata().is_ok()));
    }
    found.sort();
    found
}

/// Removes an unfinished file; a missing one is no error.
///
/// # Errors
/// When the file is still there.
pub fn remove_unfinished_file(path: &Path) -> io::Result<()> {
    atomic_file::remove_if_present(path)
}

/// Returns the number of bytes in the files of a folder; a link counts with its own length.
#[must_use]
pub fn folder_bytes(path: &Path) -> u64 {
    measure_folder(path, MAX_MEASURED_DEPTH)
}

fn measure_folder(path: &Path, deepest: u32) -> u64 {
    let Ok(found) = path.symlink_metadata() else { return 0 };
    if !found.is_dir() || deepest == 0 {
        return if found.is_dir() { 0 } else { found.len() };
    }
    let entries = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| measure_folder(&entry.path(), deepest - 1)).sum()
}

fn list_entries(folder: &Path) -> Result<Vec<DirEntry>, StoreError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(StoreError::io("list", folder))?,
    };
    entries.collect::<io::Result<_>>().map_err(StoreError::io("list", folder))
}
