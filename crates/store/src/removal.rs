//! Taking a whole run away, and finding what runs left unfinished: directories that never became runs, files that were
//! never renamed. What a run has in the user's repository is not known here.
//!
//! A run that is to go first loses its name, at one blow: from then on it is no run, and whatever is cut off leaves a
//! folder whose own name says what is still to be done.

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

/// How the name of a directory begins that was a run and is to go.
const REMOVED_PREFIX: &str = ".gone-";
/// A process that makes a run has made it by then.
const RUN_CREATION_LIMIT: Duration = Duration::from_mins(1);
/// How deep a directory is measured.
const MAX_MEASURED_DEPTH: u32 = 64;

/// A run that has lost its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedRun {
    /// The name that its directory had.
    pub name: RunId,
    /// What is left of it.
    pub path: PathBuf,
}

/// Something in the folder of all runs that never became a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfinishedRun {
    /// Where it lies.
    pub path: PathBuf,
    /// Whether its maker may still be at it.
    pub is_in_progress: bool,
}

/// Who was making something.
#[derive(Clone, Copy)]
enum RunMaker {
    Process(u32),
    Unnamed,
}

/// A run that is to go, and that nobody else can run meanwhile.
#[derive(Debug)]
pub struct RunRemoval {
    /// The name that its directory has.
    pub name: RunId,
    run: RunDir,
    above: PathBuf,
    taken: LockedRun,
}

/// Takes a run that is to go, if nobody runs it.
///
/// # Errors
/// When another process runs it, or it cannot have been a run by its name.
pub fn begin_removal(run: &RunDir, claim: impl Into<RunClaim>) -> Result<RunRemoval, StoreError> {
    let name = run.root().file_name().and_then(OsStr::to_str).and_then(|name| name.parse().ok());
    let (Some(name), Some(above)) = (name, run.root().parent()) else {
        return Err(StoreError::NotARun { path: run.root().to_owned() });
    };
    let taken = LockedRun::take_lock(run, claim.into())?;
    Ok(RunRemoval { name, run: run.clone(), above: above.to_owned(), taken })
}

impl RunRemoval {
    /// Takes its name from it.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn rename_away(self) -> Result<RemovedRun, StoreError> {
        let Self { name, run, above, taken } = self;
        let path = free_removed_path(&above, &name);
        let mut renamed = fs::rename(run.root(), &path);
        if matches!(&renamed, Err(error) if error.kind() == ErrorKind::PermissionDenied) {
            // Some systems rename no folder in which a file is open, and here that is the lock.
            drop(taken);
            renamed = fs::rename(run.root(), &path);
        }
        renamed.map_err(StoreError::io("rename", run.root()))?;
        atomic_file::sync_dir(&above).map_err(StoreError::io("sync", &above))?;
        Ok(RemovedRun { name, path })
    }
}

/// A run of that name may have gone before, and not wholly.
fn free_removed_path(above: &Path, name: &RunId) -> PathBuf {
    let mut path = above.join(format!("{REMOVED_PREFIX}{name}"));
    let mut number = 2;
    while path.symlink_metadata().is_ok() {
        path = above.join(format!("{REMOVED_PREFIX}{name}.{number}"));
        number += 1;
    }
    path
}

/// The runs below this folder that have lost their names and are still there.
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

/// What lies below this folder and never became a run: its maker died, or is at it.
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

/// Who makes what has this name, if it is one of ours: a run in the making, or a file on trial.
fn parse_maker(entry: &DirEntry) -> Option<RunMaker> {
    let name = entry.file_name();
    let rest = name.to_str()?.strip_prefix(UNFINISHED_PREFIX)?;
    if entry.file_type().ok()?.is_dir() {
        let (run, process) = rest.rsplit_once('-')?;
        // Its boot stands between, and may make of a run's name one that is too long.
        let is_run = |name: &str| name.parse::<RunId>().is_ok();
        let ours = is_run(run) || run.rsplit_once('-').is_some_and(|(run, _)| is_run(run));
        ours.then_some(())?;
        return process.parse().ok().map(RunMaker::Process);
    }
    let random = rest.len() == 6 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (random && entry.file_type().ok()?.is_file()).then_some(RunMaker::Unnamed)
}

/// A process of that number may be on another machine, and live: time decides then.
fn is_abandoned(entry: &DirEntry, maker: RunMaker) -> bool {
    let modified = entry.metadata().and_then(|found| found.modified());
    let age = modified.ok().and_then(|time| time.elapsed().ok()).unwrap_or_default();
    let dead = match maker {
        RunMaker::Process(number) => os::process_state(number) == ProcessState::Gone,
        RunMaker::Unnamed => true,
    };
    age > DEFAULT_STALE_AFTER || (dead && age > RUN_CREATION_LIMIT)
}

/// Files of a run that were never finished. Whether somebody is just writing them is for its lease to say.
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

/// Removes such a file. One that is gone by now is fine.
///
/// # Errors
/// When it is still there.
pub fn remove_unfinished_file(path: &Path) -> io::Result<()> {
    atomic_file::remove_if_present(path)
}

/// How many bytes are in the files of a folder, links counted as links.
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
