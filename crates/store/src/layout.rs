//! Names the files and folders of a run, and creates the folders that hold runs. Reads no file of a
//! run but the first line of a journal.

use super::atomic_file;
use super::error::StoreError;
use super::journal;
use super::record_file;
use jiff::Timestamp;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use treebeam_core::id::{RunId, RunPath};

/// The folders of a new run.
pub(super) const RUN_FOLDERS: [&str; 8] =
    ["wt", "cand", "node_ideas", "eval", "artifacts", "conversations", "logs", "inbox"];

/// A run's directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDir(PathBuf);

impl RunDir {
    /// Wraps a path, which is made absolute. The disk is not accessed.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self(std::path::absolute(&root).unwrap_or(root))
    }
    /// Returns the directory of a run below the folder of all runs.
    #[must_use]
    pub fn from_run_id(runs_root: &Path, run: &RunId) -> Self {
        Self::new(runs_root.join(run.as_str()))
    }
    /// Returns the path of the directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.0
    }
    /// Returns the path of a file of the run.
    #[must_use]
    pub fn file_path(&self, path: &RunPath) -> PathBuf {
        let mut full = self.0.clone();
        full.extend(path.as_str().split('/'));
        full
    }
    /// Returns the path of the journal, which holds every state transition in order.
    #[must_use]
    pub fn journal_path(&self) -> PathBuf {
        self.0.join("journal.jsonl")
    }
    /// Returns the path of the manifest, which holds the whole state.
    #[must_use]
    pub fn manifest_path(&self) -> PathBuf {
        self.0.join("manifest.json")
    }
    /// Returns the path of the previous manifest.
    #[must_use]
    pub fn previous_manifest_path(&self) -> PathBuf {
        self.0.join("manifest.json.prev")
    }
    /// Returns the path of the lock file. A held lock means that the run is being run. The file is
    /// empty, and never renamed or deleted.
    #[must_use]
    pub fn lock_path(&self) -> PathBuf {
        self.0.join("run.lock")
    }
    /// Returns the path of the note on the process that runs the run.
    #[must_use]
    pub fn lock_note_path(&self) -> PathBuf {
        self.0.join("run.lock.json")
    }
    /// Returns the path of the inbox for the user's messages to a running run.
    #[must_use]
    pub fn inbox_path(&self) -> PathBuf {
        self.0.join("inbox")
    }
    /// Returns the path of the folder for copies of the files that decisions depend on.
    #[must_use]
    pub fn artifacts_path(&self) -> PathBuf {
        self.0.join("artifacts")
    }
}

/// Returns the folder of a repository's runs, below its top level.
#[must_use]
pub fn runs_root(repo: &Path) -> PathBuf {
    repo.join(".treebeam").join("runs")
}

/// Content of a `.gitignore` that makes git ignore its folder, itself included.
const GITIGNORE_ALL: &str = "*\n";

/// Creates a folder for runs at any path, with a `.gitignore`; false if it holds other things.
///
/// # Errors
/// When the folder cannot be created or read.
pub fn make_named_runs_root(root: &Path) -> Result<bool, StoreError> {
    let ignore = root.join(".gitignore");
    if fs::read_to_string(&ignore).is_ok_and(|text| text == GITIGNORE_ALL) {
        return Ok(true);
    }
    fs::create_dir_all(root).map_err(StoreError::io("create", root))?;
    let mut entries = fs::read_dir(root).map_err(StoreError::io("list", root))?;
    if entries.any(|entry| !entry.is_ok_and(|entry| is_empty_gitignore(&entry, &ignore))) {
        return Ok(false);
    }
    write_gitignore(&ignore, [Some(root), root.parent()].into_iter().flatten())?;
    Ok(true)
}

/// Returns true if an entry is a `.gitignore` left empty by a full disk or a power cut.
fn is_empty_gitignore(entry: &fs::DirEntry, ignore: &Path) -> bool {
    entry.path() == ignore && entry.metadata().is_ok_and(|file| file.len() == 0)
}

/// Writes a `.gitignore`, and makes it and the names in these folders durable.
fn write_gitignore<'a>(
    ignore: &Path,
    folders: impl IntoIterator<Item = &'a Path>,
) -> Result<(), StoreError> {
    let write =
        |mut file: File| file.write_all(GITIGNORE_ALL.as_bytes()).and_then(|()| file.sync_all());
    File::create(ignore).and_then(write).map_err(StoreError::io("write", ignore))?;
    for folder in folders {
        atomic_file::sync_dir(folder).map_err(StoreError::io("sync", folder))?;
    }
    Ok(())
}

/// Returns true if the folder was made to hold runs. A missing one may be on an unmounted disk.
#[must_use]
pub fn is_runs_root(root: &Path) -> bool {
    let ignored = |folder: &Path| {
        fs::read_to_string(folder.join(".gitignore")).is_ok_and(|text| text == GITIGNORE_ALL)
    };
    let above = root.parent().filter(|above| above.ends_with(".treebeam"));
    root.is_dir() && (ignored(root) || above.is_some_and(ignored))
}

/// Creates the folder of all runs if needed, with a `.gitignore`.
///
/// # Errors
/// When the folder cannot be created.
pub fn make_runs_root(repo: &Path) -> Result<PathBuf, StoreError> {
    let own = repo.join(".treebeam");
    let runs = runs_root(repo);
    let ignore = own.join(".gitignore");
    if runs.is_dir() && ignore.metadata().is_ok_and(|file| file.len() > 0) {
        return Ok(runs);
    }
    fs::create_dir_all(&runs).map_err(StoreError::io("create", &runs))?;
    write_gitignore(&ignore, [own.as_path(), repo])?;
    Ok(runs)
}

/// Returns the start of a run: the time on its journal's first line, if that can be read.
#[must_use]
pub fn run_start_time(run: &RunDir) -> Option<Timestamp> {
    journal::first_line_time(&run.journal_path())
}

/// Lists the runs below a folder, sorted by the time on their journal's first line, then by name.
///
/// # Errors
/// When the folder cannot be listed. A missing folder has no runs.
pub fn list_runs(root: &Path) -> Result<Vec<RunId>, StoreError> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::io("list", root)(error)),
    };
    let mut found: Vec<(Option<Timestamp>, RunId)> = Vec::new();
    for entry in entries {
        let entry = entry.map_err(StoreError::io("list", root))?;
        let Some(run) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let dir = RunDir::from_run_id(root, &run);
        if record_file::has_file(&dir.journal_path()) || record_file::has_file(&dir.manifest_path())
        {
            found.push((run_start_time(&dir), run));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, run)| run).collect())
}
