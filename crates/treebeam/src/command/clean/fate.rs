//! What has become of a worktree that is not where git looks for it. Reads only.

use std::path::{Path, PathBuf};
use treebeam_edge::git::{Orphan, UserRepo};
use treebeam_edge::store::removal::Gone;
use treebeam_edge::store::{self, RunDir};

/// Where it is.
pub(in crate::command) enum Fate {
    /// Nowhere.
    Gone,
    /// Here, in its run: both were moved, perhaps with the whole repository.
    Moved(PathBuf),
    /// Nobody knows: the folder that its run was in is missing too, and may be on a disk that is.
    Unknown,
}

impl Fate {
    pub(in crate::command) fn of(orphan: &Orphan, repo: &UserRepo, runs_root: &Path) -> Self {
        if let Some(folder) = orphan.lies_in(RunDir::of(runs_root, &orphan.run).root()) {
            return Self::Moved(folder);
        }
        if is_gone_for_good(orphan, repo) { Self::Gone } else { Self::Unknown }
    }
}

/// A missing folder on a disk that is missing too is not gone.
fn is_gone_for_good(orphan: &Orphan, repo: &UserRepo) -> bool {
    let Some(run_dir) = orphan.run_dir() else { return false };
    let here = [Some(repo.toplevel.as_path()), repo.common_dir.parent()];
    let is_here = here.into_iter().flatten().any(|folder| orphan.worktree.starts_with(folder));
    is_here || run_dir.is_dir() || run_dir.parent().is_some_and(store::is_runs_root)
}

/// Whether it was a worktree of a run that has lost its name: where that was, or where it was before it was moved.
pub(super) fn is_of(orphan: &Orphan, gone: &Gone, runs_root: &Path) -> bool {
    let run = RunDir::of(runs_root, &gone.name);
    let was_there = || orphan.run_dir() == Some(run.root());
    orphan.run == gone.name && (was_there() || orphan.lies_in(&gone.path).is_some())
}
