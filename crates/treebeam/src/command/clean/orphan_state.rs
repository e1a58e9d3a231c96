//! Determines what happened to a worktree that is not where git looks for it. Reads only.

use std::path::{Path, PathBuf};
use treebeam_git::{OrphanedWorktree, UserRepo};
use treebeam_store::RunDir;
use treebeam_store::removal::RemovedRun;

/// Present place of an orphaned worktree.
pub(in crate::command) enum OrphanState {
    /// The worktree was deleted.
    Gone,
    /// Moved together with its run, perhaps with the whole repository.
    Moved(PathBuf),
    /// Unknown: the folder of its run is missing too, perhaps with its disk.
    Unknown,
}

impl OrphanState {
    pub(in crate::command) fn find(
        orphan: &OrphanedWorktree,
        repo: &UserRepo,
        runs_root: &Path,
    ) -> Self {
        if let Some(folder) = orphan.find_in(RunDir::from_run_id(runs_root, &orphan.run).root()) {
            return Self::Moved(folder);
        }
        if is_gone(orphan, repo) { Self::Gone } else { Self::Unknown }
    }
}

/// Returns true if the worktree was deleted. A missing folder on a missing disk does not count.
fn is_gone(orphan: &OrphanedWorktree, repo: &UserRepo) -> bool {
    let Some(run_dir) = orphan.run_dir() else { return false };
    let here = [Some(repo.toplevel.as_path()), repo.common_dir.parent()];
    let is_here = here.into_iter().flatten().any(|folder| orphan.worktree.starts_with(folder));
    is_here || run_dir.is_dir() || run_dir.parent().is_some_and(treebeam_store::is_runs_root)
}

/// Returns true if the worktree belonged to a removed run: it was in the run's directory, or lies
/// in its renamed one now.
pub(super) fn belongs_to_run(
    orphan: &OrphanedWorktree,
    gone: &RemovedRun,
    runs_root: &Path,
) -> bool {
    let run = RunDir::from_run_id(runs_root, &gone.name);
    let was_there = || orphan.run_dir() == Some(run.root());
    orphan.run == gone.name && (was_there() || orphan.find_in(&gone.path).is_some())
}
