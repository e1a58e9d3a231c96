//! What has become of a worktree that is not where git looks for it. Reads only.

use std::path::{Path, PathBuf};
use treebeam_git::{OrphanedWorktree, UserRepo};
use treebeam_store::RunDir;
use treebeam_store::removal::RemovedRun;

/// Where it is.
pub(in crate::command) enum OrphanState {
    /// Nowhere.
    Gone,
    /// Here, in its run: both were moved, perhaps with the whole repository.
    Moved(PathBuf),
    /// Nobody knows: the folder that its run was in is missing too, and may be on a disk that is.
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

/// A missing folder on a disk that is missing too is not gone.
fn is_gone(orphan: &OrphanedWorktree, repo: &UserRepo) -> bool {
    let Some(run_dir) = orphan.run_dir() else { return false };
    let here = [Some(repo.toplevel.as_path()), repo.common_dir.parent()];
    let is_here = here.into_iter().flatten().any(|folder| orphan.worktree.starts_with(folder));
    is_here || run_dir.is_dir() || run_dir.parent().is_some_and(treebeam_store::is_runs_root)
}

/// Whether it was a worktree of a run that has lost its name: where that was, or where it was before it was moved.
pub(super) fn belongs_to_run(
    orphan: &OrphanedWorktree,
    gone: &RemovedRun,
    runs_root: &Path,
) -> bool {
    let run = RunDir::from_run_id(runs_root, &gone.name);
    let was_there = || orphan.run_dir() == Some(run.root());
    orphan.run == gone.name && (was_there() || orphan.find_in(&gone.path).is_some())
}
