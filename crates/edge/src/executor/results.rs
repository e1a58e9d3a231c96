//! The results of a sweep: one regular file, of a size that can be handled, that the sweep itself has written. Looked at
//! only when all that the sweep has started is gone, so that nobody changes it any more. What is in it is not its business.

use super::outcome::Results;
use super::system;
use crate::git::stamp;
use crate::store::{self, durable};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use treebeam_core::event::FailureKind;
use treebeam_core::measure::WorktreePath;
use treebeam_core::path;

/// The largest results that are taken.
pub(super) const MOST_BYTES: u64 = 1 << 30;

/// Where a sweep may have written its results.
pub(super) struct Places<'a> {
    /// The fresh folder of the submission.
    pub(super) folder: &'a Path,
    pub(super) worktree: &'a Path,
    pub(super) results_csv: Option<&'a WorktreePath>,
}

/// Why there are no results.
pub(super) type Missing = (FailureKind, String);

impl Places<'_> {
    fn own(&self) -> PathBuf {
        self.folder.join(path::RESULTS_CSV)
    }

    /// Removes whatever is there before the sweep begins: it is not the sweep's.
    pub(super) fn clear(&self) -> io::Result<()> {
        remove(&self.own())?;
        match self.results_csv {
            Some(named) if self.is_straight(named) => remove(&self.worktree.join(named.as_str())),
            Some(_) | None => Ok(()),
        }
    }

    /// Takes the results, which lie in the folder then, and are on disk.
    pub(super) fn take(&self) -> Result<Results, Missing> {
        let own = self.own();
        if let (Err(_), Some(named)) = (fs::symlink_metadata(&own), self.results_csv) {
            self.fetch(named)?;
        }
        look(&own, path::RESULTS_CSV)?;
        let unreadable = |error| unreadable(path::RESULTS_CSV, &error);
        let seen = || fs::symlink_metadata(&own);
        let before = File::open(&own).and_then(|file| file.sync_all()).and_then(|()| seen());
        let before = before.map_err(unreadable)?;
        let sha256 = store::digest(&own).map_err(unreadable)?;
        if stamp(&before) != stamp(&seen().map_err(unreadable)?) {
            let message = "the results were changed after all processes of the sweep were gone";
            return Err((FailureKind::Results, message.to_owned()));
        }
        Ok(Results { path: path::RESULTS_CSV.to_owned(), sha256, bytes: before.len() })
    }

    /// Copies results from the worktree.
    fn fetch(&self, named: &WorktreePath) -> Result<(), Missing> {
        let name = named.as_str();
        if !self.is_straight(named) {
            return Err((FailureKind::Results, format!("a link leads to the results `{name}`")));
        }
        let source = self.worktree.join(name);
        look(&source, name)?;
        let copy = || {
            let mut source = File::open(&source)?;
            durable::replace(&self.own(), |file| {
                store::copy_and_digest(&mut source, file).map(drop)
            })
        };
        copy().map_err(|error| unreadable(name, &error))
    }

    /// Whether no link leads to the folder of this path.
    fn is_straight(&self, named: &WorktreePath) -> bool {
        let place = self.worktree.join(named.as_str());
        let parts = place.ancestors().skip(1).take_while(|above| *above != self.worktree);
        parts
            .into_iter()
            .all(|above| fs::symlink_metadata(above).map_or(true, |found| found.is_dir()))
    }
}

fn unreadable(name: &str, error: &io::Error) -> Missing {
    (FailureKind::Results, format!("the results `{name}` cannot be read: {error}"))
}

/// Where results would have been found.
fn meant(name: &str) -> &'static str {
    if name == path::RESULTS_CSV {
        ": they belong into the file that `$AGENTIC_RESULTS_CSV` names, or `results_csv` says where they are"
    } else {
        ""
    }
}

/// Whether something can be results, without opening it: opening a pipe waits.
fn look(file: &Path, name: &str) -> Result<(), Missing> {
    let found = match fs::symlink_metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let message = format!("the sweep succeeded, but wrote no `{name}`{}", meant(name));
            return Err((FailureKind::NoResults, message));
        }
        Err(error) => return Err(unreadable(name, &error)),
        Ok(found) => found,
    };
    let wrong = if found.is_symlink() {
        "a link".to_owned()
    } else if found.is_dir() {
        "a folder".to_owned()
    } else if !found.is_file() {
        "no regular file".to_owned()
    } else if system::names_of(&found) > 1 {
        "a file with more than one name, by another of which they could be changed".to_owned()
    } else if found.len() > MOST_BYTES {
        format!("larger than {} MiB", MOST_BYTES >> 20)
    } else {
        return Ok(());
    };
    Err((FailureKind::Results, format!("the results `{name}` are {wrong}")))
}

/// Removes whatever has this name, be it a folder. Links are not followed.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
    }
}
