//! Finds and takes the results of a sweep: one regular file of limited size, written by that sweep.
//! They are taken when all processes of the sweep are gone, so that nothing can change them. It
//! does not look into them.

use super::job_result::{MAX_RESULTS_CSV_BYTES, ResultsFile};
use super::system;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use treebeam_core::event::FailureKind;
use treebeam_core::measure::WorktreePath;
use treebeam_core::path;
use treebeam_git::file_stamp;
use treebeam_store::atomic_file;

/// Paths at which a sweep may have written its results.
pub(super) struct ResultsPlaces<'a> {
    /// Fresh folder of the submission.
    pub(super) folder: &'a Path,
    pub(super) worktree: &'a Path,
    pub(super) results_csv: Option<&'a WorktreePath>,
}

/// Kind and message of missing or unusable results.
pub(super) type MissingResults = (FailureKind, String);

impl ResultsPlaces<'_> {
    fn own_path(&self) -> PathBuf {
        self.folder.join(path::RESULTS_CSV)
    }

    /// Removes old results before the sweep begins.
    pub(super) fn remove_old(&self) -> io::Result<()> {
        remove_entry(&self.own_path())?;
        match self.results_csv {
            Some(named) if self.is_link_free(named) => {
                remove_entry(&self.worktree.join(named.as_str()))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Takes the results; they are then in the submission's folder and synced.
    pub(super) fn take_results(&self) -> Result<ResultsFile, MissingResults> {
        let own = self.own_path();
        if let (Err(_), Some(named)) = (fs::symlink_metadata(&own), self.results_csv) {
            self.fetch_from_worktree(named)?;
        }
        check_results_file(&own, path::RESULTS_CSV)?;
        let unreadable = |error| unreadable_results(path::RESULTS_CSV, &error);
        let seen = || fs::symlink_metadata(&own);
        let before = File::open(&own).and_then(|file| file.sync_all()).and_then(|()| seen());
        let before = before.map_err(unreadable)?;
        let sha256 = treebeam_store::digest_file(&own).map_err(unreadable)?;
        if file_stamp(&before) != file_stamp(&seen().map_err(unreadable)?) {
            let message = "the results were changed after all processes of the sweep were gone";
            return Err((FailureKind::Results, message.to_owned()));
        }
        Ok(ResultsFile { path: path::RESULTS_CSV.to_owned(), sha256, bytes: before.len() })
    }

    /// Copies results from the worktree.
    fn fetch_from_worktree(&self, named: &WorktreePath) -> Result<(), MissingResults> {
        let name = named.as_str();
        if !self.is_link_free(named) {
            return Err((FailureKind::Results, format!("a link leads to the results `{name}`")));
        }
        let source = self.worktree.join(name);
        check_results_file(&source, name)?;
        let copy = || {
            let mut source = File::open(&source)?;
            atomic_file::replace_file(&self.own_path(), |file| {
                treebeam_store::copy_and_digest(&mut source, file).map(drop)
            })
        };
        copy().map_err(|error| unreadable_results(name, &error))
    }

    /// Returns true if no folder above this path is a link.
    fn is_link_free(&self, named: &WorktreePath) -> bool {
        let place = self.worktree.join(named.as_str());
        let parts = place.ancestors().skip(1).take_while(|above| *above != self.worktree);
        parts
            .into_iter()
            .all(|above| fs::symlink_metadata(above).map_or(true, |found| found.is_dir()))
    }
}

fn unreadable_results(name: &str, error: &io::Error) -> MissingResults {
    (FailureKind::Results, format!("the results `{name}` cannot be read: {error}"))
}

/// Returns a hint at where results are expected.
fn missing_results_hint(name: &str) -> &'static str {
    if name == path::RESULTS_CSV {
        ": they belong into the file that `$AGENTIC_RESULTS_CSV` names, or `results_csv` says where they are"
    } else {
        ""
    }
}

/// Checks that a file can be results, without opening it: opening a pipe would block.
fn check_results_file(file: &Path, name: &str) -> Result<(), MissingResults> {
    let found = match fs::symlink_metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let message =
                format!("the sweep succeeded, but wrote no `{name}`{}", missing_results_hint(name));
            return Err((FailureKind::NoResults, message));
        }
        Err(error) => return Err(unreadable_results(name, &error)),
        Ok(found) => found,
    };
    let wrong = if found.is_symlink() {
        "a link".to_owned()
    } else if found.is_dir() {
        "a folder".to_owned()
    } else if !found.is_file() {
        "no regular file".to_owned()
    } else if system::hard_link_count(&found) > 1 {
        "a file with more than one name, by another of which they could be changed".to_owned()
    } else if found.len() > MAX_RESULTS_CSV_BYTES {
        format!("larger than {} MiB", MAX_RESULTS_CSV_BYTES >> 20)
    } else {
        return Ok(());
    };
    Err((FailureKind::Results, format!("the results `{name}` are {wrong}")))
}

/// Removes a file, link or folder of this name. Links are not followed.
pub(super) fn remove_entry(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
    }
}
